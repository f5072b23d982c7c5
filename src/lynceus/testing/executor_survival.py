"""Promises about crashes and secrets: nothing runs twice, everything is found again, nothing is left, nothing leaks."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

from lynceus.executor.executor import Belonging, Request
from lynceus.history import End, Reason
from lynceus.testing.executor_ground import Ground

_ONCE = 'echo "$LYNCEUS_TRIAL" >> "$FOLDER/deeds"; echo \'::lynceus {"loss": 1}\'; sleep 0.5'
_LONG = 'echo $$ >> "$FOLDER/pids"; echo $PPID >> "$FOLDER/parent"; (setsid sleep 1000 &); touch "$FOLDER/ready"; exec sleep 1000'


def _launched_twice(ground: Ground) -> None:
    job, request = ground.job(_ONCE), ground.request()
    with ground.executor(job) as executor:
        first, second = executor.launch(request), executor.launch(request)
    with ground.executor(job) as executor:
        third = executor.launch(request)
        assert first == second == third, f"one run has the tickets {first}, {second} and {third}"
        outcome = ground.wait(executor, first)
        assert outcome.end is End.FINISHED, outcome
        assert executor.launch(request) == first
        assert executor.collect(first) == outcome, "launching it again changed a run that had ended"
    assert ground.deeds() == ["0"], f"the job ran {len(ground.deeds())} times"


def _crash_after_launch(ground: Ground) -> None:
    job, request = ground.job(_ONCE), ground.request()

    def crash() -> None:
        with ground.executor(job) as executor:
            executor.launch(request)
            os.kill(os.getpid(), signal.SIGKILL)

    assert ground.elsewhere(crash) != 0
    _, outcome = ground.run(job, request)
    assert outcome.end is End.FINISHED, outcome
    assert ground.deeds() == ["0"], f"the job ran {len(ground.deeds())} times"


def _crash_at_any_moment(ground: Ground) -> None:
    """A launcher that is killed sooner and sooner: whatever it had done by then, the next one completes it, once."""
    job = ground.job(_ONCE)
    for number, milliseconds in enumerate((1, 5, 20, 80)):
        request = ground.request(number)

        def crash(request: Request = request, seconds: float = milliseconds / 1000) -> None:
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            with ground.executor(job) as executor:
                signal.setitimer(signal.ITIMER_REAL, seconds)
                executor.launch(request)
                signal.pause()

        ground.elsewhere(crash)
        _, outcome = ground.run(job, request)
        assert outcome.end is End.FINISHED, outcome
    assert sorted(ground.deeds()) == ["0", "1", "2", "3"], f"these trials ran: {ground.deeds()}"


def _found_again(ground: Ground) -> None:
    job, request = ground.job(_ONCE), ground.request()
    with ground.executor(job) as executor:
        ticket = executor.launch(request)
    note = ground.folder / "seen elsewhere"

    def collect() -> None:
        with ground.executor(job) as executor:
            note.write_text(repr(ground.wait(executor, ticket)), encoding="utf-8")

    assert ground.elsewhere(collect) == 0, "a new process cannot collect the run"
    with ground.executor(job) as executor:
        outcome = ground.wait(executor, ticket)
    assert outcome.end is End.FINISHED, outcome
    assert note.read_text(encoding="utf-8") == repr(outcome), "two processes saw two outcomes"


def _supervisor_killed(ground: Ground) -> None:
    """What enforces the cap dies: the run is over, nobody lives on without it, and it is no fault of the configuration."""
    if not ground.here:
        return
    with ground.executor(ground.job(_LONG)) as executor:
        ticket = executor.launch(ground.request())
        ground.until_there(executor, ticket, "ready")
        ground.kill("parent")
        outcome = ground.wait(executor, ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, Reason.INFRA), outcome
    assert outcome.detail, "nothing is said about the reason"
    ground.nobody_lives()


def _belongings(ground: Ground) -> None:
    """While it runs, a run is among what `belongings` lists, and `end` ends it; afterwards only its directory is left."""
    with ground.executor(ground.job(_LONG)) as executor:
        sweeps = all(hasattr(executor, name) for name in ("belongings", "end"))
        assert sweeps, "an executor lists what it has started (belongings) and can end it (end)"
        ticket = executor.launch(ground.request())
        ground.until_there(executor, ticket, "ready")
        ground.eventually(lambda: _alive(executor, ground), "a run that lives is listed")
        assert executor.collect(ticket) is None
        for one in _alive(executor, ground):
            executor.end(one)  # type: ignore[attr-defined]
            executor.end(one)  # type: ignore[attr-defined]
        ground.nobody_lives()
        ground.eventually(lambda: not _alive(executor, ground), "what was ended is no longer listed")
        outcome = ground.wait(executor, ticket)
        assert outcome.end is End.FAILED, outcome
        kept = [one for one in _ours(executor, ground) if one.kind == "directory"]
        for one in kept:
            executor.end(one)  # type: ignore[attr-defined]
        assert not Path(ticket).exists(), "the directory is there after its end"


def _ours(executor: object, ground: Ground) -> list[Belonging]:
    found: list[Belonging] = executor.belongings()  # type: ignore[attr-defined]
    return [one for one in found if one.identity == ground.identity]


def _alive(executor: object, ground: Ground) -> list[Belonging]:
    return [one for one in _ours(executor, ground) if one.kind != "directory" and one.number == 0]


def _secrets(ground: Ground) -> None:
    secret = "hunter2-tr0ub4dor-and-more"
    script = 'test "$TOKEN" = hunter2-tr0ub4dor-and-"more" && echo "it is $TOKEN" && echo "and $TOKEN" >&2; touch "$FOLDER/ready"; '
    script += 'while [ ! -e "$FOLDER/go" ]; do sleep 0.05; done; echo "$TOKEN was used" >&2; exit 4'
    with ground.executor(ground.job(script, TOKEN=secret)) as executor:
        ticket = executor.launch(ground.request())
        ground.until_there(executor, ticket, "ready")
        arguments = _all_arguments() if ground.here else b""
        (ground.folder / "go").touch()
        outcome = ground.wait(executor, ticket)
    assert secret.encode() not in arguments, "a secret is among the arguments of a process"
    assert "4" in outcome.detail, f"the secret did not arrive: {outcome}"
    assert secret not in repr(outcome), "a secret is in the outcome"
    for path in ground.folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a supervisor may still be tidying up
            assert not path.is_file() or secret.encode() not in path.read_bytes(), f"a secret was left in {path}"
    assert b"it is ***" in Path(ticket, "stdout").read_bytes(), "the output is not kept, or not with *** for the secret"


def _all_arguments() -> bytes:
    found = b""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found += Path("/proc", name, "cmdline").read_bytes()
            except OSError:
                continue
    return found


SURVIVAL: dict[str, Callable[[Ground], None]] = {
    "a run that is launched again runs once": _launched_twice,
    "a crash after the launch is harmless": _crash_after_launch,
    "a crash at any moment of the launch is harmless": _crash_at_any_moment,
    "another process finds a run": _found_again,
    "a killed supervisor is trouble of the machine": _supervisor_killed,
    "what runs is listed and can be ended": _belongings,
    "secrets leave no trace": _secrets,
}
