"""Local runs with real processes: what jobs receive, how they end, and that no process is left."""

import fcntl
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from local_runs import Bench, contains, eventually, files_below, problem_of, processes_below
from lynceus.errors import InfrastructureError, InputError
from lynceus.executors import local
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import LostRunError
from lynceus.executors.resources import Resources
from lynceus.executors.supervisor import files
from lynceus.problem.objective import Objective
from lynceus.trial.outcome import End, FailureReason

MakeBench = Callable[..., Bench]

ODD_VALUES = (
    "two words",
    "'single' \"double\"",
    "a; touch pwned",
    "$(touch pwned) `touch pwned`",
    "line\nbreak\ttab",
    "naïve – ünïcode ✓ 日本",
    "${word} $HOME %s \\n *",
    "--looks=like -an option",
    " leading and trailing ",
)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[MakeBench]:
    made: list[Bench] = []

    def make(run: tuple[str, ...] | str, values: tuple[str, ...] = ("a", "b"), **options: object) -> Bench:
        resources = options.pop("resources", None)
        job = JobCommand(run, workdir=tmp_path, **options)  # type: ignore[arg-type]
        made.append(Bench(tmp_path / "runs", job, problem_of(values), resources))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.executor.close()
    assert processes_below(tmp_path) == set()


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


@pytest.mark.parametrize("row", range(len(ODD_VALUES)))
def test_jobs_receive_values_unchanged(bench: MakeBench, tmp_path: Path, row: int) -> None:
    code = (
        "import json, os, sys; seen = [sys.argv[1], os.environ['LYNCEUS_PARAM_WORD'], "
        "json.load(open(os.environ['LYNCEUS_PARAMS']))['word']]; open('seen', 'w').write(json.dumps(seen))"
    )
    assert bench((*python(code), "${word}"), ODD_VALUES).outcome(row).end is End.FINISHED
    assert json.loads((tmp_path / "seen").read_text()) == [ODD_VALUES[row]] * 3
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("row", range(len(ODD_VALUES)))
@pytest.mark.parametrize("shell", [True, False])
def test_scripts_receive_values_unchanged(bench: MakeBench, tmp_path: Path, row: int, shell: bool) -> None:
    script = "printf '%s' ${word} > seen" if shell else "printf '%s' \"$word\" > seen"
    assert bench(script, ODD_VALUES, shell=shell).outcome(row).end is End.FINISHED
    assert (tmp_path / "seen").read_bytes() == ODD_VALUES[row].encode()
    assert not (tmp_path / "pwned").exists()


def test_a_nul_byte_is_refused(bench: MakeBench) -> None:
    with pytest.raises(InputError, match="contains a NUL byte, which arguments and environment variables cannot hold"):
        bench(("echo", "${word}"), ("a\0b",)).launch()


def test_metrics_are_read_from_the_result_file_marked_lines_and_expressions(bench: MakeBench) -> None:
    script = """
    echo '{"accuracy": 0.5, "progress": 0.1}' >> "$LYNCEUS_RESULT"
    echo '{"accuracy": 0.9, "progress": 1}' >> "$LYNCEUS_RESULT"
    echo '::lynceus {"loss": 0.25}'
    echo 'epoch 1 f1=0.7' >&2; echo 'epoch 2 f1=0.8' >&2
    """
    outcome = bench(script, metrics={"f1": r"f1=([\d.]+)"}).outcome()
    assert outcome.metrics == {"accuracy": 0.9, "loss": 0.25, "f1": 0.8}
    assert [progress for _, progress in outcome.trace] == [0.1, 1.0]


def test_the_report_function(bench: MakeBench) -> None:
    code = "from lynceus.client.report import report; report(accuracy=0.75, progress=1)"
    outcome = bench((sys.executable, "-c", code)).outcome()
    assert (outcome.metrics, outcome.end) == ({"accuracy": 0.75}, End.FINISHED)


def test_invalid_reports_are_noted_but_not_fatal(bench: MakeBench) -> None:
    script = """
    printf '%s\n' '{"a": 1}' 'garbage' '[1]' '{"b": "x"}' '{"c": NaN}' '{"d": {}}' '{"e": 1e999}' '{"a": 2' > "$LYNCEUS_RESULT"
    head -c 300000 /dev/urandom >> "$LYNCEUS_RESULT"
    """
    outcome = bench(script).outcome()
    assert (outcome.end, outcome.metrics) == (End.FINISHED, {"a": 1.0})
    assert "one report was ignored (not a JSON object: garbage)" in outcome.detail


def test_a_job_that_does_not_report_its_objective_has_failed(tmp_path: Path) -> None:
    problem = replace(problem_of(), objective=Objective.parse("minimize loss"))
    bench = Bench(tmp_path / "runs", JobCommand("echo '::lynceus {\"lass\": 3}'", workdir=tmp_path), problem)
    outcome = bench.outcome()
    bench.executor.close()
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.JOB)
    assert outcome.detail == "the job finished but did not report loss"


