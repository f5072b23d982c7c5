"""Run a recurring job once, on the executor that its job file names, and record the run.

The run is written down on this host before it starts, with its ticket once it has one, and with its outcome when it ends. A command that is
killed in between loses nothing: the run goes on under its supervisor, and the next command of this host collects it.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lynceus.errors import InfrastructureError, InputError, LynceusError
from lynceus.executors.bounded_calls import BoundedCalls, NotAnsweringError
from lynceus.executors.interface import Executor, LostRunError, Request
from lynceus.executors.supervisor import files
from lynceus.jobfile.executor import executor_of
from lynceus.jobfile.run_folder import owner_folder
from lynceus.jobfile.secrets import hidden, secrets_of
from lynceus.jobfile.setup_command import run_setup_in
from lynceus.library.recurring.host_state import HostRun, HostState
from lynceus.library.recurring.input_size import parse_size
from lynceus.library.recurring.job_problem import INPUT_SIZE, prepared_job
from lynceus.library.recurring.recurring_job import RecurringJob
from lynceus.library.recurring.reported_run import new_run_id
from lynceus.library.recurring.run_config import RunConfig
from lynceus.library.trial_output import STREAMS, OutputStream
from lynceus.recurring.record import JobRecord, ProductionRun
from lynceus.storage.job_serialization import run_of, run_record
from lynceus.storage.sql.job_writer import check_run_id
from lynceus.trial.outcome import End, FailureReason, Outcome

_POLL_S = (0.02, 1.0)
"""Seconds between two looks at a run: few at first, then in proportion to the time that has passed."""
_BEAT_S = 60.0
"""Seconds between two signs of life of a canary."""
_KEPT_RUNS = 20
"""Directories of ended runs, with their outputs, that stay on this host."""
_LONGEST_TASK = 150
"""Characters of a scheduler's task in the id of a run; longer ones end with a digest."""
AGAIN = "-again"
"""What the id of a run gets that repeats, with the adopted version, what a canary did not finish."""


class FailedRunError(InfrastructureError):
    """A run of a recurring job that did not finish; it is recorded, and another try may finish."""

    see = "recurring.md#when-something-breaks"


@dataclass(frozen=True)
class Watcher:
    """What the caller of `execute` wants to hear, and whether it wants the run to end."""

    output: Callable[[str, str], None] = lambda stream, text: None
    """Called with `stdout` or `stderr` and what is new there."""
    note: Callable[[str], None] = lambda sentence: None
    stopped: Callable[[], bool] = lambda: False
    """Whether the user, or the scheduler, wants the run to end."""


@dataclass(frozen=True)
class Executed:
    """A run that has ended."""

    config: RunConfig
    run: ProductionRun
    recorded: bool
    """Whether the storage has it; otherwise this host keeps it until the storage is back."""


def execute(
    job: RecurringJob,
    *,
    input: float | str | None = None,
    run_id: str | None = None,
    extra: Sequence[str] = (),
    watcher: Watcher | None = None,
) -> Executed:
    """Run the job once and record the run. A canary that does not finish is followed by a run of the adopted version.

    An id that ran before, on whatever host, is not run again: what happened then is returned.
    """
    watcher = watcher or Watcher()
    if job.host is None:
        raise InputError("exec: give the address of a storage, because runs are first written down on this host.")
    given = new_run_id() if run_id is None else run_id
    check_run_id(given + AGAIN)
    size = parse_size(input)
    with _abandoned_runs(job) as collect:
        collect()
        recorded = {} if run_id is None else _recorded(job, run_id)
        done = _execute(job, given, size, extra, watcher, recorded)
        # Some executors connect while the run goes on, and tell only now. What is not found stays for the next command.
        with contextlib.suppress(LynceusError):
            collect()
    return done


def _execute(
    job: RecurringJob,
    given: str,
    size: float | None,
    extra: Sequence[str],
    watcher: Watcher,
    recorded: Mapping[str, Executed],
) -> Executed:
    done = recorded.get(given)
    if done is None:
        done = _execute_once(job, job.config(run_id=given, input=size), given, size, extra, watcher)
    repeats = _is_unfinished_canary(done) or (given in recorded and _never_ran(done.run))
    before = recorded.get(given + AGAIN if repeats else given)
    if before is not None:
        how = "finished" if before.run.end is End.FINISHED else ended_text(before.run)
        watcher.note(f"{job.name}: run {before.run.run_id} {how} before; a run id is not run again.")
        return before
    if not repeats:
        return done
    canary = f"the canary {ended_text(done.run)}"
    what = canary if done.config.canary else f"run {given} was recorded, but never started"
    watcher.note(f"{job.name}: {what}; the adopted version runs now.")
    config = replace(job.config(), run_id=given + AGAIN)
    return _execute_once(job, config, given + AGAIN, size, extra, watcher)


