"""The job's working directory as one zip file, so that nodes need not share a disk with Lynceus."""

from __future__ import annotations

import fnmatch
import hashlib
import io
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

from lynceus.errors import InputError
from lynceus.executors.databases_in_use import open_databases

MAX_BYTES = 256 << 20
"""The copy is kept in the memory of the cluster's head."""
_CACHES = ("__pycache__", ".mypy_cache", ".pytest_cache", "*.pyc")
_NEVER = (".git", ".hg", ".venv", "venv", ".lynceus", "lynceus.db", *_CACHES)
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)


def pack(folder: Path, exclude: Sequence[str] = (), *, without: Path | None = None) -> tuple[str, bytes]:
    """A digest and the packed files; equal contents give equal digests.

    `exclude` holds patterns such as `*.csv` or `data/*` for paths within the folder. Version control, virtual environments, caches,
    databases in use and the folder `without` are never copied.
    """
    digest, packed, size = hashlib.sha256(), io.BytesIO(), 0
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in _files(folder, (*_NEVER, *exclude), without):
            name = path.relative_to(folder).as_posix()
            try:
                data, mode = path.read_bytes(), path.stat().st_mode & 0o777
            except OSError as error:
                raise InputError(f"workdir: {path} cannot be read and so not be copied: {error.strerror}.") from None
            size += len(data)
            if size > MAX_BYTES:
                raise InputError(
                    f"workdir: {folder} has more than {MAX_BYTES >> 20} MiB, too much to copy; list what is not needed in 'exclude', or "
                    "put it on a disk that all nodes share and write 'workdir: shared'."
                )
            digest.update(repr((name, mode, len(data))).encode() + data)
            entry = zipfile.ZipInfo(name, _TIMESTAMP)
            entry.external_attr, entry.compress_type = mode << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    return digest.hexdigest()[:16], packed.getvalue()


def _files(folder: Path, exclude: Sequence[str], without: Path | None) -> list[Path]:
    found = []
    for where, folders, names in os.walk(folder):
        inside = Path(where)
        folders[:] = sorted(
            one for one in folders if inside / one != without and not _excluded(inside / one, folder, exclude)
        )
        found += [
            inside / one
            for one in sorted(set(names) - open_databases(names))
            if (inside / one).is_file() and not _excluded(inside / one, folder, exclude)
        ]
    return found


def _excluded(path: Path, folder: Path, patterns: Sequence[str]) -> bool:
    name = path.relative_to(folder).as_posix()
    return any(fnmatch.fnmatch(path.name, one) or fnmatch.fnmatch(name, one.rstrip("/")) for one in patterns)
