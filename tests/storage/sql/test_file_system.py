"""A SQLite file on a network file system is recognized, whatever is mounted where."""

from pathlib import Path

import pytest

from lynceus.storage.sql.file_system import network_file_system

MOUNTS = r"""
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 0:40 / /home rw,relatime shared:1 - nfs4 server:/home rw,vers=4.2
41 40 0:41 / /home/me/fast rw - xfs /dev/sdb rw
42 22 0:42 / /mnt/two\040words rw - fuse.sshfs me@host: rw
43 22 0:43 / /scratch rw - ext4 /dev/sdc rw
44 22 0:44 / /scratch rw - lustre mgs:/scratch rw
45 broken line
"""


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("/var/lynceus.db", None),
        ("/home/me/lynceus.db", "nfs4"),
        ("/homes/me/lynceus.db", None),
        ("/home/me/fast/lynceus.db", None),
        ("/mnt/two words/lynceus.db", "fuse.sshfs"),
        ("/scratch/lynceus.db", "lustre"),
    ],
)
def test_the_innermost_mount_decides(tmp_path: Path, file: str, kind: str | None) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    assert network_file_system(Path(file), mounts) == kind


def test_without_a_list_of_mounts_nothing_is_claimed(tmp_path: Path) -> None:
    assert network_file_system(Path("/home/lynceus.db"), tmp_path / "none") is None