def _recorded(job: RecurringJob, run_id: str) -> dict[str, Executed]:
    """What the storage knows of a run and of its repetition, by their ids: other hosts may have made them, and directories are removed."""
    try:
        record = job.history
    except InfrastructureError:
        return {}  # this host goes on with what its own directories tell
    return {
        run.run_id: Executed(_config_of(job.name, record, run), run, recorded=True)
        for run in record.runs
        if run.run_id in (run_id, run_id + AGAIN)
    }


def _config_of(job: str, record: JobRecord, run: ProductionRun) -> RunConfig:
    params = record.version(run.version).params
    return RunConfig(job, run.version, params, run.run_id, run.canary, run.timeout_s, run.instead_usd)


def _is_unfinished_canary(done: Executed) -> bool:
    """Whether it was a canary that did not finish, for which the adopted version runs; the user may end a run for good."""
    return done.config.canary and done.run.end is not End.FINISHED and done.run.reason is not FailureReason.USER


def _never_ran(run: ProductionRun) -> bool:
    """Whether the infrastructure failed before the job had started."""
    return run.reason is FailureReason.INFRA and run.seconds == 0.0


def collect_abandoned(job: RecurringJob) -> int:
    """Record runs of this host whose command was killed, as far as they have ended; returns how many."""
    with _abandoned_runs(job) as collect:
        return collect()


@contextlib.contextmanager
def _abandoned_runs(job: RecurringJob) -> Iterator[Callable[[], int]]:
    """A function that records the abandoned runs which have ended, and says how many. Their executors stay open until the context ends."""
    executors: dict[str, Executor] = {}

    def outcome_of(kept: HostRun) -> Outcome | None:
        if kept.ticket is None:
            return Outcome.failed(FailureReason.INFRA, "its command was killed before the run started")
        if kept.run_id not in executors:
            run = run_of(kept.facts)
            envs = _variables(job.name, run.version, run.run_id, run.size)
            prepared = prepared_job(job.name, job.document(), extra=kept.extra, envs=envs)
            executors[kept.run_id] = opened.enter_context(executor_of(prepared, secrets_of(prepared.job)))
        return _collected(executors[kept.run_id], kept.ticket)

    def collect() -> int:
        host, count = job.host, 0
        for kept in [] if host is None else host.runs(job.name):
            if kept.ended or not kept.abandoned or host is None or (outcome := outcome_of(kept)) is None:
                continue
            host.keep_run(job.name, _ended_run(kept, outcome))
            count += 1
        with contextlib.suppress(InfrastructureError):  # the storage is away; they wait
            job.deliver()
        return count

    with contextlib.ExitStack() as opened:
        yield collect


def _variables(job: str, version: int, run_id: str, size: float | None) -> dict[str, str]:
    """What the job reads of its run."""
    envs = {"LYNCEUS_JOB": job, "LYNCEUS_JOB_VERSION": str(version), "LYNCEUS_RUN_ID": run_id}
    return envs | ({} if size is None else {INPUT_SIZE: f"{size:.15g}"})


def _execute_once(
    job: RecurringJob, config: RunConfig, run_id: str, size: float | None, extra: Sequence[str], watcher: Watcher
) -> Executed:
    host = job.host
    assert host is not None
    envs = _variables(job.name, config.version, run_id, size)
    prepared = prepared_job(job.name, job.document(), extra=extra, envs=envs)
    secrets = secrets_of(prepared.job)
    seen = host.last_seen(job.name)
    identity = "" if seen is None else seen.identity
    folder = owner_folder(prepared.job, job.name, identity)
    run_setup_in(folder, job.name, prepared.job, secrets, watcher.note)
    row = prepared.problem.space.row(dict(config.params))
    request = Request(job.name, _number(run_id), row, config.params, config.timeout_s, True, identity)
    facts = _begun(config, run_id, size, float(prepared.problem.price[row]) * 3600)
    kept = HostRun(run_id, facts, ended=False, extra=tuple(extra))
    host.keep_run(job.name, kept)
    with executor_of(prepared, secrets) as executor:
        calls = BoundedCalls(executor)
        try:
            following = _Following(job, config, watcher, folder / str(request.number), secrets)
            outcome, kept = _run(calls, request, kept, host, following)
        finally:
            calls.close()
    kept = _ended_run(kept, outcome)
    host.keep_run(job.name, kept)
    _prune(folder)
    try:
        job.deliver()
    except InfrastructureError as error:
        watcher.note(f"{job.name}: the run is kept on this host and recorded later: {error}")
        return Executed(config, run_of(kept.facts), recorded=False)
    return Executed(config, run_of(kept.facts), recorded=True)


@dataclass
class _Following:
    """Looks after a run while it goes on: its output, signs of life of a canary, the user's wish to end it."""

    job: RecurringJob
    config: RunConfig
    watcher: Watcher
    folder: Path
    secrets: dict[str, str]
    beat_s: float = 0.0

    def __post_init__(self) -> None:
        self._streams = {name: OutputStream(self.folder / name) for name in STREAMS}
        self.beat_s = time.monotonic()

    def look(self) -> None:
        """Pass on what is new."""
        for name, stream in self._streams.items():
            try:
                text = stream.read()
            except OSError:
                continue  # it has printed nothing yet, or prints elsewhere
            if text:
                self.watcher.output(name, hidden(text, self.secrets))
        if self.config.canary and time.monotonic() - self.beat_s >= _BEAT_S:
            self.beat_s = time.monotonic()
            # While the storage is away the run goes on, and is recorded later.
            with contextlib.suppress(InfrastructureError), self.job.store.changing(self.job.name) as writer:
                writer.renew_canary(str(self.config.run_id))


