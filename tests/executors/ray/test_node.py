"""Actors on a node: each folder belongs to one of them, and they do not need Lynceus."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from local_runs import eventually
from lynceus.executors.ray import node
from lynceus.executors.ray.actor import RunActor
from lynceus.executors.ray.cluster import Cluster
from lynceus.executors.ray.node import NodeRun, remove_abandoned


def test_an_actor_whose_folder_is_just_being_removed_creates_it_again(tmp_path: Path) -> None:
    """Between creating the lock and holding it, another actor takes the folder for abandoned."""
    folder = tmp_path / "a1b2-0"
    folder.mkdir()
    (folder / node._LOCK).touch()
    held = node._lock_if_abandoned(str(folder))
    assert held is not None
    assert node._lock_if_abandoned(str(folder)) is None, "only one actor removes it"
    run = NodeRun(0)
    actor = threading.Thread(
        target=run._make_folder, args=({"record": {"run": "a1b2"}, "files": {"tool": b"x"}}, str(tmp_path))
    )
    actor.start()
    eventually(lambda: run._lock >= 0)  # it waits for the lock of the folder that is about to be removed
    shutil.rmtree(folder)
    os.close(held)
    actor.join(60)
    assert not actor.is_alive()
    assert (folder / "tool").read_bytes() == b"x"
    assert remove_abandoned(str(tmp_path), "no runner is needed") == []
    os.close(run._lock)
    assert remove_abandoned(str(tmp_path), "no runner is needed") == [str(folder)]


_LOAD = """
import sys

class WithoutLynceus:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "lynceus":
            raise ImportError(name)

sys.meta_path.insert(0, WithoutLynceus())
from ray import cloudpickle
actor = cloudpickle.load(open(sys.argv[1], "rb"))
print(actor.__name__, actor.__init__.__globals__["node"]._failed_here("no disk")["detail"])
"""


def test_the_actor_does_not_need_lynceus_on_its_node(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    Cluster(ray)  # registers what is sent by value
    (tmp_path / "actor").write_bytes(ray.cloudpickle.dumps(RunActor))
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, str(tmp_path / "actor")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "RunActor no disk\n"
