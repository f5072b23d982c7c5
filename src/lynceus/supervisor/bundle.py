"""The supervisor as one file that any Python since 3.8 runs, so that nodes need no Lynceus of their own."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import zipfile
from pathlib import Path

_MAIN = "import sys\nfrom lynceus.supervisor.runner import main\nsys.exit(main(sys.argv[1:]))\n"
_MOMENT = (1980, 1, 1, 0, 0, 0)
"""Zip files hold times; the same one for all makes the same bytes of the same sources."""


@functools.cache
def runner() -> bytes:
    """A zip application: `python3 -I -S runner.pyz run DIRECTORY`. The same sources give the same bytes."""
    sources = {
        "__main__.py": _MAIN,
        "lynceus/__init__.py": "",
        **{
            f"lynceus/supervisor/{path.name}": path.read_text(encoding="utf-8")
            for path in sorted(Path(__file__).parent.glob("*.py"))
        },
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(sources):
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, sources[name])
    return packed.getvalue()


@functools.cache
def runner_name() -> str:
    """A file name that changes with the contents, so that two versions of Lynceus can share a disk."""
    return f"runner-{hashlib.sha256(runner()).hexdigest()[:12]}.pyz"


def place_runner(folder: Path) -> Path:
    """Put the file into a folder, whole or not at all; it is there once for all runs."""
    path = folder / runner_name()
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        passing = folder / f"{path.name}.{os.getpid()}.new"
        passing.write_bytes(runner())
        passing.rename(path)
    return path
