"""Real processes: what they receive, how they end, and that nothing of them is left."""

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

from local_runs import Bench, eventually, files_below, holds, problem_of, processes_below
from lynceus.errors import InfrastructureError, InputError
from lynceus.executor import local
from lynceus.executor.command import LocalJob
from lynceus.executor.executor import LostRunError
from lynceus.executor.local import Shape
from lynceus.history import End, Reason
from lynceus.problem import Goal
from lynceus.supervisor import files

Make = Callable[..., Bench]

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
def bench(tmp_path: Path) -> Iterator[Make]:
    made: list[Bench] = []

    def make(run: tuple[str, ...] | str, values: tuple[str, ...] = ("a", "b"), **options: object) -> Bench:
        shape = options.pop("shape", None)
        job = LocalJob(run, workdir=tmp_path, **options)  # type: ignore[arg-type]
        made.append(Bench(tmp_path / "runs", job, problem_of(values), shape))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.executor.close()
    assert processes_below(tmp_path) == set()


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-c", code)


@pytest.mark.parametrize("row", range(len(ODD_VALUES)))
def test_values_arrive_byte_for_byte(bench: Make, tmp_path: Path, row: int) -> None:
    code = (
        "import json, os, sys; seen = [sys.argv[1], os.environ['LYNCEUS_PARAM_WORD'], "
        "json.load(open(os.environ['LYNCEUS_PARAMS']))['word']]; open('seen', 'w').write(json.dumps(seen))"
    )
    assert bench((*python(code), "${word}"), ODD_VALUES).outcome(row).end is End.FINISHED
    assert json.loads((tmp_path / "seen").read_text()) == [ODD_VALUES[row]] * 3
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("row", range(len(ODD_VALUES)))
@pytest.mark.parametrize("shell", [True, False])
def test_scripts_receive_values_byte_for_byte(bench: Make, tmp_path: Path, row: int, shell: bool) -> None:
    script = "printf '%s' ${word} > seen" if shell else "printf '%s' \"$word\" > seen"
    assert bench(script, ODD_VALUES, shell=shell).outcome(row).end is End.FINISHED
    assert (tmp_path / "seen").read_bytes() == ODD_VALUES[row].encode()
    assert not (tmp_path / "pwned").exists()


def test_a_nul_byte_is_refused_with_a_sentence(bench: Make) -> None:
    with pytest.raises(InputError, match="holds a NUL byte, which no argument and no variable can carry"):
        bench(("echo", "${word}"), ("a\0b",)).launch()


def test_metrics_come_by_file_by_marked_lines_and_by_expressions(bench: Make) -> None:
    script = """
    echo '{"accuracy": 0.5, "progress": 0.1}' >> "$LYNCEUS_RESULT"
    echo '{"accuracy": 0.9, "progress": 1}' >> "$LYNCEUS_RESULT"
    echo '::lynceus {"loss": 0.25}'
    echo 'epoch 1 f1=0.7' >&2; echo 'epoch 2 f1=0.8' >&2
    """
    outcome = bench(script, metrics={"f1": r"f1=([\d.]+)"}).outcome()
    assert outcome.metrics == {"accuracy": 0.9, "loss": 0.25, "f1": 0.8}
    assert [progress for _, progress in outcome.trace] == [0.1, 1.0]


def test_the_helper_reports(bench: Make) -> None:
    code = "from lynceus.reporting import report; report(accuracy=0.75, progress=1)"
    outcome = bench((sys.executable, "-c", code)).outcome()
    assert (outcome.metrics, outcome.end) == ({"accuracy": 0.75}, End.FINISHED)


def test_odd_reports_are_noted_and_stop_nothing(bench: Make) -> None:
    script = """
    printf '%s\n' '{"a": 1}' 'garbage' '[1]' '{"b": "x"}' '{"c": NaN}' '{"d": {}}' '{"e": 1e999}' '{"a": 2' > "$LYNCEUS_RESULT"
    head -c 300000 /dev/urandom >> "$LYNCEUS_RESULT"
    """
    outcome = bench(script).outcome()
    assert (outcome.end, outcome.metrics) == (End.FINISHED, {"a": 1.0})
    assert "one report was ignored (not a JSON object: garbage)" in outcome.detail


def test_a_job_that_does_not_report_its_goal_has_failed(tmp_path: Path) -> None:
    problem = replace(problem_of(), goal=Goal.parse("minimize loss"))
    bench = Bench(tmp_path / "runs", LocalJob("echo '::lynceus {\"lass\": 3}'", workdir=tmp_path), problem)
    outcome = bench.outcome()
    bench.executor.close()
    assert (outcome.end, outcome.reason) == (End.FAILED, Reason.JOB)
    assert outcome.detail == "it ended well but did not report loss"


