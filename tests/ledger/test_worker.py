import os
import subprocess
import sys

from lynceus.ledger.worker import lives, myself


def test_the_living_the_dead_and_the_unknown() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "from lynceus.ledger.worker import myself; print(myself(), flush=True); input()"],
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
    assert lives(other) is False  # nobody has buried it yet, dead it is
    child.communicate()
    assert lives(other) is False
    assert lives("elsewhere/" + other.split("/", 1)[1]) is None
    assert lives("nonsense") is None


def test_a_number_given_to_another_process_is_not_the_same_worker() -> None:
    host, boot, pid, started, token = myself().split("/")
    assert lives(f"{host}/{boot}/{pid}/{int(started) - 1}/{token}") is False
    assert lives(f"{host}/another/{pid}/{started}/{token}") is False