@pytest.mark.parametrize(
    ("script", "reason", "words"),
    [
        ("echo careful >&2; exit 3", FailureReason.JOB, "exit code 3: careful"),
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
    assert (outcome.end, outcome.seconds, outcome.charged_usd) == (End.TIMEOUT, 3.0, 3.0)
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


def test_the_beginning_and_the_end_of_long_output_are_kept(bench: MakeBench) -> None:
    one = bench(python("import sys\nfor i in range(20000): print(f'line {i:06}')"), output_bytes=10_000)
    assert one.outcome().end is End.FINISHED
    output = one.output()
    assert output.startswith(b"line 000000\n")
    assert output.endswith(b"line 019999\n")
    assert b"bytes left out" in output
    assert len(output) <= 10_050


def test_secrets_are_masked_and_not_on_disk(bench: MakeBench, tmp_path: Path) -> None:
    secret = "hunter2-and-more"
    halves = 'printf "${TOKEN%and-more}"; sleep 0.1; echo "${TOKEN#hunter2-}"'
    one = bench(f'{halves}; echo "$TOKEN" >&2; exit 1', secrets={"TOKEN": secret})
    outcome = one.outcome()
    assert (one.output(), one.output("stderr")) == (b"***\n", b"***\n")
    assert outcome.detail == "exit code 1: ***"
    assert [path for path in files_below(tmp_path) if contains(path, secret)] == []


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


def test_a_run_that_is_launched_several_times_runs_once(bench: MakeBench, tmp_path: Path) -> None:
    one = bench("echo ran >> log; sleep 0.3")
    other = Bench(one.root, one.job, one.problem)
    tickets = {maker.launch() for maker in (one, other, one, other)}
    assert len(tickets) == 1
    first, second = one.wait(next(iter(tickets))), other.wait(next(iter(tickets)))
    assert first == second
    one.launch()
    assert one.wait(next(iter(tickets))) == first
    assert (tmp_path / "log").read_text() == "ran\n"
    other.executor.close()


def test_reading_the_status_of_a_starting_run_does_not_stop_it(
    bench: MakeBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading the status holds the lock for a moment. The supervisor waits for it; a second one would start only after 10 s."""
    monkeypatch.setattr(local, "_START_S", math.inf)
    one = bench("true")
    folder = tmp_path / "runs" / "study-id" / "0"
    folder.mkdir(parents=True)
    lock = os.open(folder / files.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    ticket = one.launch()
    eventually(lambda: (folder / files.LOG).exists())  # the supervisor is alive
    time.sleep(0.1)
    assert not (folder / files.STARTED).exists()
    os.close(lock)
    assert one.wait(ticket).end is End.FINISHED


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


def test_a_run_whose_supervisor_was_killed_is_charged_up_to_its_last_heartbeat(
    bench: MakeBench, tmp_path: Path
) -> None:
    one = bench("(setsid sleep 1000 &) ; touch ready; sleep 1000")
    ticket = one.launch(timeout_s=1000.0)
    eventually((tmp_path / "ready").exists)
    started = files.read_json(os.path.join(ticket, files.STARTED))
    assert started is not None
    assert one.executor.collect(ticket) is None
    os.kill(started["pid"], signal.SIGKILL)
    eventually(lambda: not Path("/proc", str(started["pid"])).exists())
    Path(ticket, files.ALIVE).write_text("12.0")
    outcome = one.wait(ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA)
    assert outcome.charged_usd == pytest.approx(12.0, abs=1e-3)
    assert processes_below(tmp_path) == set()
    assert one.executor.collect(ticket) == outcome  # it does not change
    one.launch(timeout_s=1000.0)
    assert one.executor.collect(ticket) == outcome


def test_a_run_prepared_before_a_reboot_is_not_started(bench: MakeBench, tmp_path: Path) -> None:
    one = bench("touch ran")
    ticket = one.launch()
    one.wait(ticket)
    with open(Path(ticket, files.LOCK)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # its supervisor has ended
    request = files.read_json(os.path.join(ticket, files.REQUEST))
    assert request is not None
    for name in (files.OUTCOME, files.STARTED):
        Path(ticket, name).unlink()
    (tmp_path / "ran").unlink()
    files.write_atomically(os.path.join(ticket, files.REQUEST), {**request, "boot": "another"})
    assert one.launch() == ticket
    outcome = one.wait(ticket)
    assert (outcome.reason, outcome.charged_usd) == (FailureReason.INFRA, 0.0)
    assert not (tmp_path / "ran").exists()


def test_a_run_without_a_directory_is_lost(bench: MakeBench) -> None:
    with pytest.raises(LostRunError, match=r"the run directory .* no longer exists"):
        bench(("true",)).executor.collect("/no/such/run")


def test_a_root_that_cannot_be_written_is_an_infrastructure_error(bench: MakeBench, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where a folder should be")
    with pytest.raises(InfrastructureError, match=r"the run directory .* cannot be written"):
        bench(("true",)).launch()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"run": ()}, "there is no command"),
        ({"run": ("a",), "shell": True}, "needs a script, not a list"),
        ({"run": "x", "metrics": {"m": "(["}}, "the expression of 'm' cannot be read"),
        ({"run": "x", "metrics": {"m": "abc"}}, "has 0 groups"),
        ({"run": "x", "grace_s": -1.0}, "grace must not be negative"),
    ],
)
def test_invalid_commands_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        JobCommand(**options)  # type: ignore[arg-type]
