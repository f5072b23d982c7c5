"""A study: ask for a configuration to run, tell how it went. The words are Optuna's."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from lynceus.errors import InputError
from lynceus.executor.executor import Clock, WallClock
from lynceus.history import End, Observation, Order, Outcome, Plan, Reason, Told
from lynceus.ledger import Ledger, MemoryLedger
from lynceus.policy import (
    Policy,
    Recommendation,
    Stopped,
    absorb,
    affordable_seconds,
    decide,
    preset,
    recommend,
    worthwhile,
)
from lynceus.problem import Budget, Goal, Limit, Problem, Tariff
from lynceus.situation import Situation, feasible_runs
from lynceus.space import Space
from lynceus.units import parse_duration, parse_money

_E = TypeVar("_E", bound=enum.StrEnum)


class TrialState(enum.StrEnum):
    """How a trial stands: Optuna's states, and TIMEOUT for runs that were stopped (a lower bound was learnt)."""

    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    TIMEOUT = "TIMEOUT"
    FAIL = "FAIL"


_ENDS = {TrialState.COMPLETE: End.FINISHED, TrialState.TIMEOUT: End.CAPPED, TrialState.FAIL: End.FAILED}
STATES = {end: state for state, end in _ENDS.items()}
"""The state of a trial by how its run ended."""


@dataclass(frozen=True)
class Trial:
    """One configuration to run."""

    number: int
    params: Mapping[str, object]
    timeout: float | None
    """Stop the run after so many seconds; nothing: let it finish."""
    why: str
    """Why this configuration, in one clause."""
    price_usd_per_hour: float
    max_charge_usd: float | None
    """The most that this trial can be charged; set aside in the budget until it is told."""


