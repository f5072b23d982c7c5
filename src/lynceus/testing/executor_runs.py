"""Checks of single runs: what they report, how they end, what they are charged."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lynceus.executors.command import Scratch
from lynceus.executors.interface import LostRunError
from lynceus.problem.billing import Billing
from lynceus.testing.executor_harness import WORDS, ExecutorHarness
from lynceus.trial.outcome import End, FailureReason, Outcome

_STUBBORN = """
trap '' TERM
echo $$ >> "$FOLDER/pids"
(trap '' TERM; sh -c 'echo $$ >> "$FOLDER/pids"; exec sleep 1000') &
setsid sh -c 'trap "" TERM HUP; echo $$ >> "$FOLDER/pids"; exec sleep 1000' &
(setsid sh -c 'sh -c "echo \\$\\$ >> $FOLDER/pids; exec sleep 1000" & exit' &)
while [ "$(wc -l < "$FOLDER/pids")" -lt 4 ]; do sleep 0.02; done
touch "$FOLDER/ready"
while true; do sleep 1000; done
"""
"""Ignores SIGTERM, as do its children, some of which are in other sessions."""


def _job_finishes(harness: ExecutorHarness) -> None:
    script = """
    echo '{"accuracy": 0.5, "progress": 0.1}' >> "$LYNCEUS_RESULT"
    sleep 0.2
    echo '{"accuracy": 0.9, "progress": 1}' >> "$LYNCEUS_RESULT"
    echo '::lynceus {"loss": 0.25}'
    echo "to stdout: $word"; echo "to stderr" >&2
    """
    ticket, outcome = harness.run(harness.job(script))
    assert outcome.end is End.FINISHED, outcome
    assert dict(outcome.metrics) == {"accuracy": 0.9, "loss": 0.25}, f"metrics are {dict(outcome.metrics)}"
    assert [progress for _, progress in outcome.trace] == [0.1, 1.0], f"the trace is {outcome.trace}"
    assert outcome.seconds >= 0.2, f"a job of 0.2 s has run {outcome.seconds} s"
    out, err = (Path(ticket, name).read_text(encoding="utf-8") for name in ("stdout", "stderr"))
    assert "to stdout: plain" in out, f"stdout is {out!r}"
    assert "to stderr" in err, f"stderr is {err!r}"


def _outcome_is_stable(harness: ExecutorHarness) -> None:
    job = harness.job('echo done >> "$FOLDER/log"; echo \'::lynceus {"loss": 1}\'')
    ticket, outcome = harness.run(job)
    with harness.executor(job) as executor:
        again = [executor.collect(ticket) for _ in range(3)]
    assert again == [outcome] * 3, f"{outcome} was first, then {again}"
    assert harness.lines() == ["done"]


def _timeout(harness: ExecutorHarness) -> None:
    _, outcome = harness.run(harness.job(_STUBBORN), harness.request(timeout_s=2.0))
    assert outcome.end is End.TIMEOUT, outcome
    assert 2.0 <= outcome.seconds < 4.0, f"a run with a timeout of 2 s has run {outcome.seconds} s"
    # Executors that start machines for the run also charge their setup.
    assert 2.0 <= outcome.charged_usd <= 2.0 + harness.patience_s, f"2 s at a dollar per second: {outcome.charged_usd}"
    harness.check_all_ended()


def _no_timeout(harness: ExecutorHarness) -> None:
    _, outcome = harness.run(harness.job(("true",)), harness.request(timeout_s=math.inf))
    assert outcome.end is End.FINISHED, outcome


def _cancel(harness: ExecutorHarness) -> None:
    job = harness.job(_STUBBORN)
    with harness.executor(job) as executor:
        ticket = executor.launch(harness.request())
        harness.wait_for_file(executor, ticket, "ready")
        executor.cancel(ticket)
        executor.cancel(ticket)
        outcome = harness.wait(executor, ticket)
        assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.USER), outcome
        executor.cancel(ticket)
        assert executor.collect(ticket) == outcome, "cancel changed the outcome of a run that had ended"
    harness.check_all_ended()


def _cancel_after_launch(harness: ExecutorHarness) -> None:
    with harness.executor(harness.job('echo $$ >> "$FOLDER/pids"; exec sleep 1000')) as executor:
        ticket = executor.launch(harness.request())
        executor.cancel(ticket)
        outcome = harness.wait(executor, ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.USER), outcome
    if harness.lines("pids"):
        harness.check_all_ended()


def _failures(harness: ExecutorHarness) -> None:
    cases: list[tuple[tuple[str, ...] | str, FailureReason, str]] = [
        ("echo careful >&2; exit 3", FailureReason.JOB, "exit code 3"),
        ("echo try again >&2; exit 75", FailureReason.INFRA, "75"),
        (("no-such-command", "x"), FailureReason.JOB, "no-such-command"),
        ("echo full: No space left on device >&2; exit 1", FailureReason.INFRA, "full"),
    ]
    for number, (run, reason, words) in enumerate(cases):
        _, outcome = harness.run(harness.job(run), harness.request(number))
        assert (outcome.end, outcome.reason) == (End.FAILED, reason), f"{run!r}: {outcome}"
        assert words in outcome.detail, f"{run!r}: {outcome.detail!r} does not contain {words!r}"


def _removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)  # a supervisor may still be writing there
    return not folder.exists()


def _lost(harness: ExecutorHarness) -> None:
    job = harness.job(("true",))
    ticket, _ = harness.run(job)
    harness.wait_until(lambda: _removed(harness.folder / "runs"), "the removal of the run directories")
    with harness.executor(job) as executor:
        for gone in (ticket, f"{ticket}-never"):
            try:
                outcome = executor.collect(gone)
            except LostRunError:
                continue
            raise AssertionError(f"a run that no longer exists has the outcome {outcome}")
        executor.cancel(f"{ticket}-never")


def _values(harness: ExecutorHarness) -> None:
    code = "import json, os, sys; open(os.environ['FOLDER'] + '/seen', 'w').write(json.dumps([sys.argv[1], "
    code += (
        "os.environ['LYNCEUS_PARAM_WORD'], os.environ['ODD'], json.load(open(os.environ['LYNCEUS_PARAMS']))['word']]))"
    )
    for row in range(1, len(WORDS)):
        job = harness.job((sys.executable, "-I", "-S", "-c", code, "${word}"), {"ODD": "${word}"})
        _, outcome = harness.run(job, harness.request(row, row))
        assert outcome.end is End.FINISHED, outcome
        seen = json.loads((harness.folder / "seen").read_text(encoding="utf-8"))
        assert seen == [WORDS[row]] * 4, f"{WORDS[row]!r} arrived as {seen}"
    assert not list(harness.folder.rglob("pwned")), "a value was executed as a command"


def _charges(harness: ExecutorHarness) -> None:
    billing = Billing(granularity_s=60, boot_s=90, fee_usd=0.5)
    job, problem = harness.job(("sleep", "0.1")), harness.problem(billing)
    for number, boots in enumerate((True, False)):
        with harness.executor(job, problem) as executor:
            ticket = executor.launch(harness.request(number, boots=boots))
            outcome = harness.wait(executor, ticket)
        least = billing.charge(outcome.seconds, 1.0, boots=boots)
        assert outcome.seconds < 60, f"a job of 0.1 s has run {outcome.seconds} s: is the queue included?"
        assert outcome.charged_usd >= least, f"{outcome.charged_usd} is charged, less than the {least} of the billing"
        most = billing.charge(harness.patience_s, 1.0, boots=boots)
        assert outcome.charged_usd <= most, f"{outcome.charged_usd} is charged: is the boot included twice?"


def _finished(outcome: Outcome) -> bool:
    return outcome.end is End.FINISHED


def _parallel(harness: ExecutorHarness) -> None:
    script = 'touch "$FOLDER/at-$LYNCEUS_TRIAL"; while [ ! -e "$FOLDER/at-0" ] || [ ! -e "$FOLDER/at-1" ]; do sleep 0.05; done'
    with harness.executor(harness.job(script)) as executor:
        tickets = [executor.launch(harness.request(number)) for number in (0, 1)]
        outcomes = [harness.wait(executor, ticket) for ticket in tickets]
    assert all(map(_finished, outcomes)), outcomes


_ALONE = """
[ -d "$LYNCEUS_SCRATCH" ] && [ -z "$(ls -A "$LYNCEUS_SCRATCH")" ] || exit 3
echo "$LYNCEUS_TRIAL" > "$LYNCEUS_SCRATCH/value"
echo "$LYNCEUS_SCRATCH" > "$FOLDER/scratch-$LYNCEUS_TRIAL"
while [ ! -e "$FOLDER/scratch-0" ] || [ ! -e "$FOLDER/scratch-1" ]; do sleep 0.05; done
echo "{\\"value\\": $(cat "$LYNCEUS_SCRATCH/value")}" >> "$LYNCEUS_RESULT"
"""


def _scratch(harness: ExecutorHarness) -> None:
    with harness.executor(harness.job(_ALONE)) as executor:
        tickets = [executor.launch(harness.request(number)) for number in (0, 1)]
        outcomes = [harness.wait(executor, ticket) for ticket in tickets]
    assert all(map(_finished, outcomes)), outcomes
    values = [dict(outcome.metrics) for outcome in outcomes]
    assert values == [{"value": 0.0}, {"value": 1.0}], f"runs at the same time read each other's files: {values}"
    _check_gone(harness, *(harness.lines(f"scratch-{number}")[0] for number in (0, 1)))
    _, outcome = harness.run(
        replace(harness.job('[ -z "${LYNCEUS_SCRATCH+set}" ]'), scratch=Scratch("none")), harness.request(2)
    )
    assert _finished(outcome), f"a run without a scratch directory has one: {outcome}"


_INSIDE = """
[ "$PWD" -ef "$LYNCEUS_SCRATCH" ] || exit 3
[ -x tools/show ] && [ ! -L tools ] && [ ! -L tools/show ] || exit 4
[ -L data/large ] && [ ! -e other ] || exit 5
echo "$LYNCEUS_SCRATCH" > "$FOLDER/inside-$LYNCEUS_TRIAL"
./tools/show > cut-off
echo changed > tools/show
if [ "$LYNCEUS_TRIAL" = 1 ]; then exec sleep 1000; fi
echo "{\\"value\\": $(cat cut-off)}" >> "$LYNCEUS_RESULT"
"""


def _started_in_scratch(harness: ExecutorHarness) -> None:
    for name in ("tools", "data"):
        (harness.folder / name).mkdir()
    show = harness.folder / "tools" / "show"
    show.write_text("#!/bin/sh\ncat data/large\n", encoding="utf-8")
    show.chmod(0o755)
    (harness.folder / "data" / "large").write_text("7", encoding="utf-8")
    (harness.folder / "other").touch()
    job = replace(harness.job(_INSIDE), scratch=Scratch("cwd", ("tools",), ("data/*",)))
    _, outcome = harness.run(job)
    assert _finished(outcome), outcome
    assert dict(outcome.metrics) == {"value": 7.0}, f"metrics are {dict(outcome.metrics)}"
    _, outcome = harness.run(job, harness.request(1, timeout_s=1.0))
    assert outcome.end is End.TIMEOUT, outcome
    assert "cat data/large" in show.read_text(encoding="utf-8"), "a run changed a file of the working directory"
    _check_gone(harness, *(harness.lines(f"inside-{number}")[0] for number in (0, 1)))
    left = [path for path in harness.folder.rglob("cut-off") if path.is_file()]
    assert not left, f"a file of a run that was stopped is left where it looks like a result: {left}"


def _check_gone(harness: ExecutorHarness, *paths: str) -> None:
    assert len(set(paths)) == len(paths), f"several runs have one scratch directory: {paths}"
    if harness.jobs_are_local:
        harness.wait_until(lambda: not any(map(os.path.lexists, paths)), f"the removal of {', '.join(paths)}")


RUN_CHECKS: dict[str, Callable[[ExecutorHarness], None]] = {
    "a job finishes and reports": _job_finishes,
    "an outcome never changes": _outcome_is_stable,
    "the timeout is enforced": _timeout,
    "a run may have no timeout": _no_timeout,
    "a run can be cancelled": _cancel,
    "a run can be cancelled right after its launch": _cancel_after_launch,
    "failures have a reason": _failures,
    "a run without a directory is lost": _lost,
    "jobs receive values unchanged": _values,
    "time is charged as the billing says": _charges,
    "runs are parallel": _parallel,
    "runs do not share files in their scratch directories": _scratch,
    "a run can be started in its scratch directory": _started_in_scratch,
}
