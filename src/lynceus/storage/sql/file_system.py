"""On which file system a SQLite file lies: its locks are unreliable on network file systems, and its log needs shared memory."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

from lynceus.errors import NetworkStorageWarning

_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = frozenset(
    (
        *(
            "9p",
            "afs",
            "beegfs",
            "ceph",
            "cifs",
            "fuse.ceph",
            "fuse.gcsfuse",
            "fuse.glusterfs",
            "fuse.s3fs",
            "fuse.sshfs",
        ),
        *(
            "glusterfs",
            "gpfs",
            "lustre",
            "nfs",
            "nfs4",
            "orangefs",
            "panfs",
            "pvfs2",
            "smb3",
            "smbfs",
            "vboxsf",
            "wekafs",
        ),
    )
)
"""Types of file systems that several machines may mount at once, as Linux calls them."""


def network_file_system(file: Path, mounts: Path = _MOUNTS) -> str | None:
    """The type of the network file system on which a file lies; None on a local one, and where that cannot be told.

    >>> network_file_system(Path("/proc/self/status")) is None
    True
    """
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:  # not Linux
        return None
    places = [place for line in lines if (place := _place(line)) is not None]
    path = file.absolute().resolve()
    holding = [place for place in places if path.is_relative_to(place[0])]
    # Of several mounts at one place, the last one is seen.
    kind = max(enumerate(holding), key=lambda one: (len(one[1][0].parts), one[0]))[1][1] if holding else ""
    return kind if kind in _NETWORK else None


def warn_of_network(file: Path, shown_url: str) -> None:
    """Warn of a SQLite file on a network file system; the storage is used all the same."""
    if (kind := network_file_system(file)) is not None:
        warnings.warn(network_warning(shown_url, kind), NetworkStorageWarning, stacklevel=3)


def network_warning(shown_url: str, kind: str) -> str:
    """One sentence about a SQLite file on a network file system."""
    return (
        f"storage {shown_url} lies on a network file system ({kind}), where SQLite's locks may fail and trials get lost; "
        "use a local disk, or PostgreSQL."
    )


def _place(line: str) -> tuple[Path, str] | None:
    """Mount point and type from a line of mountinfo (proc(5)): the type follows a separate hyphen."""
    before, _, after = line.partition(" - ")
    fields, kind = before.split(), after.split()
    if len(fields) < 5 or not kind:
        return None
    return Path(re.sub(r"\\(\d{3})", lambda found: chr(int(found[1], 8)), fields[4])), kind[0]