class Study:
    """A problem, a policy and a record of what happened.

    >>> from lynceus.space import Categorical, Space
    >>> space = Space.build([Categorical("vm", ["small", "large"])], price="0.1 if vm == 'small' else 0.3")
    >>> study = create_study(space=space, constraints=["runtime <= 10m"], budget="$1", policy="sweep")
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
        ledger: Ledger | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.problem, self.policy, self.seed, self.name = problem, policy, seed, name
        self._ledger: Ledger = MemoryLedger() if ledger is None else ledger
        self._clock: Clock = WallClock() if clock is None else clock
        self._began = self._clock.now()
        self._queue: list[int] = []
        self._stopped: Stopped | None = None

    # Asking ------------------------------------------------------------------------------------------------------------

    def ask(self) -> Trial | None:
        """The next trial; nothing when the study is over (`reason` says why) or must wait for open trials."""
        order = self.order()
        return None if order is None else self.trial(order)

    def order(self) -> Order | None:
        """Like `ask`, for executors."""
        if self._stopped is not None and not self._ledger.pending:
            return None
        step = self._enqueued() or decide(
            self.problem,
            self.policy,
            self._ledger.history,
            self._ledger.pending,
            seed=self.seed,
            elapsed_s=self._clock.now() - self._began,
        )
        if isinstance(step, Stopped):
            self._stopped = step
            return None
        self._stopped = None
        self._ledger.ordered(step)
        return step

    def enqueue_trial(self, params: Mapping[str, object]) -> None:
        """Run this configuration next, before anything that the policy would choose."""
        self._queue.append(self.problem.space.row(dict(params)))

    def stop(self, reason: str = "stopped by the user") -> None:
        """Ask for no further trials."""
        from lynceus.policy import Because

        self._stopped = Stopped(Because.CONVERGED, reason)

    def trial(self, order: Order) -> Trial:
        """An order in the user's words."""
        return Trial(
            number=order.number,
            params=self.problem.space.point(order.row),
            timeout=None if math.isinf(order.cap_s) else order.cap_s,
            why=order.plan.why,
            price_usd_per_hour=float(self.problem.price[order.row]) * 3600,
            max_charge_usd=None if math.isinf(order.cap_s) else order.reserved_usd,
        )

    def _enqueued(self) -> Order | None:
        """The next configuration that a person asked for, if it is still open and affordable."""
        while self._queue:
            row = self._queue.pop(0)
            situation = worthwhile(Situation.present(self.problem, self._ledger.history, self._ledger.pending))
            if isinstance(situation, Stopped) or not situation.open[row]:
                continue
            number = len(self._ledger.history) + len(self._ledger.pending)
            cap_s = float(affordable_seconds(situation)[row])
            reserved = math.inf if math.isinf(cap_s) else self.problem.cost(row, cap_s)
            plan = Plan(row, why="asked for by the user", stoppable=False)
            return Order(
                number, row, cap_s, 0.0 if math.isinf(reserved) else min(reserved, float(situation.left[0])), plan
            )
        return None

    # Telling -----------------------------------------------------------------------------------------------------------

    def tell(
        self,
        trial: Trial | int,
        *,
        runtime: float | str | None = None,
        state: TrialState | str = TrialState.COMPLETE,
        reason: Reason | str | None = None,
        charged: float | str | None = None,
        metrics: Mapping[str, float] | None = None,
        progress: Sequence[tuple[float, float]] = (),
        detail: str = "",
        **more_metrics: float,
    ) -> None:
        """How a trial went: its running time and metrics. `charged` overrides what the tariff says, when the real bill is known."""
        order = self._open_order(trial)
        state = _member(TrialState, str(state), "state")
        if state is TrialState.RUNNING:
            raise InputError(f"tell: trial {order.number} is running already; tell COMPLETE, TIMEOUT or FAIL.")
        if runtime is None and state is not TrialState.FAIL:
            raise InputError(f"tell: trial {order.number} needs its running time, for example runtime='12m'.")
        seconds = 0.0 if runtime is None else parse_duration(runtime, f"tell: the runtime of trial {order.number}")
        if seconds == 0.0 and state is TrialState.COMPLETE:
            raise InputError(
                f"tell: trial {order.number} is said to have completed in 0 seconds; give the measured running time."
            )
        price = float(self.problem.price[order.row])
        usd = (
            self.problem.tariff.charge(seconds, price, boots=order.boots)
            if charged is None
            else parse_money(charged, "tell: charged")
        )
        blame = None
        if state is TrialState.FAIL:
            blame = _member(Reason, str(reason or "job").lower(), "reason")
        elif reason is not None:
            raise InputError(
                f"tell: reason {str(reason)!r} came with state {state}; only a trial that failed has a reason."
            )
        reported = _checked_metrics({**(metrics or {}), **more_metrics}, order.number)
        outcome = Outcome(
            _ENDS[state], seconds, usd, reported, tuple((float(t), float(p)) for t, p in progress), blame, detail
        )
        self.settle(order, outcome)

    def settle(self, order: Order, outcome: Outcome) -> Observation:
        """Like `tell`, for executors."""
        observation = absorb(self.problem, self.policy, self._ledger.history, order, outcome)
        self._ledger.settled(observation)
        return observation

    def add_trial(
        self, params: Mapping[str, object], *, runtime: float | str, metrics: Mapping[str, float] | None = None
    ) -> None:
        """A past measurement as free knowledge: nothing is charged, nothing is run."""
        row = self.problem.space.row(dict(params))
        seconds = parse_duration(runtime, "add_trial: runtime")
        number = len(self._ledger.history) + len(self._ledger.pending)
        order = Order(number, row, math.inf, 0.0, Plan(row, why="imported", stoppable=False))
        reported = _checked_metrics(metrics or {}, number)
        outcome = Outcome(End.FINISHED, seconds, 0.0, reported)
        self._ledger.settled(Observation(order, outcome, Told(seconds, reported)))

    def optimize(self, objective: Callable[[Trial], float | Mapping[str, float]], n_trials: int | None = None) -> None:
        """Ask, call, tell until the study ends. `objective` returns seconds, or a mapping with `runtime` and metrics.

        It must itself respect `trial.timeout`; a run that reports the timeout or more counts as stopped by it.
        """
        done = 0
        while (n_trials is None or done < n_trials) and (trial := self.ask()) is not None:
            result = objective(trial)
            values = dict(result) if isinstance(result, Mapping) else {"runtime": float(result)}
            if "runtime" not in values:
                raise InputError(
                    f"optimize: the function returned {sorted(values)} for trial {trial.number}; it must return 'runtime' in seconds."
                )
            runtime = values.pop("runtime")
            stopped = trial.timeout is not None and runtime >= trial.timeout
            self.tell(
                trial, runtime=runtime, state=TrialState.TIMEOUT if stopped else TrialState.COMPLETE, metrics=values
            )
            done += 1

    def _open_order(self, trial: Trial | int) -> Order:
        number = trial if isinstance(trial, int) else trial.number
        for order in self._ledger.pending:
            if order.number == number:
                return order
        if any(seen.order.number == number for seen in self._ledger.history):
            raise InputError(f"tell: trial {number} has been told already; a trial is told once.")
        raise InputError(f"tell: trial {number} was never asked for; call ask() first and tell what it returned.")

    # Looking -----------------------------------------------------------------------------------------------------------

    @property
    def history(self) -> tuple[Observation, ...]:
        """Everything that was run, in order of settling."""
        return self._ledger.history

    @property
    def pending(self) -> tuple[Order, ...]:
        """Trials that have been asked for and not told."""
        return self._ledger.pending

    @property
    def reason(self) -> str | None:
        """Why the study ended; nothing while it goes on."""
        return None if self._stopped is None else self._stopped.reason

    @property
    def stopped(self) -> Stopped | None:
        """Why the study ended, with its kind."""
        return self._stopped

    @property
    def spent_usd(self) -> float:
        """What all settled trials were charged."""
        return sum(seen.outcome.charged_usd for seen in self._ledger.history)

    @property
    def reserved_usd(self) -> float:
        """What open trials may still be charged at most."""
        return sum(order.reserved_usd for order in self._ledger.pending)

    def recommend(self) -> Recommendation | None:
        """The configuration to use from now on; nothing when none is known to keep the limits."""
        return recommend(self.problem, self.policy, self._ledger.history, seed=self.seed)

    @property
    def best_params(self) -> Mapping[str, object]:
        """The best configuration that was seen to keep every limit."""
        return self.problem.space.point(self._best()[0])

    @property
    def best_value(self) -> float:
        """Its goal value: dollars, seconds, or the metric."""
        value = self._best()[1]
        return -value if self.problem.goal.maximise else value

    def _best(self) -> tuple[int, float]:
        runs = feasible_runs(self.problem, self._ledger.history)
        if not runs:
            raise InputError(f"study {self.name!r}: no trial has kept every limit yet, so there is no best one.")
        return min(runs, key=lambda run: run[1])


