"""A worker that asks for trials of one study until it gets none, and never tells: what it reserves only grows."""

import sys
import time
from pathlib import Path

import lynceus
from lynceus.storage.sql.storage import Storage


def main(url: str, name: str, meeting: Path, parties: int) -> None:
    """Ask until there is no trial, once all parties are there."""
    study = lynceus.load_study(study_name=name, storage=Storage(url, create=False))
    (meeting / name).touch()
    while len(list(meeting.iterdir())) < parties:  # all begin together
        time.sleep(0.001)
    while study.ask() is not None:
        time.sleep(0.002)  # SQLite lets the one who has just written write again


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
