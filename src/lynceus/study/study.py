"""A study: ask for a configuration to run, tell how it went. The names are Optuna's."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from lynceus.errors import InputError, OverrunWarning, expect
from lynceus.executors.interface import Clock, WallClock
from lynceus.policy.policy import Policy
from lynceus.policy.retries import RetryRules, with_retries
from lynceus.problem.job_input import JobInput
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.storage.journal import Journal
from lynceus.storage.memory import MemoryJournal
from lynceus.study.changed_limits import checked_constraints, limit_change
from lynceus.study.past_runs import Past, PastRun, imported
from lynceus.study.runs import StudyRuns
from lynceus.study.view import StudyView
from lynceus.trial.order import Order
from lynceus.trial.outcome import FailureReason, overruns
from lynceus.trial.record import Record, RequestedState
from lynceus.trial.shared_budget import SharedBudget
from lynceus.trial.stop import Stopped, StopReason
from lynceus.trial.trial import Trial, TrialState, run_measured, told_on_error, told_outcome


class Study(StudyView):
    """A problem, a policy and a journal of what happened.

    >>> import lynceus
    >>> space = lynceus.Space.build([lynceus.Categorical("vm", ["small", "large"])], price="0.1 if vm == 'small' else 0.3")
    >>> study = lynceus.create_study(space=space, constraints=["runtime <= 10m"], budget="$1", policy="sweep")
    >>> while (trial := study.ask()) is not None:
    ...     needed = {"small": 900.0, "large": 400.0}[trial.params["vm"]]
    ...     if trial.timeout is not None and needed > trial.timeout:
    ...         study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
    ...     else:
    ...         study.tell(trial, runtime=needed)
    >>> study.best_params, round(study.best_value, 4), study.reason
    ({'vm': 'large'}, 0.0333, 'every configuration has been run')
    """

    def __init__(
        self,
        problem: Problem,
        policy: Policy,
        *,
        seed: int = 0,
        name: str = "study",
        journal: Journal | None = None,
        clock: Clock | None = None,
        retry_rules: RetryRules | None = None,
    ) -> None:
        self._clock: Clock = WallClock() if clock is None else clock
        self._journal: Journal = MemoryJournal(now=self._clock.now) if journal is None else journal
        super().__init__(problem, policy, self._journal.record, seed=seed, name=name, retry_rules=retry_rules)
        self._began = self._clock.now()
        self._waiting: Stopped | None = None
        self._deciding_s = 0.0
        self.decisions = 0
        """Decisions of this object so far."""
        self._runs = StudyRuns(lambda: self.problem, policy, self.retry_rules, self._journal, self._order)

    @property
    def record(self) -> Record:
        """Everything that is written down about the study, as of the last read or write."""
        return self._journal.record

    @property
    def journal(self) -> Journal:
        """Where the study is written down."""
        return self._journal

    @property
    def runs(self) -> StudyRuns:
        """The side of the study that executors use."""
        return self._runs

    @property
    def deciding_s(self) -> float:
        """Seconds that all decisions of this object took so far."""
        return self._deciding_s

    @property
    def stopped(self) -> Stopped | None:
        """Why the study ended, or why it waits for open trials; None while it goes on."""
        return self.record.stopped or self._waiting

    def snapshot(self, *, shared_budgets: tuple[SharedBudget, ...] | None = None) -> StudyView:
        """The study as it is now, for readers: it never changes, and several threads may look at it.

        The budgets that it shares are read from the storage. A reader that wants no decision gives `()`, and needs no storage.
        """
        return StudyView(
            self.problem,
            self.policy,
            self._budgeted_record() if shared_budgets is None else replace(self.record, shared_budgets=shared_budgets),
            seed=self.seed,
            name=self.name,
            retry_rules=self.retry_rules,
            elapsed_s=self._elapsed(),
        )

    def _budgeted_record(self) -> Record:
        return replace(self.record, shared_budgets=self._journal.shared_budgets())

    def _elapsed(self) -> float:
        return self._clock.now() - self._began

    # Asking

    def ask(self) -> Trial | None:
        """The next trial; None when the study is over (`reason` says why) or must wait for open trials."""
        order = self._order(slots=1)
        return None if order is None else Trial.of(self.problem, order)

    def _order(self, slots: int) -> Order | None:
        journal = self._journal
        with journal.exclusive():
            began = time.perf_counter()
            step = self.next_step(slots=slots)
            self._deciding_s += time.perf_counter() - began
            self.decisions += 1
            if step.queue != self.record.queue:
                journal.enqueued(step.queue)
            if isinstance(step.decision, Order):
                self._waiting = None
                journal.ordered(step.decision, self.problem.space.point(step.decision.row))
                return step.decision
            self._waiting = step.decision
            if not self.record.open_runs and self.record.stopped is None:
                journal.closed(step.decision)
            return None

    def enqueue_trial(self, params: Mapping[str, object]) -> None:
        """Run this configuration next, before anything that the policy would choose."""
        expect(params, Mapping, "enqueue_trial: params", "a mapping such as {'nodes': 4}")
        row = self.problem.space.row(dict(params))
        with self._journal.exclusive():
            self._journal.enqueued((*self.record.queue, row))

    def stop(self, reason: str = "stopped by the user", *, kill: bool = False) -> None:
        """Start no further trial; open ones finish, or end now with `kill`. A study that is over stays as it ended."""
        with self._journal.exclusive():
            if not self.over:
                requested = RequestedState.KILL if kill else RequestedState.STOP
                self._journal.closed(Stopped(StopReason.USER, reason), requested)

    def stop_trial(self, trial: Trial | int) -> None:
        """End one open trial; its worker notices within seconds, ends it and settles it as stopped by the user."""
        with self._journal.exclusive():
            self._journal.request_cancel(self._open_order(trial, "stop_trial").number)

    def resume(
        self, add_usd: float = 0.0, *, add_trials: int = 0, constraints: Sequence[str | Constraint] = ()
    ) -> None:
        """Go on after a stop, a pause or a spent budget, perhaps with more money or trials, or under other constraints.

        After a pause because of failures of the job, the configurations that failed may run again: the job was mended.

        Each constraint takes the place of that on the same quantity, or is added. All runs count on; those that were stopped under the
        former constraints count as longer than they ran, and may run again where they would run longer now.
        """
        if not (math.isfinite(add_usd) and add_usd >= 0):
            raise InputError(f"resume: {add_usd!r} dollars cannot be added; give 0 or more.")
        if add_trials < 0 or (add_trials and self.problem.budget.trials is None):
            wrong = "give 0 or more" if add_trials < 0 else "the study has no limit on trials"
            raise InputError(f"resume: {add_trials} trials cannot be added; {wrong}.")
        changed = checked_constraints(constraints, "resume: constraints", self.problem.units)
        with self._journal.exclusive():
            self._journal.resumed(add_usd, limit_change(self, changed), add_trials)
        self._waiting = None

    # Telling

    def tell(
        self,
        trial: Trial | int,
        *,
        runtime: float | str | None = None,
        state: TrialState | str = TrialState.COMPLETE,
        reason: FailureReason | str | None = None,
        charged: float | str | None = None,
        metrics: Mapping[str, float] | None = None,
        progress: Sequence[tuple[float, float]] = (),
        detail: str = "",
        **more_metrics: float,
    ) -> None:
        """How a trial went: its running time and metrics. `charged` is the real bill, when it is known.

        A trial that completed beyond its timeout counts as stopped (TIMEOUT). It keeps its true time, and whatever it was charged beyond
        its reservation counts against the budget; a warning and the trial's `detail` say so.
        """
        self._journal.refresh()
        order = self._open_order(trial)
        outcome = told_outcome(
            self.problem,
            order,
            runtime=runtime,
            state=state,
            reason=reason,
            charged=charged,
            metrics={**(metrics or {}), **more_metrics},
            progress=progress,
            detail=detail,
        )
        self.runs.settle(order, outcome)
        for note in overruns(order, outcome):
            warnings.warn(f"trial {order.number}: {note}.", OverrunWarning, stacklevel=2)

    def add_trial(
        self,
        params: Mapping[str, object],
        *,
        runtime: float | str | None = None,
        metrics: Mapping[str, float] | None = None,
        state: TrialState | str = TrialState.COMPLETE,
        reason: FailureReason | str | None = None,
        detail: str = "",
        input: JobInput | Mapping[str, object] | str | None = None,
    ) -> None:
        """A past run as free knowledge: nothing is charged, nothing is run. A stopped run tells that its time is longer.

        `input` is what it read, if not the present one.
        """
        self.add_trials([PastRun(params, runtime, metrics or {}, state, reason, detail)], input=input)

    def add_trials(self, past: Iterable[Past], *, input: JobInput | Mapping[str, object] | str | None = None) -> None:
        """Many past runs at once, as `PastRun`, or finished ones as (configuration, runtime, metrics): all are kept, or none."""
        problem = self.problem if input is None else replace(self.problem, input=JobInput.read(input))
        space = problem.space
        with self._journal.exclusive():
            record = self.record
            known = with_retries(record.observations, self.retry_rules, record.resumed_at)
            found = imported(problem, self.policy, known, record.started, past)
            self._journal.imported(found, [space.point(seen.row) for seen in found])

    def optimize(self, objective: Callable[[Trial], float | Mapping[str, float]], n_trials: int | None = None) -> None:
        """Ask, call, tell until the study ends. `objective` returns seconds, or a mapping with `runtime` and metrics.

        It must itself respect `trial.timeout`; a run that reports the timeout or more counts as stopped by it, and so does a command
        that `subprocess.run(…, timeout=trial.timeout)` ended. Any other error ends the search, too, after the trial was told as failed.
        """
        done = 0
        while (n_trials is None or done < n_trials) and (trial := self.ask()) is not None:
            with told_on_error(trial, self.tell):
                runtime, state, metrics = run_measured(trial, objective)
                self.tell(trial, runtime=runtime, state=state, metrics=metrics)
            done += 1

    def _open_order(self, trial: Trial | int, action: str = "tell") -> Order:
        expect(trial, (Trial, int), f"{action}: trial", "what ask() returned, or its number,")
        number = trial if isinstance(trial, int) else trial.number
        for order in self.pending:
            if order.number == number:
                return order
        if any(seen.order.number == number for seen in self.observations):
            raise InputError(f"{action}: trial {number} has been told already; a trial is told once.")
        raise InputError(f"{action}: trial {number} was never asked for; call ask() first and tell what it returned.")