def create_study(
    *,
    space: Space,
    objective: str | Goal = "cost",
    constraints: Sequence[str | Limit] = (),
    budget: float | str | Budget = math.inf,
    billing: Tariff | None = None,
    policy: str | Policy = "lynceus",
    seed: int = 0,
    study_name: str = "study",
) -> Study:
    """A new study in memory.

    `objective` is `cost`, `time`, or like `maximize accuracy`; constraints read `runtime <= 45m @ 0.95`; a budget is money.
    """
    goal = objective if isinstance(objective, Goal) else Goal.parse(objective)
    limits = tuple(item if isinstance(item, Limit) else Limit.parse(item) for item in constraints)
    if not isinstance(budget, Budget):
        budget = Budget(
            usd=parse_money(budget, "budget") if not (isinstance(budget, float) and math.isinf(budget)) else math.inf
        )
    problem = Problem(space, goal, limits, budget, billing or Tariff())
    return Study(problem, policy if isinstance(policy, Policy) else preset(policy), seed=seed, name=study_name)


def _member(kind: type[_E], text: str, field: str) -> _E:
    try:
        return kind(text)
    except ValueError:
        raise InputError(f"tell: {field} {text!r} is unknown; use one of {', '.join(kind)}.") from None


def _checked_metrics(metrics: Mapping[str, float], number: int) -> dict[str, float]:
    for name, value in metrics.items():
        if not isinstance(value, int | float | np.number) or not math.isfinite(value):
            raise InputError(f"tell: metric {name!r} of trial {number} is {value!r}; report a finite number.")
    return {name: float(value) for name, value in metrics.items()}
