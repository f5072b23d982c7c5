"""Limits with and without control groups."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.limits import Limits, with_controllers

WITHOUT_GROUPS = "import lynceus.executors.supervisor.limits as limits; limits._own_groups = dict; "
SUPERVISE = "import sys; from lynceus.executors.supervisor.supervise import supervise as s; s(sys.argv[1], {'PATH': '/bin:/usr/bin'}, [])"


def run(directory: Path, code: str, before: str = "", **limits: float) -> dict[str, Any]:
    request: dict[str, Any] = {
        "run": f"test{directory.name}",
        "number": 0,
        "argv": [sys.executable, "-I", "-S", "-c", code],
        "cwd": str(directory),
        "cap_s": 60.0,
        "grace_s": 1.0,
        "output_bytes": 10_000,
        **limits,
    }
    files.write_atomically(str(directory / files.REQUEST), request)
    subprocess.run([sys.executable, "-c", before + SUPERVISE, str(directory)], check=True)
    record: dict[str, Any] = json.loads((directory / files.OUTCOME).read_text())
    return record


HUNGRY = "x = bytearray(600 << 20); x[::4096] = b'1' * len(x[::4096])"


@pytest.mark.parametrize("before", ["", WITHOUT_GROUPS], ids=["groups", "rlimits"])
def test_memory_is_limited_with_and_without_groups(tmp_path: Path, before: str) -> None:
    record = run(tmp_path, HUNGRY, before, memory_bytes=200 << 20)
    assert (record["end"], record["reason"]) == ("failed", "oom")


@pytest.mark.parametrize("before", ["", WITHOUT_GROUPS], ids=["groups", "affinity"])
def test_the_job_sees_its_cpus_with_and_without_groups(tmp_path: Path, before: str) -> None:
    record = run(tmp_path, "import os; print(len(os.sched_getaffinity(0)))", before, cpus=1)
    assert record["end"] == "finished"
    assert (tmp_path / files.STDOUT).read_text() == "1\n"


def test_a_fraction_of_a_cpu(tmp_path: Path) -> None:
    limits = Limits("testprobe", 0.2, None)
    limited = bool([group for group in limits.groups if "/cpu" in group or (Path(group) / "cpu.max").exists()])
    limits.remove()
    if not limited:
        pytest.skip("no control group for CPUs can be created here")
    spin = (
        "import time\nbegan, first = time.monotonic(), time.process_time()\nwhile time.monotonic() < began + 1.5: pass\n"
        "print(time.process_time() - first, time.monotonic() - began)"
    )
    assert run(tmp_path, spin, cpus=0.2)["end"] == "finished"
    used, passed = map(float, (tmp_path / files.STDOUT).read_text().split())
    # The kernel grants 20 ms in every 100 ms, or less if it is busy; at most two periods in advance.
    assert used <= 0.2 * passed + 0.05


def test_the_nearest_group_with_controllers_is_used(tmp_path: Path) -> None:
    """As with systemd: slices pass controllers on to their children, sessions do not."""
    session = tmp_path / "user.slice" / "session.scope"
    session.mkdir(parents=True)
    for folder, controllers in ((tmp_path, "cpu memory pids"), (session.parent, "memory cpu"), (session, "")):
        (folder / "cgroup.subtree_control").write_text(controllers + "\n")
    assert with_controllers(str(session), str(tmp_path)) == str(session.parent)
    (session.parent / "cgroup.subtree_control").write_text("memory\n")
    assert with_controllers(str(session), str(tmp_path)) == str(tmp_path)
    (tmp_path / "cgroup.subtree_control").write_text("\n")
    assert with_controllers(str(session), str(tmp_path)) is None


def test_groups_are_removed_after_the_run(tmp_path: Path) -> None:
    run(tmp_path, "pass", cpus=1, memory_bytes=1 << 30)
    groups = json.loads((tmp_path / files.STARTED).read_text())["groups"]
    assert [group for group in groups if Path(group).exists()] == []


@pytest.mark.parametrize("before", ["", WITHOUT_GROUPS], ids=["groups", "none"])
def test_daemons_are_killed_with_and_without_groups(tmp_path: Path, before: str) -> None:
    daemon = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork(): os._exit(0)\n"
        "    open('daemon', 'w').write(str(os.getpid()))\n"
        "    time.sleep(1000)\n"
        "while not os.path.exists('daemon') or not open('daemon').read(): time.sleep(0.01)\n"
    )
    assert run(tmp_path, daemon, before)["end"] == "finished"
    assert not Path("/proc", (tmp_path / "daemon").read_text()).exists()


def test_a_machine_without_memory_kills_the_job_rather_than_its_supervisor(tmp_path: Path) -> None:
    run(tmp_path, "print(open('/proc/self/oom_score_adj').read())")
    ours = int(Path("/proc/self/oom_score_adj").read_text())
    assert int((tmp_path / files.STDOUT).read_text()) == min(ours + 100, 1000)
