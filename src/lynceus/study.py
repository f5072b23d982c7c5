"""A study: ask for a configuration to run, tell how it went. The words are Optuna's."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from numbers import Integral
from types import NoneType
from typing import TYPE_CHECKING

from lynceus.conduct import Conduct, as_seen, confirmation, failing, held_back_usd, to_be_moved, typical
from lynceus.errors import InputError, expect
from lynceus.estimate import TimeEstimator
from lynceus.executor.executor import Clock, WallClock
from lynceus.history import End, History, Observation, Order, Outcome, Plan, Reason, Told
from lynceus.ledger import Ledger, MemoryLedger, OpenRun, StillLedger, Wish
from lynceus.policy import (
    Because,
    Policy,
    Recommendation,
    Stopped,
    absorb,
    affordable_seconds,
    decide,
    order_of,
    preset,
    recommend,
    used_up,
    worthwhile,
)
from lynceus.problem import Budget, Goal, Limit, Problem, Tariff
from lynceus.situation import Situation, feasible_runs, is_warm
from lynceus.space import Space
from lynceus.trial import (
    ENDS,
    STATES,
    SeenTrial,
    Trial,
    TrialState,
    checked_metrics,
    checked_progress,
    member,
    open_trial,
    seen_trial,
)
from lynceus.units import parse_duration, parse_money

if TYPE_CHECKING:
    from lynceus.ledger.sql import Storage

__all__ = ["STATES", "Study", "Trial", "TrialState", "create_study"]


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
        conduct: Conduct | None = None,
    ) -> None:
        self.problem, self.policy, self.seed, self.name = problem, policy, seed, name
        self._ledger: Ledger = MemoryLedger() if ledger is None else ledger
        self._clock: Clock = WallClock() if clock is None else clock
        self.conduct = Conduct() if conduct is None else conduct
        self._began = self._clock.now()
        self._transient: Stopped | None = None
        self._funded = problem
        self.decision_s = 0.0
        """Seconds that the last decision of this object took."""

    # Asking ------------------------------------------------------------------------------------------------------------

    def ask(self) -> Trial | None:
        """The next trial; nothing when the study is over (`reason` says why) or must wait for open trials."""
        order = self.order()
        return None if order is None else self.trial(order)

    def order(self, slots: int = 1) -> Order | None:
        """Like `ask`, for executors; `slots` says how many runs they could start now, see `decide`."""
        ledger = self._ledger
        with ledger.exclusive():
            began = time.perf_counter()
            # Other workers, perhaps of one trial each, want their share, too.
            step = self._step(max(slots, self.conduct.parallel - len(ledger.pending)))
            self.decision_s = time.perf_counter() - began
            if isinstance(step, Order):
                self._transient = None
                ledger.ordered(step, self.problem.space.point(step.row))
                return step
            self._transient = step
            if not ledger.open_runs and ledger.stopped is None:
                ledger.closed(step)
            return None

    def _step(self, slots: int = 1) -> Order | Stopped:
        """The next run, or why there is none now; inside the ledger's lock."""
        ledger = self._ledger
        if ledger.wish is not Wish.RUN:
            return Stopped(Because.USER, "stopped by the user")
        if ledger.stopped is not None and not ledger.queue:
            return ledger.stopped
        history, pending = ledger.history, ledger.pending
        if (explanation := failing(history, ledger.resumed_at, self.conduct)) is not None:
            return Stopped(Because.PAUSED, f"{explanation}; look at them, then resume")
        happened, history = history, as_seen(history, self.conduct)
        whole = self._problem_with(self.budget_usd)
        problem = whole
        if self.conduct.confirm_best:
            problem = self._problem_with(self.budget_usd - held_back_usd(whole, history, self.conduct))
        active_s = ledger.active_s
        elapsed_s = self._clock.now() - self._began if active_s is None else active_s
        over = used_up(problem, len(history) + len(pending), elapsed_s)
        step = (
            over
            or self._enqueued(problem, history, slots)
            or self._moved(problem, happened, slots)
            or decide(problem, self.policy, history, pending, seed=self.seed, elapsed_s=elapsed_s, slots=slots)
        )
        if isinstance(step, Stopped) and not pending and self.conduct.confirm_best:
            step = confirmation(whole, history, pending, self.conduct) or step
        return step

    def _problem_with(self, usd: float) -> Problem:
        if usd == self.problem.budget.usd:
            return self.problem
        if usd != self._funded.budget.usd:
            self._funded = self.problem.with_budget(usd)
        return self._funded

    def enqueue_trial(self, params: Mapping[str, object]) -> None:
        """Run this configuration next, before anything that the policy would choose."""
        expect(params, Mapping, "enqueue_trial: params", "a mapping such as {'nodes': 4}")
        row = self.problem.space.row(dict(params))
        with self._ledger.exclusive():
            self._ledger.enqueued((*self._ledger.queue, row))

    def stop(self, reason: str = "stopped by the user", *, kill: bool = False) -> None:
        """Ask for no further trials; workers let those that run come to their end, or end them too. What is over stays as it ended."""
        with self._ledger.exclusive():
            if self.over:
                return
            self._ledger.closed(Stopped(Because.USER, reason))
            self._ledger.wished(Wish.KILL if kill else Wish.STOP)

    def stop_trial(self, trial: Trial | int) -> None:
        """End one open trial; whoever runs it notices within seconds, ends it and settles it as stopped by a person."""
        with self._ledger.exclusive():
            self._ledger.unwanted(self._open_order(trial, "stop_trial").number)

    def resume(self, add_usd: float = 0.0) -> None:
        """Go on after a stop, a pause or a spent budget, perhaps with more money."""
        if not (math.isfinite(add_usd) and add_usd >= 0):
            raise InputError(f"resume: {add_usd!r} dollars cannot be added; give 0 or more.")
        self._transient = None
        with self._ledger.exclusive():
            self._ledger.resumed(add_usd)

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

    def _enqueued(self, problem: Problem, history: History, slots: int) -> Order | None:
        """The next configuration that a person asked for, if it is still open and affordable."""
        queue, pending = list(self._ledger.queue), self._ledger.pending
        found: Order | None = None
        while queue and found is None:
            row = queue.pop(0)
            situation = worthwhile(Situation.present(problem, history, pending))
            if isinstance(situation, Stopped) or not situation.open[row]:
                continue
            number = len(history) + len(pending)
            cap_s, boots = float(affordable_seconds(situation, slots)[row]), not is_warm(situation)[0, row]
            reserved = 0.0
            if math.isfinite(cap_s):
                charge = problem.tariff.charge(cap_s, float(problem.price[row]), boots=boots)
                reserved = min(charge, float(situation.left[0]))
            found = Order(number, row, cap_s, reserved, Plan(row, why="asked for by the user", stoppable=False), boots)
        if len(queue) != len(self._ledger.queue):
            self._ledger.enqueued(queue)
        return found

    def _moved(self, problem: Problem, happened: History, slots: int) -> Order | None:
        """The next configuration that was interrupted too often on spot machines, on machines that stay; if it is affordable."""
        pending = self._ledger.pending
        plan = to_be_moved(problem, happened, pending, self.conduct)
        if plan is None:
            return None
        situation = Situation.present(problem, as_seen(happened, self.conduct), pending)
        can_win = situation.caps_s()[0, plan.row] > 0 and affordable_seconds(situation, slots)[plan.row] > 0
        return order_of(situation, self.policy, plan, situation.started, slots) if can_win else None

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
        self._ledger.refresh()
        order = self._open_order(trial)
        state = member(TrialState, str(state), "state")
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
            blame = member(Reason, str(reason or "job").lower(), "reason")
        elif reason is not None:
            raise InputError(
                f"tell: reason {str(reason)!r} came with state {state}; only a trial that failed has a reason."
            )
        reported = checked_metrics({**(metrics or {}), **more_metrics}, order.number)
        outcome = Outcome(ENDS[state], seconds, usd, reported, checked_progress(progress, order.number), blame, detail)
        self.settle(order, outcome)

    def settle(self, order: Order, outcome: Outcome) -> Observation:
        """Like `tell`, for executors. A trial settles once: whoever comes second is given what was written down."""
        ledger = self._ledger
        with ledger.exclusive():
            if all(run.order.number != order.number for run in ledger.open_runs):
                for seen in reversed(ledger.history):
                    if seen.order.number == order.number:
                        return seen
            observation = absorb(self.problem, self.policy, as_seen(ledger.history, self.conduct), order, outcome)
            ledger.settled(observation, self.problem.space.point(order.row))
        return observation

    def add_trial(
        self, params: Mapping[str, object], *, runtime: float | str, metrics: Mapping[str, float] | None = None
    ) -> None:
        """A past measurement as free knowledge: nothing is charged, nothing is run."""
        self.add_trials([(params, runtime, metrics or {})])

    def add_trials(self, past: Iterable[tuple[Mapping[str, object], float | str, Mapping[str, float]]]) -> None:
        """Many past measurements at once, each as (configuration, runtime, metrics): all are kept, or none."""
        space = self.problem.space
        with self._ledger.exclusive():
            observations: list[Observation] = []
            for number, (params, runtime, metrics) in enumerate(past, self._ledger.started):
                expect(params, Mapping, "add_trial: params", "a mapping such as {'nodes': 4}")
                row, seconds = space.row(dict(params)), parse_duration(runtime, "add_trial: runtime")
                if seconds == 0.0:
                    raise InputError("add_trial: a run of 0 seconds came; give the measured running time.")
                order = Order(number, row, math.inf, 0.0, Plan(row, why="imported", stoppable=False))
                reported = checked_metrics(metrics, number)
                told = Told(seconds, reported)
                observations.append(Observation(order, Outcome(End.FINISHED, seconds, 0.0, reported), told))
            self._ledger.imported(observations, [space.point(seen.row) for seen in observations])

    def together(self) -> AbstractContextManager[None]:
        """Many changes as one, for example the import of a table: all are kept, or none."""
        return self._ledger.exclusive()

    # For whoever runs the trials ---------------------------------------------------------------------------------------

    def launched(self, number: int, ticket: str) -> None:
        """The run was started; `ticket` finds it again."""
        self._ledger.launched(number, ticket)

    def adopt(self) -> tuple[OpenRun, ...]:
        """Take over the open runs that nobody looks after; with those that are ours already."""
        return self._ledger.adopt()

    def release(self) -> None:
        """Let go of our open runs, so that another worker may take them over."""
        self._ledger.release()

    def heartbeat(self, numbers: Sequence[int]) -> Wish:
        """These runs are looked after; returns what a person wants of the workers by now."""
        self._ledger.heartbeat(numbers)
        return self._ledger.wish

    def refresh(self) -> None:
        """See what other workers have written since."""
        self._ledger.refresh()

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

    def _open_order(self, trial: Trial | int, action: str = "tell") -> Order:
        expect(trial, (Trial, int), f"{action}: trial", "what ask() returned, or its number,")
        number = trial if isinstance(trial, int) else trial.number
        for order in self._ledger.pending:
            if order.number == number:
                return order
        if any(seen.order.number == number for seen in self._ledger.history):
            raise InputError(f"{action}: trial {number} has been told already; a trial is told once.")
        raise InputError(f"{action}: trial {number} was never asked for; call ask() first and tell what it returned.")

    def still(self) -> Study:
        """This study as it is now, for readers: it never changes, and several threads may look at it."""
        ledger = StillLedger.of(self._ledger)
        return Study(
            self.problem,
            self.policy,
            seed=self.seed,
            name=self.name,
            ledger=ledger,
            clock=self._clock,
            conduct=self.conduct,
        )

    @property
    def ledger(self) -> Ledger:
        """The record in which this study is kept."""
        return self._ledger

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
    def open_runs(self) -> tuple[OpenRun, ...]:
        """The same with ticket, worker and times."""
        return self._ledger.open_runs

    @property
    def reason(self) -> str | None:
        """Why the study ended; nothing while it goes on."""
        return None if self.stopped is None else self.stopped.reason

    @property
    def stopped(self) -> Stopped | None:
        """Why the study ended, with its kind."""
        return self._ledger.stopped or self._transient

    @property
    def over(self) -> bool:
        """Whether the search came to its own end, and nothing runs or waits: neither paused nor stopped by a person."""
        ledger = self._ledger
        ended = ledger.stopped is not None and ledger.stopped.because not in (Because.PAUSED, Because.USER)
        return ended and not ledger.open_runs and not ledger.queue

    @property
    def identity(self) -> str:
        """Tells this study apart from every other one, also of the same name."""
        return self._ledger.identity

    @property
    def wish(self) -> Wish:
        """What a person wants of the workers, as of the last look."""
        return self._ledger.wish

    @property
    def budget_usd(self) -> float:
        """The budget of the problem with what was added to it."""
        return self.problem.budget.usd + self._ledger.added_usd

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
        history = self._ledger.history
        advice = recommend(self.problem, self.policy, typical(as_seen(history, self.conduct)), seed=self.seed)
        if advice is None:
            return None
        stopped_early = sum(seen.outcome.end is End.CAPPED for seen in history)
        return replace(advice, spent_usd=self.spent_usd, trials=len(history), stopped_early=stopped_early)

    def time_estimator(self, **fixed: object) -> TimeEstimator:
        """How long the job takes on a machine, for SkyPilot's optimizer: `task.set_time_estimator(study.time_estimator(nodes=4))`.

        `fixed` pins parameters that SkyPilot's resources do not speak of. Of the others, those count that the study would choose.
        """
        history = typical(as_seen(self._ledger.history, self.conduct))
        return TimeEstimator(self.problem, self.policy, history, self.seed, fixed)

    @property
    def best_params(self) -> Mapping[str, object]:
        """The best configuration that was seen to keep every limit."""
        return self.problem.space.point(self._best()[0])

    @property
    def best_value(self) -> float:
        """Its goal value: dollars, seconds, or the metric."""
        value = self._best()[1]
        return -value if self.problem.goal.maximise else value

    @property
    def best_trial(self) -> SeenTrial:
        """The first run of the best configuration that kept every limit."""
        row = self._best()[0]
        runs = (seen_trial(self.problem, seen) for seen in self._ledger.history if seen.row == row)
        return next(run for run in runs if run.keeps_limits)

    @property
    def trials(self) -> list[SeenTrial]:
        """Every trial by its number, open ones included."""
        settled = [seen_trial(self.problem, seen) for seen in self._ledger.history]
        running = [open_trial(self.problem, order) for order in self._ledger.pending]
        return sorted([*settled, *running], key=lambda trial: trial.number)

    def _best(self) -> tuple[int, float]:
        runs = feasible_runs(self.problem, typical(self._ledger.history))
        if not runs:
            raise InputError(f"study {self.name!r}: no trial has kept every limit yet, so there is no best one.")
        return min(runs, key=lambda run: run[1])

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        from lynceus.notebook import study_card  # studies that nobody looks at need no picture

        return study_card(self)


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
    storage: str | Storage | None = None,
    load_if_exists: bool = False,
    conduct: Conduct | None = None,
) -> Study:
    """A new study, in memory or in a storage such as `sqlite:///lynceus.db`.

    `objective` is `cost`, `time`, or like `maximize accuracy`; constraints read `runtime <= 45m @ 0.95`; a budget is money.
    """
    expect(space, Space, "space", "a Space, for example Space.build([Integer('nodes', 1, 8)], price='0.1 * nodes'),")
    expect(objective, (str, Goal), "objective", "a text such as 'cost' or 'maximize accuracy', or a Goal,")
    expect(constraints, (list, tuple), "constraints", "a list such as ['runtime <= 45m']")
    for item in constraints:
        expect(item, (str, Limit), "constraints: one of them", "a text such as 'runtime <= 45m', or a Limit,")
    expect(billing, (Tariff, NoneType), "billing", "a Tariff, for example Tariff(boot_s=60),")
    expect(policy, (str, Policy), "policy", "a name such as 'lynceus', or a Policy,")
    expect(seed, Integral, "seed", "a whole number such as 7")
    expect(study_name, str, "study_name", "a text")
    expect(load_if_exists, bool, "load_if_exists", "True or False")
    expect(conduct, (Conduct, NoneType), "conduct", "a Conduct")
    if seed < 0:
        raise InputError(f"seed is {seed}, but 0 or more is needed.")
    goal = objective if isinstance(objective, Goal) else Goal.parse(objective)
    limits = tuple(item if isinstance(item, Limit) else Limit.parse(item) for item in constraints)
    if not isinstance(budget, Budget):
        budget = Budget(
            usd=parse_money(budget, "budget") if not (isinstance(budget, float) and math.isinf(budget)) else math.inf
        )
    problem = Problem(space, goal, limits, budget, billing or Tariff())
    chosen = policy if isinstance(policy, Policy) else preset(policy)
    if storage is None:
        return Study(problem, chosen, seed=seed, name=study_name, conduct=conduct)
    from lynceus.durable import open_study  # SQLAlchemy is only loaded by those who need it

    return open_study(storage, study_name, problem, chosen, seed=seed, load_if_exists=load_if_exists, conduct=conduct)
