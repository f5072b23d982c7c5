"""Several storages in one process: opening one takes no lock away from another."""

import subprocess
import sys
from pathlib import Path

from lynceus.storage.sql.engine import is_open_here
from lynceus.storage.sql.storage import Storage

OTHER = "from lynceus.storage.sql.storage import Storage; s = Storage({url!r}); {does}; s.close()"


def elsewhere(url: str, does: str) -> str:
    """What another process prints."""
    code = OTHER.format(url=url, does=does)
    return subprocess.run([sys.executable, "-c", code], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def test_what_a_process_writes_is_not_lost_when_it_opens_the_storage_again(tmp_path: Path) -> None:
    """SQLite's locks end when the process closes any descriptor of the file; the log would be deleted under an open connection."""
    url = f"sqlite:///{tmp_path}/s.db"
    with Storage(url) as first, Storage(url) as second:
        first.set_setting("place", "before")
        with Storage(url):
            pass
        elsewhere(url, "s.set_setting('other', '1')")
        first.set_setting("place", "after")
        assert second.setting("other") == "1"
        assert elsewhere(url, "print(s.setting('place'))") == "after"


def test_a_file_that_was_closed_is_looked_at_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    for _ in range(2):
        with Storage(url) as storage:
            storage.set_setting("x", "1")
        assert not is_open_here(tmp_path / "s.db")
