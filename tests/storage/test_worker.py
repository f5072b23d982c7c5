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
    assert lives("elsewhere/" + other.split("/", 1)[1]) is None
    assert lives("nonsense") is None


def test_a_reused_process_id_is_not_the_same_worker() -> None:
    host, boot, pid, started, token = myself().split("/")
    assert lives(f"{host}/{boot}/{pid}/{int(started) - 1}/{token}") is False
    assert lives(f"{host}/another/{pid}/{started}/{token}") is False