@pytest.mark.parametrize(
    ("script", "reason", "words"),
    [
        ("echo careful >&2; exit 3", Reason.JOB, "exit code 3: careful"),
        ("exit 75", Reason.INFRA, "asks for another try"),
        ("kill -SEGV $$", Reason.JOB, "SIGSEGV"),
        ("kill -KILL $$", Reason.INFRA, "SIGKILL"),
    ],
)
def test_failures_have_a_reason(bench: Make, script: str, reason: Reason, words: str) -> None:
    outcome = bench(script).outcome()
    assert (outcome.end, outcome.reason) == (End.FAILED, reason)
    assert words in outcome.detail


def test_a_command_that_does_not_exist_is_named(bench: Make) -> None:
    outcome = bench(("no-such-command", "x")).outcome()
    assert (outcome.reason, outcome.detail) == (
        Reason.JOB,
        "'no-such-command' cannot be started: No such file or directory",
    )


def test_the_cap_ends_the_run_and_keeps_what_it_had(bench: Make) -> None:
    script = 'echo \'{"accuracy": 0.5, "progress": 0.3}\' > $LYNCEUS_RESULT; echo said; sleep 1000'
    one = bench(script, grace_s=0.1)
    outcome = one.outcome(cap_s=3.0)
    assert (outcome.end, outcome.seconds, outcome.charged_usd) == (End.CAPPED, 3.0, 3.0)
    assert outcome.metrics == {"accuracy": 0.5}
    assert [progress for _, progress in outcome.trace] == [0.3]
    assert one.output() == b"said\n"


def test_a_job_may_end_well_when_it_is_told_to(bench: Make) -> None:
    outcome = bench("trap 'echo bye; exit 0' TERM; sleep 1000 & wait", grace_s=60.0).outcome(cap_s=0.3)
    assert outcome.end is End.CAPPED


def test_no_process_survives_its_run(bench: Make, tmp_path: Path) -> None:
    """Children in other groups and sessions, daemons that forked twice, and those that do not listen to SIGTERM."""
    script = """
    (trap '' TERM; sleep 1000) &
    setsid sleep 1000 &
    (setsid sh -c 'sleep 1000 & exit' &)
    setsid sh -c "trap '' TERM HUP; (setsid sleep 1000 &) ; sleep 1000" &
    touch ready; sleep 1000
    """
    one = bench(script, grace_s=0.2)
    ticket = one.launch(cap_s=1000)
    eventually((tmp_path / "ready").exists)
    eventually(lambda: len(processes_below(tmp_path)) >= 6)
    one.executor.cancel(ticket)
    outcome = one.wait(ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, Reason.USER)
    assert processes_below(tmp_path) == set()


def test_a_daemon_left_behind_is_ended_with_its_run(bench: Make, tmp_path: Path) -> None:
    """It even forgets its environment; as a descendant it is found all the same."""
    daemon = "setsid env -i /bin/sh -c 'echo $$ > daemon; exec sleep 1000'"
    one = bench(f"({daemon} &); while [ ! -s daemon ]; do sleep 0.01; done")
    assert one.outcome().end is End.FINISHED
    assert not Path("/proc", (tmp_path / "daemon").read_text().strip()).exists()


def test_output_is_bounded_with_its_beginning_and_its_end(bench: Make) -> None:
    one = bench(python("import sys\nfor i in range(20000): print(f'line {i:06}')"), output_bytes=10_000)
    assert one.outcome().end is End.FINISHED
    kept = one.output()
    assert kept.startswith(b"line 000000\n")
    assert kept.endswith(b"line 019999\n")
    assert b"bytes left out" in kept
    assert len(kept) <= 10_050


def test_secrets_are_hidden_and_written_nowhere(bench: Make, tmp_path: Path) -> None:
    secret = "hunter2-and-more"
    halves = 'printf "${TOKEN%and-more}"; sleep 0.1; echo "${TOKEN#hunter2-}"'
    one = bench(f'{halves}; echo "$TOKEN" >&2; exit 1', secrets={"TOKEN": secret})
    outcome = one.outcome()
    assert (one.output(), one.output("stderr")) == (b"***\n", b"***\n")
    assert outcome.detail == "exit code 1: ***"
    assert [path for path in files_below(tmp_path) if holds(path, secret)] == []


def test_processors_are_limited(bench: Make) -> None:
    one = bench(python("import os; print(len(os.sched_getaffinity(0)))"), shape=lambda row: Shape(cpus=1))
    one.outcome()
    assert one.output() == b"1\n"


