"""Checks of crashes and secrets: no run starts twice or gets lost, no process is left behind, no secret leaks."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

from lynceus.executors.interface import OwnedResource, Request, ResourceKind, SupportsCleanup
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.trial.outcome import End, FailureReason

_ONCE = 'echo "$LYNCEUS_TRIAL" >> "$FOLDER/log"; echo \'::lynceus {"loss": 1}\'; sleep 0.5'
_LONG = 'echo $$ >> "$FOLDER/pids"; echo $PPID >> "$FOLDER/parent"; (setsid sleep 1000 &); touch "$FOLDER/ready"; exec sleep 1000'


def _launched_twice(harness: ExecutorHarness) -> None:
    job, request = harness.job(_ONCE), harness.request()
    with harness.executor(job) as executor:
        first, second = executor.launch(request), executor.launch(request)
    with harness.executor(job) as executor:
        third = executor.launch(request)
        assert first == second == third, f"one run has the tickets {first}, {second} and {third}"
        outcome = harness.wait(executor, first)
        assert outcome.end is End.FINISHED, outcome
        assert executor.launch(request) == first
        assert executor.collect(first) == outcome, "launching a run again that had ended changed its outcome"
    assert harness.lines() == ["0"], f"the job ran {len(harness.lines())} times"


def _crash_after_launch(harness: ExecutorHarness) -> None:
    job, request = harness.job(_ONCE), harness.request()

    def crash() -> None:
        with harness.executor(job) as executor:
            executor.launch(request)
            os.kill(os.getpid(), signal.SIGKILL)

    assert harness.call_in_process(crash) != 0
    _, outcome = harness.run(job, request)
    assert outcome.end is End.FINISHED, outcome
    assert harness.lines() == ["0"], f"the job ran {len(harness.lines())} times"


def _crash_at_any_moment(harness: ExecutorHarness) -> None:
    """A launcher is killed at different moments; the next one completes the launch, and the job runs once."""
    job = harness.job(_ONCE)
    for number, milliseconds in enumerate((1, 5, 20, 80)):
        request = harness.request(number)

        def crash(request: Request = request, seconds: float = milliseconds / 1000) -> None:
            signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            with harness.executor(job) as executor:
                signal.setitimer(signal.ITIMER_REAL, seconds)
                executor.launch(request)
                signal.pause()

        harness.call_in_process(crash)
        _, outcome = harness.run(job, request)
        assert outcome.end is End.FINISHED, outcome
    assert sorted(harness.lines()) == ["0", "1", "2", "3"], f"these trials ran: {harness.lines()}"


def _found_again(harness: ExecutorHarness) -> None:
    job, request = harness.job(_ONCE), harness.request()
    with harness.executor(job) as executor:
        ticket = executor.launch(request)
    note = harness.folder / "seen by another process"

    def collect() -> None:
        with harness.executor(job) as executor:
            note.write_text(repr(harness.wait(executor, ticket)), encoding="utf-8")

    assert harness.call_in_process(collect) == 0, "a new process cannot collect the run"
    with harness.executor(job) as executor:
        outcome = harness.wait(executor, ticket)
    assert outcome.end is End.FINISHED, outcome
    assert note.read_text(encoding="utf-8") == repr(outcome), "two processes saw different outcomes"


def _supervisor_killed(harness: ExecutorHarness) -> None:
    """The supervisor is killed: the run fails with all its processes, and not because of its configuration."""
    if not harness.jobs_are_local:
        return
    with harness.executor(harness.job(_LONG)) as executor:
        ticket = executor.launch(harness.request())
        harness.wait_for_file(executor, ticket, "ready")
        harness.kill("parent")
        outcome = harness.wait(executor, ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA), outcome
    assert outcome.detail, "the outcome has no detail"
    harness.check_all_ended()


def _cleanup(harness: ExecutorHarness) -> None:
    """A running run is among the owned resources and can be removed; afterwards only its directory is left."""
    with harness.executor(harness.job(_LONG)) as executor:
        assert isinstance(executor, SupportsCleanup), "an executor lists and removes what it created (SupportsCleanup)"
        ticket = executor.launch(harness.request())
        harness.wait_for_file(executor, ticket, "ready")
        harness.wait_until(lambda: _running(executor, harness), "a running run among the owned resources")
        assert executor.collect(ticket) is None
        for one in _running(executor, harness):
            executor.remove(one)
            executor.remove(one)
        harness.check_all_ended()
        harness.wait_until(lambda: not _running(executor, harness), "owned resources without those that were removed")
        outcome = harness.wait(executor, ticket)
        assert outcome.end is End.FAILED, outcome
        for one in _owned(executor, harness):
            if one.kind is ResourceKind.DIRECTORY:
                executor.remove(one)
        assert not Path(ticket).exists(), "the directory still exists after its removal"


def _owned(executor: SupportsCleanup, harness: ExecutorHarness) -> list[OwnedResource]:
    return [one for one in executor.owned_resources() if one.identity == harness.identity]


def _running(executor: SupportsCleanup, harness: ExecutorHarness) -> list[OwnedResource]:
    return [one for one in _owned(executor, harness) if one.kind is not ResourceKind.DIRECTORY and one.number == 0]


def _secrets(harness: ExecutorHarness) -> None:
    secret = "hunter2-tr0ub4dor-and-more"
    script = 'test "$TOKEN" = hunter2-tr0ub4dor-and-"more" && echo "it is $TOKEN" && echo "and $TOKEN" >&2; touch "$FOLDER/ready"; '
    script += 'while [ ! -e "$FOLDER/go" ]; do sleep 0.05; done; echo "$TOKEN was used" >&2; exit 4'
    with harness.executor(harness.job(script, TOKEN=secret)) as executor:
        ticket = executor.launch(harness.request())
        harness.wait_for_file(executor, ticket, "ready")
        arguments = _all_arguments() if harness.jobs_are_local else b""
        (harness.folder / "go").touch()
        outcome = harness.wait(executor, ticket)
    assert secret.encode() not in arguments, "a secret is among the arguments of a process"
    assert "4" in outcome.detail, f"the job did not receive the secret: {outcome}"
    assert secret not in repr(outcome), "a secret is in the outcome"
    for path in harness.folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a supervisor may still be writing
            assert not path.is_file() or secret.encode() not in path.read_bytes(), f"there is a secret in {path}"
    assert b"it is ***" in Path(ticket, "stdout").read_bytes(), (
        "the output is missing, or the secret in it is not masked"
    )


def _all_arguments() -> bytes:
    found = b""
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found += Path("/proc", name, "cmdline").read_bytes()
            except OSError:
                continue
    return found


SURVIVAL_CHECKS: dict[str, Callable[[ExecutorHarness], None]] = {
    "a run that is launched twice runs once": _launched_twice,
    "a crash after the launch is harmless": _crash_after_launch,
    "a crash during the launch is harmless": _crash_at_any_moment,
    "another process finds the run": _found_again,
    "a killed supervisor is an infrastructure failure": _supervisor_killed,
    "owned resources are listed and can be removed": _cleanup,
    "secrets do not leak": _secrets,
}
