import os
import subprocess
import sys

from lynceus.storage.worker import lives, myself


def test_alive_dead_and_unknown_workers() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "from lynceus.storage.worker import myself; print(myself(), flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    other = child.stdout.readline().strip()
    assert lives(myself())
    assert lives(other)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert lives(other) is False  # a zombie process counts as dead
    child.communicate()
    assert lives(other) is False
    assert (
        lives("elsewhere/" + other.split("/", 1)[1]) is False
    )  # hosts may be renamed; boot and namespace say that it was here
    assert lives("nonsense") is None


def test_a_reused_process_id_is_not_the_same_worker() -> None:
    host, boot, namespace, pid, started, token = myself().split("/")
    assert lives(f"{host}/{boot}/{namespace}/{pid}/{int(started) - 1}/{token}") is False


def test_workers_of_other_boots_and_namespaces_cannot_be_seen() -> None:
    host, boot, namespace, pid, started, token = myself().split("/")
    assert lives(f"{host}/{boot}/{namespace}9/{pid}/{int(started) - 1}/{token}") is None
    assert lives(f"{host}/another/{namespace}/{pid}/{started}/{token}") is None
    assert lives(f"{host}/{boot}//{pid}/{int(started) - 1}/{token}") is None


def test_names_of_version_0_1_tell_who_lives_and_not_who_is_dead() -> None:
    host, boot, _, pid, started, token = myself().split("/")
    assert lives(f"{host}/{boot[:8]}/{pid}/{started}/{token}") is True
    assert lives(f"{host}/{boot[:8]}/{pid}/{int(started) - 1}/{token}") is None
    assert lives(f"elsewhere/{boot[:8]}/{pid}/{started}/{token}") is None
