"""A recurring job in production, as schedulers and programs see it."""

from __future__ import annotations

import json
import logging
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lynceus.analysis.documents.json import to_json
from lynceus.errors import InfrastructureError, InputError, expect
from lynceus.library.recurring.config_text import ConfigFormat, config_texts, run_variables
from lynceus.library.recurring.host_state import HostRun, HostState, SeenVersion
from lynceus.library.recurring.input_size import parse_size
from lynceus.library.recurring.reported_run import new_run_id, priced, reported_run
from lynceus.library.recurring.run_config import RunConfig
from lynceus.recurring.record import Change, JobRecord, ProductionRun
from lynceus.recurring.settings import Mode, Settings
from lynceus.storage.job_serialization import run_of, run_record
from lynceus.storage.sql.job_writer import JobChangedError, check_run_id
from lynceus.storage.sql.jobs import JobHead, JobStore
from lynceus.storage.sql.storage import Storage
from lynceus.trial.outcome import End

if TYPE_CHECKING:  # models and job files load slowly, and `config` does without
    from lynceus.library.recurring.adopt import Params
    from lynceus.library.recurring.execution import Watcher
    from lynceus.library.recurring.steering import Review

_log = logging.getLogger("lynceus.recurring")


class RecurringJob:
    """A job in production.

    >>> import lynceus
    >>> kept = Storage("sqlite://")  # in memory, for this example; otherwise "sqlite:///lynceus.db"
    >>> space = lynceus.Space.build([lynceus.Integer("nodes", 1, 4)], price="0.6 * nodes")
    >>> study = lynceus.create_study(space=space, budget="$1", study_name="search", storage=kept)
    >>> job = adopt_job("nightly", source="search", params={"nodes": 2}, storage=kept, by="ana")
    >>> config = job.config()
    >>> config.version, config.params
    (1, {'nodes': 2})
    >>> job.record("30m", input="120 GB", run_id="2026-11-18")
    True
    >>> job.record("30m", input="120 GB", run_id="2026-11-18")  # a run is recorded once
    False
    >>> [(run.run_id, run.cost_usd) for run in job.runs]
    [('2026-11-18', 0.6)]
    """

    def __init__(self, name: str, storage: str | Storage, *, host: HostState | None = None) -> None:
        """`storage` is an address, or an open `Storage`. With an address, this host serves the last version that it saw while the
        storage is away, and keeps runs until it is back."""
        expect(name, str, "name", "the name of a job")
        expect(storage, (str, Storage), "storage", "an address such as 'sqlite:///lynceus.db', or a Storage,")
        self.name = name
        self._url = storage if isinstance(storage, str) else storage.url
        self._store = JobStore(storage) if isinstance(storage, Storage) else None
        self.host = HostState(storage) if host is None and isinstance(storage, str) else host

    def __repr__(self) -> str:
        return f"RecurringJob({self.name!r})"

    @property
    def store(self) -> JobStore:
        """The storage's side of it; an error while the storage is away."""
        if self._store is None:
            self._open(create=False)
            assert self._store is not None
        return self._store

    def _open(self, *, create: bool) -> None:
        """Open the storage; it is closed when this object is garbage collected."""
        storage = Storage(self._url, create=create)
        weakref.finalize(self, storage.close)
        self._store = JobStore(storage)

    @property
    def history(self) -> JobRecord:
        """Everything that is written down: versions, runs, the audit."""
        return self.store.load(self.name).record

    @property
    def runs(self) -> tuple[ProductionRun, ...]:
        """The recorded runs, in the order in which they ended."""
        return self.store.load(self.name).record.runs

    def config(self, *, run_id: str | None = None, input: float | str | None = None) -> RunConfig:
        """What is in production; with `run_id`, what this one run is to have, which in mode `apply` may be a canary.

        While the storage is away, it is the last version that this host saw, and never a canary.
        """
        size = parse_size(input)
        if run_id is not None:
            check_run_id(run_id)
        try:
            if run_id is not None:
                from lynceus.library.recurring.steering import begin_run

                found = begin_run(self.store, self.name, run_id, size)
                self._remember(self.store.head(self.name))
                return found
            head = self.store.head(self.name)
        except InfrastructureError:
            seen = self._last_seen()
            if seen is None:
                raise
            return RunConfig(self.name, seen.number, seen.params, run_id, stale=True, reason="the storage is away")
        self._remember(head)
        return RunConfig(self.name, head.version.number, head.version.params)

    def execute(
        self,
        *,
        task: str | None = None,
        input: float | str | None = None,
        arguments: Sequence[str] = (),
        watcher: Watcher | None = None,
    ) -> ProductionRun:
        """Run it once on the executor of its job file, wait for the end and record the run; `FailedRunError` if it did not finish.

        `task` names the work in a scheduler, such as `nightly-report/2026-11-01`: a try of the same task waits for the run of a former try
        that was killed, returns one that finished, and starts another only after one that failed. Without it every call is a run.
        """
        from lynceus.library.recurring.execution import FailedRunError, ended_text, execute, task_run_id

        run_id = None if task is None else task_run_id(self, task)
        run = execute(self, input=input, run_id=run_id, extra=arguments, watcher=watcher).run
        if run.end is not End.FINISHED:
            raise FailedRunError(f"{self.name}: the run {ended_text(run)}.")
        return run

    def config_text(self, to: str, config: RunConfig | None = None) -> str:
        """The configuration in a format: env, json, args, skypilot or spark."""
        wanted, config = ConfigFormat.parse(to), config or self.config()
        if wanted is ConfigFormat.JSON:
            return json.dumps(to_json(config), ensure_ascii=False) + "\n"
        seen = self._last_seen()
        if seen is not None and seen.number == config.version:
            texts: Mapping[str, str] = seen.texts
        else:
            texts = config_texts(self.name, self.document(), config.version, config.params)
        if wanted not in texts:
            raise InputError(
                f"config: job {self.name!r} cannot be written as {wanted}; use another format, such as json."
            )
        return texts[wanted] + (run_variables(config) if wanted is ConfigFormat.ENV else "")

    def document(self) -> Mapping[str, Any]:
        """Its job file, as a study stores it; the one that this host saw last while the storage is away."""
        try:
            return self.store.load(self.name).document
        except InfrastructureError:
            if (seen := self._last_seen()) is None:
                raise
            return seen.document

    def record(
        self,
        runtime: float | str | None,
        *,
        input: float | str | None = None,
        cost: float | str | None = None,
        run_id: str | None = None,
        version: int | None = None,
        state: str = "COMPLETE",
        reason: str | None = None,
        ended_s: float | None = None,
        detail: str = "",
    ) -> bool:
        """Report a run that was made elsewhere; False if it is recorded already. Without `run_id`, every report is a run of its own.

        `state` is COMPLETE, TIMEOUT or FAIL, with `reason` infra, preempted, oom, job or user. Without `cost`, its time at the price of its
        version counts. While the storage is away, the run is kept on this host and recorded later.
        """
        from lynceus.library.recurring.job_problem import todays_problem
        from lynceus.library.recurring.steering import record_runs

        given = new_run_id() if run_id is None else run_id
        check_run_id(given)
        told: dict[str, Any] = {
            "runtime": runtime,
            "input": input,
            "cost": cost,
            "state": state,
            "reason": reason,
            "ended_s": ended_s,
            "detail": detail,
        }
        try:
            self.deliver()
            run = self._reported(given, version, told)
            return record_runs(self.store, self.name, [run])[0]
        except InfrastructureError:
            seen = self._last_seen()
            if seen is None or self.host is None:
                raise
            number = seen.number if version is None else version
            run = reported_run(given, number, now_s=time.time(), **told)
            if number == seen.number:
                run = run_of(priced(run_record(run), todays_problem(seen.document), seen.params))
            self.host.keep_run(self.name, HostRun(given, run_record(run), ended=True))
            return True

    def deliver(self) -> int:
        """Record the runs that this host kept while the storage was away; returns how many. One that is refused is set aside and logged."""
        from lynceus.library.recurring.steering import record_runs

        host, count = self.host, 0
        ended = [] if host is None else [kept for kept in host.runs(self.name) if kept.ended]
        if host is None or not ended:
            return 0
        store = self.store  # one that cannot be opened refuses no run: they wait
        for kept in ended:
            try:
                record_runs(store, self.name, [run_of(kept.facts)])
            except InputError as error:
                host.set_aside_run(self.name, kept.run_id)
                _log.warning("%s: a run that this host kept was not recorded: %s", self.name, error)
                continue
            host.forget_run(self.name, kept.run_id)
            count += 1
        return count

    @property
    def waiting(self) -> int:
        """Runs that have ended and wait on this host until the storage is back."""
        return 0 if self.host is None else sum(kept.ended for kept in self.host.runs(self.name))

    def review(self) -> Review:
        """Look at the runs so far and do what the mode allows; see `Review`."""
        from lynceus.library.recurring.steering import review

        return review(self.store, self.name)

    def rollback(self, to: int | None = None, *, by: str = "", reason: str = "") -> int:
        """Put an earlier version into production, by default the one before the present one; returns its number."""
        stored = self.store.load(self.name)
        number = _earlier(stored.record) if to is None else to
        if number == stored.record.current:
            raise InputError(
                f"job {self.name!r} has version {number} in production already; name another one with --to."
            )
        change = Change(0.0, "rollback", number, by=by, reason=reason or "rolled back by the user")
        try:
            with self.store.changing(self.name, stored.head.sequence) as job:
                job.set_current(number, change)
        except JobChangedError:
            raise InputError(f"job {self.name!r} was changed at the same moment; look at it, then try again.") from None
        self._remember(self.store.head(self.name))
        return number

    def set(self, *, by: str = "", reason: str = "", **changes: Any) -> Settings:
        """Change settings: `mode`, `deadline_s`, `late_chance`, `allowance_usd`, `exclude`, `timezone`, `held` …"""
        with self.store.changing(self.name) as job:
            settings = replace(job.settings, **changes)
            held = settings.held != job.settings.held
            job.set_settings(settings, "hold" if held else "settings", by, reason)
        return settings

    def set_mode(self, mode: str, *, by: str = "", reason: str = "") -> Settings:
        """observe, suggest or apply."""
        return self.set(mode=Mode(mode) if mode in list(Mode) else mode, by=by, reason=reason)

    def hold(self, held: bool = True, *, by: str = "", reason: str = "") -> Settings:
        """The kill switch: nothing is tried and nothing is changed while it is on."""
        return self.set(held=held, by=by, reason=reason)

    def _reported(self, run_id: str, version: int | None, told: dict[str, Any]) -> ProductionRun:
        from lynceus.library.recurring.job_problem import todays_problem

        stored = self.store.load(self.name)
        record, tried = stored.record, stored.record.tried_by(run_id)
        number = tried.number if version is None and tried is not None else version
        number = stored.head.version.number if number is None else number
        run = reported_run(run_id, number, now_s=self.store.storage.clock.now(), **told)
        if not 1 <= number <= len(record.versions):
            raise InputError(
                f"job {self.name!r} has no version {number}; its versions are 1 to {len(record.versions)}."
            )
        made = record.version(number)
        if tried is made:  # also when it was given up because nothing was heard of it for too long
            run = replace(run, canary=True, instead_usd=made.evidence.get("instead_usd"))
            if made.evidence.get("timeout_s") is not None:
                run = replace(run, timeout_s=float(made.evidence["timeout_s"]))
        return run_of(priced(run_record(run), todays_problem(stored.document), made.params))

    def _last_seen(self) -> SeenVersion | None:
        return None if self.host is None else self.host.last_seen(self.name)

    def _remember(self, head: JobHead) -> None:
        """Keep the version in production, with its texts; nothing is computed while it stays the same."""
        if self.host is None:
            return
        seen, number = self.host.last_seen(self.name), head.version.number
        if seen is not None and (seen.identity, seen.number) == (head.identity, number):
            return
        document = self.store.load(self.name).document
        texts = config_texts(self.name, document, number, head.version.params)
        params = dict(head.version.params)
        self.host.remember(SeenVersion(self.name, head.identity, number, params, document, time.time(), texts))


def _earlier(record: JobRecord) -> int:
    """The version that was in production before the present one."""
    before = [one.version for one in record.changes if one.version is not None and "before" in one.evidence]
    for change in reversed(record.changes):
        if change.version == record.current and "before" in change.evidence:
            return int(change.evidence["before"])
    raise InputError(
        f"job {record.name!r} has had no other version in production{'' if before else ' yet'}, so there is nothing to return to."
    )


def adopt_job(
    name: str,
    *,
    source: str | None = None,
    params: Params | None = None,
    storage: str | Storage,
    by: str = "",
    reason: str = "",
    settings: Settings | None = None,
) -> RecurringJob:
    """Make a study's answer, or a given configuration, the production configuration of a job; see `RecurringJob`."""
    from lynceus.library.recurring.adopt import adopt

    job = RecurringJob(name, storage)
    if isinstance(storage, str):
        job._open(create=True)
    head = adopt(job.store, name, source=source, params=params, by=by, reason=reason, settings=settings)
    job._remember(head)
    return job


def load_job(name: str, *, storage: str | Storage) -> RecurringJob:
    """A job of a storage, see `RecurringJob`. While the storage is away, what this host last saw of it."""
    job = RecurringJob(name, storage)
    job.config()
    return job
