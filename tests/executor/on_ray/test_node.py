"""Folders of runs on a node: each has one owner, also while others tidy up."""

import os
import shutil
import threading
from pathlib import Path

from local_runs import eventually
from lynceus.executor.on_ray import node
from lynceus.executor.on_ray.node import Work, abandoned, sweep


def test_a_keeper_that_came_while_its_folder_was_swept_makes_it_anew(tmp_path: Path) -> None:
    """The moment between making the lock and holding it: another keeper takes the folder for abandoned."""
    folder = tmp_path / "a1b2-0"
    folder.mkdir()
    (folder / node._KEPT).touch()
    held = node._claim(str(folder))
    assert held is not None
    assert node._claim(str(folder)) is None, "one sweeps at a time"
    work = Work(0)
    keeper = threading.Thread(
        target=work._make_folder, args=({"record": {"run": "a1b2"}, "files": {"tool": b"x"}}, str(tmp_path))
    )
    keeper.start()
    eventually(lambda: work._lock >= 0)  # it waits for the lock of what is about to be removed
    shutil.rmtree(folder)
    os.close(held)
    keeper.join(60)
    assert not keeper.is_alive()
    assert (folder / "tool").read_bytes() == b"x"
    assert abandoned(str(tmp_path)) == []
    assert sweep(str(tmp_path), "no runner is needed") == []
    os.close(work._lock)
    assert abandoned(str(tmp_path)) == [str(folder)]
