"""The supervisor and the runner of `serving` as a single file for any Python from 3.8 on: nodes need no Lynceus.

It is compressed, because SkyPilot copies it to the node of every run and Ray sends it with every request.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import os
import zipfile
from pathlib import Path

_MAIN = "import sys\nfrom lynceus.executors.supervisor.commands import main\nsys.exit(main(sys.argv[1:]))\n"
_TEXT = Path(__file__).parents[2] / "trial" / "text.py"
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)
"""Zip files contain timestamps; a fixed one makes equal bytes from equal sources."""
_ONLY_HERE = ("bundle.py", "fork_server.py")
"""Never used on a node."""


@functools.cache
def runner() -> bytes:
    """A zip application: `python3 -I -S runner.pyz run DIRECTORY`. Equal sources give equal bytes on one machine."""
    sources = {
        "__main__.py": _MAIN,
        "lynceus/__init__.py": "",
        "lynceus/executors/__init__.py": "",
        "lynceus/trial/__init__.py": "",
        "lynceus/trial/text.py": _TEXT.read_text(encoding="utf-8"),
        **{
            f"lynceus/executors/{folder}/{path.name}": path.read_text(encoding="utf-8")
            for folder in ("supervisor", "serving")
            for path in sorted((Path(__file__).parents[1] / folder).glob("*.py"))
            if path.name not in _ONLY_HERE
        },
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in sorted(sources):
            entry = zipfile.ZipInfo(name, _TIMESTAMP)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, sources[name], zipfile.ZIP_DEFLATED, compresslevel=9)
    return packed.getvalue()


@functools.cache
def runner_name() -> str:
    """A file name that depends on the contents, so that several versions of Lynceus can share a disk."""
    return f"runner-{hashlib.sha256(runner()).hexdigest()[:12]}.pyz"


def write_runner(folder: Path) -> Path:
    """Write the file into a folder, atomically, unless it is there; all runs share it."""
    path = folder / runner_name()
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f"{path.name}.{os.getpid()}.new"
        try:
            temporary.write_bytes(runner())
            temporary.rename(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()  # on a full disk, a part of it would make matters worse
            raise
    return path
