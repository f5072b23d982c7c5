"""Local runs with real processes: how they end, and that no process is left."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import lynceus
from local_runs import Bench, MakeBench, eventually, processes_below, python
from lynceus.executors.resources import Resources
from lynceus.executors.supervisor.process_tree import all_processes, is_dead
from lynceus.trial.outcome import End, FailureReason


@pytest.mark.parametrize(
    ("script", "reason", "words"),
    [
        ("echo careful >&2; exit 3", FailureReason.JOB, "exit code 3: careful"),
        ("sleep x", FailureReason.JOB, "exit code 1: sleep: invalid time interval"),
        ("exit 75", FailureReason.INFRA, "asks for a retry"),
        ("kill -SEGV $$", FailureReason.JOB, "SIGSEGV"),
        ("kill -KILL $$", FailureReason.INFRA, "SIGKILL"),
    ],
)
def test_failures_have_a_reason(bench: MakeBench, script: str, reason: FailureReason, words: str) -> None:
    outcome = bench(script).outcome()
    assert (outcome.end, outcome.reason) == (End.FAILED, reason)
    assert words in outcome.detail


def test_a_command_that_does_not_exist_is_named(bench: MakeBench) -> None:
    outcome = bench(("no-such-command", "x")).outcome()
    assert (outcome.reason, outcome.detail) == (
        FailureReason.JOB,
        "'no-such-command' cannot be started: No such file or directory",
    )


def test_a_timeout_stops_the_run_and_keeps_its_results(bench: MakeBench) -> None:
    script = 'echo \'{"accuracy": 0.5, "progress": 0.3}\' > $LYNCEUS_RESULT; echo said; sleep 1000'
    one = bench(script, grace_s=0.1)
    outcome = one.outcome(timeout_s=3.0)
    assert outcome.end is End.TIMEOUT
    assert 3.0 <= outcome.seconds < 10.0
    assert outcome.metrics == {"accuracy": 0.5}
    assert [progress for _, progress in outcome.trace] == [0.3]
    assert one.output() == b"said\n"


def test_a_job_that_exits_with_0_on_sigterm_has_timed_out(bench: MakeBench) -> None:
    outcome = bench("trap 'echo bye; exit 0' TERM; sleep 1000 & wait", grace_s=60.0).outcome(timeout_s=0.3)
    assert outcome.end is End.TIMEOUT


def test_no_process_survives_its_run(bench: MakeBench, tmp_path: Path) -> None:
    """Children in other groups and sessions, daemons that forked twice, and processes that ignore SIGTERM."""
    script = """
    (trap '' TERM; sleep 1000) &
    setsid sleep 1000 &
    (setsid sh -c 'sleep 1000 & exit' &)
    setsid sh -c "trap '' TERM HUP; (setsid sleep 1000 &) ; sleep 1000" &
    touch ready; sleep 1000
    """
    one = bench(script, grace_s=0.2)
    ticket = one.launch(timeout_s=1000)
    eventually((tmp_path / "ready").exists)
    eventually(lambda: len(processes_below(tmp_path)) >= 6)
    one.executor.cancel(ticket)
    outcome = one.wait(ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.USER)
    assert processes_below(tmp_path) == set()


def test_a_daemon_is_killed_at_the_end_of_its_run(bench: MakeBench, tmp_path: Path) -> None:
    """It has an empty environment, but is found as a descendant."""
    daemon = "setsid env -i /bin/sh -c 'echo $$ > daemon; exec sleep 1000'"
    one = bench(f"({daemon} &); while [ ! -s daemon ]; do sleep 0.01; done")
    assert one.outcome().end is End.FINISHED
    assert not Path("/proc", (tmp_path / "daemon").read_text().strip()).exists()


def test_cpus_are_limited(bench: MakeBench) -> None:
    one = bench(python("import os; print(len(os.sched_getaffinity(0)))"), resources=lambda row: Resources(cpus=1))
    one.outcome()
    assert one.output() == b"1\n"


def test_exceeding_the_memory_limit_is_out_of_memory(bench: MakeBench) -> None:
    hungry = python("x = bytearray(400 << 20); x[::4096] = b'1' * len(x[::4096]); print('got it')")
    one = bench(hungry, resources=lambda row: Resources(memory_bytes=(100 if row == 0 else 2000) << 20))
    outcome = one.outcome(row=0, number=0)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.OOM)
    assert "out of memory" in outcome.detail
    assert one.outcome(row=1, number=1).end is End.FINISHED


def test_a_run_outlives_its_executor(bench: MakeBench) -> None:
    one = bench("sleep 0.5; echo '::lynceus {\"done\": 1}'")
    ticket = one.launch()
    one.executor.close()
    other = Bench(one.root, one.job, one.problem)
    assert other.wait(ticket).metrics == {"done": 1.0}


def test_a_fork_server_that_was_killed_is_replaced(bench: MakeBench) -> None:
    one = bench(("true",))
    assert one.outcome(number=0).end is End.FINISHED
    assert one.executor._fork_server is not None
    os.kill(one.executor._fork_server._pid, signal.SIGKILL)
    eventually(lambda: one.executor._fork_server is None or not one.executor._fork_server.is_alive())
    assert one.outcome(number=1).end is End.FINISHED


def test_the_time_to_stop_is_charged(bench: MakeBench) -> None:
    outcome = bench("trap '' TERM; touch ready; while :; do sleep 0.1; done", grace_s=0.5).outcome(timeout_s=0.5)
    assert outcome.end is End.TIMEOUT
    assert outcome.charged_usd >= outcome.seconds + 0.5
    assert 0.5 <= outcome.seconds < outcome.charged_usd - 0.4


UNPRIVILEGED = """
import os, sys
from pathlib import Path
sys.path[:0] = sys.argv[2:]
from local_runs import MakeBench, python, Bench, problem_of
from lynceus.executors.command import JobCommand
from lynceus.executors.resources import Resources
folder = Path(sys.argv[1])
hungry = f"{sys.executable} -I -S -c 'bytearray(600 << 20)'"
daemon = "(setsid env -i /bin/sleep 1000 &)"
scripts = [f"{daemon}; echo '::lynceus {{\\"x\\": 1}}'", hungry, f"{daemon}; trap '' TERM; sleep 1000"]
for number, script in enumerate(scripts):
    job = JobCommand(script, workdir=folder, grace_s=0.2)
    bench = Bench(folder / "runs", job, problem_of(), lambda row: Resources(cpus=1, memory_bytes=200 << 20))
    outcome = bench.outcome(timeout_s=1.0 if number == 2 else 60.0, number=number)
    print(outcome.end, outcome.reason, dict(outcome.metrics))
    bench.executor.close()
"""


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("setpriv"), reason="only root can become another user")
def test_everything_holds_for_an_unprivileged_user() -> None:
    """Who cannot create control groups: memory is limited by rlimits, and daemons are found below their supervisor."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chown(folder, 65534, 65534)
        paths = [str(Path(__file__).parents[1]), str(Path(lynceus.__file__).parents[1]), *filter(None, sys.path)]
        read = [
            "--inh-caps=-all,+dac_read_search",
            "--ambient-caps=-all,+dac_read_search",
        ]  # Python may be in root's home
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *read]
        command = [*user, sys.executable, "-c", UNPRIVILEGED, str(folder), *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        assert done.stdout.splitlines() == ["finished None {'x': 1.0}", "failed oom {}", "capped None {}"], done.stderr
        mine = {process for process in all_processes() if owner_of(process) == 65534}
        assert [process for process in mine if not is_dead(process)] == []


def owner_of(process: int) -> int | None:
    with contextlib.suppress(OSError):
        return os.stat(f"/proc/{process}").st_uid
    return None
