"""Promises about single runs: what they report, how they end, what they are charged."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from lynceus.executor.executor import LostRunError
from lynceus.history import End, Outcome, Reason
from lynceus.problem import Tariff
from lynceus.testing.executor_ground import WORDS, Ground

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
"""Ignores SIGTERM, and so do its children, of which some have left its session."""


def _finishes(ground: Ground) -> None:
    script = """
    echo '{"accuracy": 0.5, "progress": 0.1}' >> "$LYNCEUS_RESULT"
    sleep 0.2
    echo '{"accuracy": 0.9, "progress": 1}' >> "$LYNCEUS_RESULT"
    echo '::lynceus {"loss": 0.25}'
    echo "to stdout: $word"; echo "to stderr" >&2
    """
    ticket, outcome = ground.run(ground.job(script))
    assert outcome.end is End.FINISHED, outcome
    assert dict(outcome.metrics) == {"accuracy": 0.9, "loss": 0.25}, f"metrics are {dict(outcome.metrics)}"
    assert [progress for _, progress in outcome.trace] == [0.1, 1.0], f"the trace is {outcome.trace}"
    assert outcome.seconds >= 0.2, f"a job of 0.2 s is said to have run {outcome.seconds} s"
    out, err = (Path(ticket, name).read_text(encoding="utf-8") for name in ("stdout", "stderr"))
    assert "to stdout: plain" in out, f"stdout is {out!r}"
    assert "to stderr" in err, f"stderr is {err!r}"


def _same_for_ever(ground: Ground) -> None:
    job = ground.job('echo done >> "$FOLDER/deeds"; echo \'::lynceus {"loss": 1}\'')
    ticket, outcome = ground.run(job)
    with ground.executor(job) as executor:
        again = [executor.collect(ticket) for _ in range(3)]
    assert again == [outcome] * 3, f"{outcome} came first, then {again}"
    assert ground.deeds() == ["done"]


def _cap(ground: Ground) -> None:
    _, outcome = ground.run(ground.job(_STUBBORN), ground.request(cap_s=2.0))
    assert outcome.end is End.CAPPED, outcome
    assert outcome.seconds == 2.0, f"a run with a cap of 2 s is said to have run {outcome.seconds} s"
    # Who starts machines for the run charges their set-up, too.
    assert 2.0 <= outcome.charged_usd <= 2.0 + ground.patience_s, f"2 s at a dollar per second: {outcome.charged_usd}"
    ground.nobody_lives()


def _no_cap(ground: Ground) -> None:
    _, outcome = ground.run(ground.job(("true",)), ground.request(cap_s=math.inf))
    assert outcome.end is End.FINISHED, outcome


def _cancel(ground: Ground) -> None:
    job = ground.job(_STUBBORN)
    with ground.executor(job) as executor:
        ticket = executor.launch(ground.request())
        ground.until_there(executor, ticket, "ready")
        executor.cancel(ticket)
        executor.cancel(ticket)
        outcome = ground.wait(executor, ticket)
        assert (outcome.end, outcome.reason) == (End.FAILED, Reason.USER), outcome
        executor.cancel(ticket)
        assert executor.collect(ticket) == outcome, "a run that has ended was changed by cancel"
    ground.nobody_lives()


def _cancel_at_once(ground: Ground) -> None:
    with ground.executor(ground.job('echo $$ >> "$FOLDER/pids"; exec sleep 1000')) as executor:
        ticket = executor.launch(ground.request())
        executor.cancel(ticket)
        outcome = ground.wait(executor, ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, Reason.USER), outcome
    if ground.deeds("pids"):
        ground.nobody_lives()


def _failures(ground: Ground) -> None:
    cases: list[tuple[tuple[str, ...] | str, Reason, str]] = [
        ("echo careful >&2; exit 3", Reason.JOB, "exit code 3"),
        ("echo not mine >&2; exit 75", Reason.INFRA, "75"),
        (("no-such-command", "x"), Reason.JOB, "no-such-command"),
        ("echo full: No space left on device >&2; exit 1", Reason.INFRA, "full"),
    ]
    for number, (run, reason, words) in enumerate(cases):
        _, outcome = ground.run(ground.job(run), ground.request(number))
        assert (outcome.end, outcome.reason) == (End.FAILED, reason), f"{run!r}: {outcome}"
        assert words in outcome.detail, f"{run!r}: {outcome.detail!r} does not speak of {words!r}"


def _removed(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)  # a supervisor may still be tidying up there
    return not folder.exists()


def _lost(ground: Ground) -> None:
    job = ground.job(("true",))
    ticket, _ = ground.run(job)
    ground.eventually(lambda: _removed(ground.folder / "runs"), "the runs can be removed")
    with ground.executor(job) as executor:
        for gone in (ticket, f"{ticket}-never"):
            try:
                outcome = executor.collect(gone)
            except LostRunError:
                continue
            raise AssertionError(f"of a run that is gone it is said: {outcome}")
        executor.cancel(f"{ticket}-never")


def _values(ground: Ground) -> None:
    code = "import json, os, sys; open(os.environ['FOLDER'] + '/seen', 'w').write(json.dumps([sys.argv[1], "
    code += (
        "os.environ['LYNCEUS_PARAM_WORD'], os.environ['ODD'], json.load(open(os.environ['LYNCEUS_PARAMS']))['word']]))"
    )
    for row in range(1, len(WORDS)):
        job = ground.job((sys.executable, "-I", "-S", "-c", code, "${word}"), {"ODD": "${word}"})
        _, outcome = ground.run(job, ground.request(row, row))
        assert outcome.end is End.FINISHED, outcome
        seen = json.loads((ground.folder / "seen").read_text(encoding="utf-8"))
        assert seen == [WORDS[row]] * 4, f"{WORDS[row]!r} arrived as {seen}"
    assert not list(ground.folder.rglob("pwned")), "a value was run as a command"


def _charges(ground: Ground) -> None:
    tariff = Tariff(granularity_s=60, boot_s=90, fee_usd=0.5)
    job, problem = ground.job(("sleep", "0.1")), ground.problem(tariff)
    for number, boots in enumerate((True, False)):
        with ground.executor(job, problem) as executor:
            ticket = executor.launch(ground.request(number, boots=boots))
            outcome = ground.wait(executor, ticket)
        least = tariff.charge(outcome.seconds, 1.0, boots=boots)
        assert outcome.seconds < 60, f"a job of 0.1 s is said to have run {outcome.seconds} s: does the queue count?"
        assert outcome.charged_usd >= least, f"{outcome.charged_usd} is charged, less than the tariff's {least}"
        most = tariff.charge(ground.patience_s, 1.0, boots=boots)
        assert outcome.charged_usd <= most, f"{outcome.charged_usd} is charged: is the boot counted twice?"


def _finished(outcome: Outcome) -> bool:
    return outcome.end is End.FINISHED


def _parallel(ground: Ground) -> None:
    script = 'touch "$FOLDER/at-$LYNCEUS_TRIAL"; while [ ! -e "$FOLDER/at-0" ] || [ ! -e "$FOLDER/at-1" ]; do sleep 0.05; done'
    with ground.executor(ground.job(script)) as executor:
        tickets = [executor.launch(ground.request(number)) for number in (0, 1)]
        outcomes = [ground.wait(executor, ticket) for ticket in tickets]
    assert all(map(_finished, outcomes)), outcomes


RUNS: dict[str, Callable[[Ground], None]] = {
    "a job finishes and reports": _finishes,
    "an outcome stays what it is": _same_for_ever,
    "the cap is kept": _cap,
    "a run may have no cap": _no_cap,
    "a run is cancelled": _cancel,
    "a run is cancelled at once": _cancel_at_once,
    "failures have a reason": _failures,
    "a run that is gone is lost": _lost,
    "values arrive byte for byte": _values,
    "time is charged by the tariff": _charges,
    "runs go side by side": _parallel,
}