def test_a_memory_limit_ends_the_job_as_out_of_memory(bench: Make) -> None:
    greedy = python("x = bytearray(400 << 20); x[::4096] = b'1' * len(x[::4096]); print('had it')")
    one = bench(greedy, shape=lambda row: Shape(memory_bytes=(100 if row == 0 else 2000) << 20))
    outcome = one.outcome(row=0, number=0)
    assert (outcome.end, outcome.reason) == (End.FAILED, Reason.OOM)
    assert "out of memory" in outcome.detail
    assert one.outcome(row=1, number=1).end is End.FINISHED


def test_a_run_is_started_once_however_often_it_is_launched(bench: Make, tmp_path: Path) -> None:
    one = bench("echo ran >> deeds; sleep 0.3")
    other = Bench(one.root, one.job, one.problem)
    tickets = {maker.launch() for maker in (one, other, one, other)}
    assert len(tickets) == 1
    first, second = one.wait(next(iter(tickets))), other.wait(next(iter(tickets)))
    assert first == second
    one.launch()
    assert one.wait(next(iter(tickets))) == first
    assert (tmp_path / "deeds").read_text() == "ran\n"
    other.executor.close()


def test_a_look_at_a_run_that_is_about_to_start_does_not_stop_it(
    bench: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks holds the lock for a moment. A supervisor that meets it waits; nobody would start another one for 10 s."""
    monkeypatch.setattr(local, "_START_S", math.inf)
    one = bench("true")
    folder = tmp_path / "runs" / "study-id" / "0"
    folder.mkdir(parents=True)
    lock = os.open(folder / files.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    ticket = one.launch()
    eventually(lambda: (folder / files.LOG).exists())  # the supervisor is there
    time.sleep(0.1)
    assert not (folder / files.STARTED).exists()
    os.close(lock)
    assert one.wait(ticket).end is End.FINISHED


def test_a_run_outlives_its_executor(bench: Make) -> None:
    one = bench("sleep 0.5; echo '::lynceus {\"done\": 1}'")
    ticket = one.launch()
    one.executor.close()
    other = Bench(one.root, one.job, one.problem)
    assert other.wait(ticket).metrics == {"done": 1.0}


def test_a_helper_that_was_killed_is_replaced(bench: Make) -> None:
    one = bench(("true",))
    assert one.outcome(number=0).end is End.FINISHED
    assert one.executor._nursery is not None
    os.kill(one.executor._nursery._pid, signal.SIGKILL)
    eventually(lambda: one.executor._nursery is None or not one.executor._nursery.lives())
    assert one.outcome(number=1).end is End.FINISHED


def test_a_run_whose_supervisor_was_killed_is_charged_for_what_ran(bench: Make, tmp_path: Path) -> None:
    one = bench("(setsid sleep 1000 &) ; touch ready; sleep 1000")
    ticket = one.launch(cap_s=1000.0)
    eventually((tmp_path / "ready").exists)
    started = files.read_whole(os.path.join(ticket, files.STARTED))
    assert started is not None
    assert one.executor.collect(ticket) is None
    os.kill(started["pid"], signal.SIGKILL)
    eventually(lambda: not Path("/proc", str(started["pid"])).exists())
    Path(ticket, files.ALIVE).write_text("12.0")
    outcome = one.wait(ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, Reason.INFRA)
    assert outcome.charged_usd == pytest.approx(12.0, abs=1e-3)
    assert processes_below(tmp_path) == set()
    assert one.executor.collect(ticket) == outcome  # and stays so
    one.launch(cap_s=1000.0)
    assert one.executor.collect(ticket) == outcome


def test_a_run_prepared_before_a_reboot_is_not_started(bench: Make, tmp_path: Path) -> None:
    one = bench("touch deed")
    ticket = one.launch()
    one.wait(ticket)
    with open(Path(ticket, files.LOCK)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # its supervisor is gone
    request = files.read_whole(os.path.join(ticket, files.REQUEST))
    assert request is not None
    for name in (files.OUTCOME, files.STARTED):
        Path(ticket, name).unlink()
    (tmp_path / "deed").unlink()
    files.write_whole(os.path.join(ticket, files.REQUEST), {**request, "boot": "another"})
    assert one.launch() == ticket
    outcome = one.wait(ticket)
    assert (outcome.reason, outcome.charged_usd) == (Reason.INFRA, 0.0)
    assert not (tmp_path / "deed").exists()


def test_a_directory_that_is_gone_is_a_lost_run(bench: Make) -> None:
    with pytest.raises(LostRunError, match=r"the run directory .* is gone"):
        bench(("true",)).executor.collect("/no/such/run")


def test_a_root_that_cannot_be_written_is_explained(bench: Make, tmp_path: Path) -> None:
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
def test_wrong_jobs_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        LocalJob(**options)  # type: ignore[arg-type]
