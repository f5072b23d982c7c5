"""The job's working directory as one packed file, so that nodes need to share no disk with us."""

from __future__ import annotations

import fnmatch
import hashlib
import io
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

from lynceus.errors import InputError
from lynceus.executor.databases import databases

LARGEST_BYTES = 256 << 20
"""What is shipped is kept in the memory of the cluster's head."""
_CACHES = ("__pycache__", ".mypy_cache", ".pytest_cache", "*.pyc")
_NEVER = (".git", ".hg", ".venv", "venv", ".lynceus", "lynceus.db", *_CACHES)
_MOMENT = (1980, 1, 1, 0, 0, 0)


def pack(folder: Path, exclude: Sequence[str] = (), *, without: Path | None = None) -> tuple[str, bytes]:
    """A digest and the packed files; equal contents give equal digests.

    `exclude` holds patterns such as `*.csv` or `data/*` over paths within the folder. Version control, virtual environments, caches
    and databases in use never travel, nor does the folder `without`.
    """
    digest, packed, size = hashlib.sha256(), io.BytesIO(), 0
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in _files(folder, (*_NEVER, *exclude), without):
            name = path.relative_to(folder).as_posix()
            try:
                data, mode = path.read_bytes(), path.stat().st_mode & 0o777
            except OSError as error:
                raise InputError(f"workdir: {path} cannot be read and so not be shipped: {error.strerror}.") from None
            size += len(data)
            if size > LARGEST_BYTES:
                raise InputError(
                    f"workdir: {folder} holds more than {LARGEST_BYTES >> 20} MiB, too much to be shipped; name what can stay here in "
                    "'exclude', or put it on a disk that every node sees and write 'workdir: shared'."
                )
            digest.update(repr((name, mode, len(data))).encode() + data)
            entry = zipfile.ZipInfo(name, _MOMENT)
            entry.external_attr, entry.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return digest.hexdigest()[:16], packed.getvalue()


def _files(folder: Path, exclude: Sequence[str], without: Path | None) -> list[Path]:
    found = []
    for where, folders, names in os.walk(folder):
        inside = Path(where)
        folders[:] = sorted(
            one for one in folders if inside / one != without and not _out(inside / one, folder, exclude)
        )
        found += [
            inside / one
            for one in sorted(set(names) - databases(names))
            if (inside / one).is_file() and not _out(inside / one, folder, exclude)
        ]
    return found


def _out(path: Path, folder: Path, patterns: Sequence[str]) -> bool:
    name = path.relative_to(folder).as_posix()
    return any(fnmatch.fnmatch(path.name, one) or fnmatch.fnmatch(name, one.rstrip("/")) for one in patterns)