def _run(
    executor: Executor, request: Request, kept: HostRun, host: HostState, following: _Following
) -> tuple[Outcome, HostRun]:
    """Launch, wait, and say how it ended."""
    began, cancelled = time.monotonic(), False
    while True:
        if kept.ticket is None:
            try:
                kept = replace(kept, ticket=executor.launch(request))
                host.keep_run(following.job.name, kept)
            except NotAnsweringError:
                pass
            except InputError as error:
                return Outcome.failed(FailureReason.JOB, str(error)), kept
            except (InfrastructureError, OSError) as error:
                return Outcome.failed(FailureReason.INFRA, f"not started: {error}"), kept
        else:
            if not cancelled and following.watcher.stopped():
                cancelled = _cancel(executor, kept.ticket)
            outcome = _collected(executor, kept.ticket)
            following.look()
            if outcome is not None:
                return outcome, kept
        if kept.ticket is None and following.watcher.stopped():
            return Outcome.failed(FailureReason.USER, "stopped before it was launched"), kept
        time.sleep(min(max(_POLL_S[0], 0.02 * (time.monotonic() - began)), _POLL_S[1]))


def _collected(executor: Executor, ticket: str) -> Outcome | None:
    try:
        return executor.collect(ticket)
    except LostRunError as error:
        seconds = error.ran_s or 0.0
        return Outcome.failed(FailureReason.INFRA, f"the run is lost: {error}", seconds=seconds)
    except (InfrastructureError, OSError):
        return None  # the executor does not answer; it may again


def _cancel(executor: Executor, ticket: str) -> bool:
    try:
        executor.cancel(ticket)
    except (InfrastructureError, OSError):
        return False  # asked again
    return True


def _begun(config: RunConfig, run_id: str, size: float | None, usd_per_hour: float) -> dict[str, Any]:
    """The facts of a run before it starts."""
    now = time.time()
    run = ProductionRun(
        run_id,
        config.version,
        0.0,
        now,
        size=size,
        price_usd_per_hour=usd_per_hour,
        started_s=now,
        end=End.FAILED,
        reason=FailureReason.INFRA,
        canary=config.canary,
        timeout_s=config.timeout_s,
        instead_usd=config.instead_usd,
    )
    return run_record(run)


def _ended_run(kept: HostRun, outcome: Outcome) -> HostRun:
    begun = run_of(kept.facts)
    ended_s = time.time()
    run = replace(
        begun,
        seconds=outcome.seconds,
        cost_usd=outcome.charged_usd,
        ended_s=ended_s,
        started_s=begun.started_s if kept.abandoned else ended_s - outcome.seconds,
        end=outcome.end,
        reason=outcome.reason,
        detail=outcome.detail,
    )
    return replace(kept, facts=run_record(run), ended=True)


def ended_text(run: ProductionRun) -> str:
    """How a run ended that did not finish."""
    return "was stopped at its timeout" if run.end is End.TIMEOUT else f"failed ({run.detail or run.reason})"


def task_run_id(job: RecurringJob, task: str) -> str:
    """The run that a try of a scheduler's task is about: the same one until it has failed, then the next one."""
    try:
        runs = job.runs
    except InfrastructureError:  # the storage is away: this host goes on with what it knows
        kept = [] if job.host is None else job.host.runs(job.name)
        runs = tuple(run_of(one.facts) for one in kept if one.ended)
    finished = {run.run_id for run in runs if run.end is End.FINISHED}
    failed = {run.run_id for run in runs if run.run_id not in finished and run.run_id + AGAIN not in finished}
    if len(task) > _LONGEST_TASK:
        task = f"{task[:_LONGEST_TASK]}-{hashlib.sha256(task.encode()).hexdigest()[:12]}"
    number = 1
    while (one := task if number == 1 else f"{task}-{number}") in failed:
        number += 1
    return one


def _number(run_id: str) -> int:
    """What executors know a run by, in place of the number of a trial: the same id is the same run."""
    return int(hashlib.sha256(run_id.encode()).hexdigest()[:13], 16)


def _prune(folder: Path) -> None:
    """Remove the directories of old runs that have ended; Lynceus made them."""
    ended = [
        path
        for path in folder.glob("*")
        if path.name.isdigit() and (path / files.MARKER).exists() and (path / files.OUTCOME).exists()
    ]
    ended.sort(key=lambda path: path.stat().st_mtime)
    for path in ended[:-_KEPT_RUNS]:
        shutil.rmtree(path, ignore_errors=True)
