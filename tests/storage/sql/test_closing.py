"""Programs need not close what they open: connections end with the objects that use them, at the latest with the program."""

import gc
import subprocess
import sys
from pathlib import Path

import lynceus
from lynceus.storage.sql.engine import is_open_here
from lynceus.storage.sql.storage import Storage

SEARCH = """
import gc, os, sys
import lynceus

def search(name):
    space = lynceus.Space.build([lynceus.Integer("nodes", 1, 4)], price="0.6 * nodes")
    study = lynceus.create_study(space=space, budget="$9", policy="sweep", study_name=name, storage=sys.argv[1])
    study.tell(study.ask(), runtime=1.0)
    return study
"""


def program(url: str, text: str) -> list[str]:
    """What a program prints, of which nothing is a warning about something that it left open."""
    command = [sys.executable, "-X", "dev", "-W", "error::DeprecationWarning", "-c", SEARCH + text, url]
    done = subprocess.run(command, check=False, text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_a_program_that_ends_leaves_nothing_open(url: str) -> None:
    assert program(url, "study = search('one'); print(len(study.trials))") == ["1"]
    loaded = "study = lynceus.load_study(study_name='one', storage=sys.argv[1])"
    assert program(url, f"{loaded}; print(len(study.trials))") == ["1"]
    adopted = "job = lynceus.adopt_job('nightly', source='one', params={'nodes': 2}, storage=sys.argv[1], by='ana')"
    assert program(url, f"{adopted}; print(job.config().version)") == ["1"]


def test_a_program_that_forgets_its_studies_leaves_nothing_open(url: str) -> None:
    assert program(url, "for name in 'abc':\n    search(name)\n    gc.collect()\nprint('over')") == ["over"]


def test_a_forked_child_that_ends_leaves_the_connections_of_its_parent_alone(url: str) -> None:
    forks = """
study = search("one")
if os.fork() == 0:
    study.ask()  # on a connection of its own
    del study
    gc.collect()
    sys.exit()
status = os.wait()[1]
print(status, study.ask().number)
"""
    assert program(url, forks) == ["0", "2"]


def test_a_study_that_is_garbage_collected_closes_its_file(tmp_path: Path) -> None:
    url, file = f"sqlite:///{tmp_path}/s.db", tmp_path / "s.db"
    space = lynceus.Space.build([lynceus.Integer("nodes", 1, 4)], price="0.6 * nodes")
    study = lynceus.create_study(space=space, budget="$9", policy="sweep", storage=url)
    assert is_open_here(file)
    with Storage(url) as other:
        del study
        gc.collect()
        assert is_open_here(file)  # by the other one
        other.set_setting("x", "1")
    assert not is_open_here(file)
    assert not file.with_name("s.db-wal").exists()  # the last connection removes it
