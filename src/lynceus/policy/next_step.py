"""The one decider: what a study does next. And `observe`, which turns an outcome into what the model learns.

Both are pure: they depend on values and a random seed only. So an interrupted study resumes by reading its record, a live study can be
replayed, and the command line, the API and the dashboard name the run that `ask` will order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from lynceus.models.state import State
from lynceus.policy.answer import BestBelieved
from lynceus.policy.baseline_run import baseline_order
from lynceus.policy.beliefs import believed_best, cautious, noise_was_seen, with_believed_incumbent
from lynceus.policy.confirmation import confirmation, held_for_confirmation, repeated_reason, search_is_over
from lynceus.policy.deciding_repeats import deciding_repeat
from lynceus.policy.likely_failures import with_chance_to_fail
from lynceus.policy.limit_changes import under_present_limits
from lynceus.policy.orders import ROUNDING, affordable_seconds, order_for
from lynceus.policy.other_inputs import search_here
from lynceus.policy.policy import Policy
from lynceus.policy.reopened_rows import with_reopened_rows
from lynceus.policy.retries import RetryRules, on_demand_move, pause_reason, with_retries
from lynceus.policy.shared_budgets import limiting_budget, payable_usd, shared_budget_stop
from lynceus.problem.problem import Problem
from lynceus.problem.units import format_duration, format_money
from lynceus.space.column import BoolArray
from lynceus.trial.limit_change import present_problem
from lynceus.trial.order import Order, Plan, Purpose
from lynceus.trial.outcome import End, Observation, Observations, Outcome, TrainingTarget, beyond_reservation
from lynceus.trial.record import Record, RequestedState
from lynceus.trial.stop import Stopped, StopReason


@dataclass(frozen=True, slots=True)
class Step:
    """What a study does next."""

    decision: Order | Stopped
    """The next run, or why there is none now."""
    queue: tuple[int, ...]
    """Rows of the queue that are left; those that cannot run any more are dropped."""


def next_step(
    problem: Problem,
    policy: Policy,
    rules: RetryRules,
    record: Record,
    *,
    seed: int,
    elapsed_s: float = 0.0,
    slots: int = 1,
) -> Step:
    """The next run of a study, or the reason why there is none.

    First come the user's requests, a baseline that is to be measured and the queue, then runs that move to on-demand machines, then what
    the policy chooses, and last the confirmation of the incumbent. `elapsed_s` is the study's age where the record does not count the
    time worked. `slots` is the number of runs that could start now, this one included: a run without a timeout gets its fair share of the
    money left. Where budgets are shared with other studies, the run is one that they pay.
    """
    if slots < 1:
        raise ValueError(f"a run was asked for with {slots} slots; it needs one")
    alone = partial(_next_step, problem, policy, rules, record, seed, elapsed_s, slots)
    budget = limiting_budget(record, problem.budget.usd + record.added_usd)
    if budget is None:
        return alone(math.inf)
    most_usd = payable_usd(record)
    decision = alone(most_usd).decision if most_usd > 0 else shared_budget_stop(budget)
    if isinstance(decision, Order):
        # What only the shared money of this month cannot pay stays in the queue.
        asked = decision.plan.purpose is Purpose.QUEUE
        return Step(decision, _without(record.queue, decision.row) if asked else record.queue)
    own = alone(math.inf)
    return Step(shared_budget_stop(budget), record.queue) if isinstance(own.decision, Order) else own


def _without(queue: tuple[int, ...], row: int) -> tuple[int, ...]:
    place = queue.index(row)
    return (*queue[:place], *queue[place + 1 :])


def _next_step(
    problem: Problem,
    policy: Policy,
    rules: RetryRules,
    record: Record,
    seed: int,
    elapsed_s: float,
    slots: int,
    most_usd: float,
) -> Step:
    """The next run where the study may spend `most_usd` dollars in its whole life, or its own budget where that is less."""
    if record.requested_state is not RequestedState.RUN:
        return Step(Stopped(StopReason.USER, "stopped by the user"), record.queue)
    if record.stopped is not None and not record.queue:
        return Step(record.stopped, record.queue)
    if (explanation := pause_reason(record.observations, record.resumed_at, rules)) is not None:
        reason = f"{explanation}; look at them, then resume"
        return Step(Stopped(StopReason.PAUSED, reason), record.queue)
    problem = present_problem(problem, record.limit_changes)
    elapsed_s = elapsed_s if record.active_s is None else record.active_s
    slots = max(slots, rules.parallel - len(record.open_runs))
    whole = problem.with_budget(min(problem.budget.usd + record.added_usd, most_usd), record.added_trials)
    observations = under_present_limits(
        with_retries(record.observations, rules, record.resumed_at), record.limit_changes
    )
    here = search_here(whole, policy, observations, record.resumed_at)
    whole, policy, observations = here.problem, here.policy, here.observations
    if here.broke:
        spent = f"nothing is left of {format_money(whole.budget.usd)}, which runs on other inputs have cost"
        return Step(Stopped(StopReason.BUDGET, spent), record.queue)
    decision, queue = _search_step(whole, policy, rules, record, observations, seed, elapsed_s, slots)
    if isinstance(decision, Order) and search_is_over(
        whole, policy, observations, rules, decision, seed=seed, resumed_at=here.resumed_at
    ):
        decision = Stopped(StopReason.CONVERGED, repeated_reason(whole, policy, observations, seed=seed))
    if isinstance(decision, Stopped) and not record.open_runs and budget_stop(whole, record.ordered, elapsed_s) is None:
        decision = confirmation(whole, policy, observations, rules, seed=seed) or decision
    # Runs on other inputs have numbers, too.
    return Step(decision if isinstance(decision, Stopped) else replace(decision, number=record.started), queue)


def _search_step(
    problem: Problem,
    policy: Policy,
    rules: RetryRules,
    record: Record,
    observations: Observations,
    seed: int,
    elapsed_s: float,
    slots: int,
) -> tuple[Order | Stopped, tuple[int, ...]]:
    """The next run before any confirmation, and the queue that is left."""
    held = held_for_confirmation(problem, policy, observations, rules)
    if (over := budget_stop(problem, record.ordered + held.trials, elapsed_s)) is not None:
        return over, record.queue
    search = problem.with_budget(problem.budget.usd - held.usd)
    state = _with_noise(State.present(search, observations, record.pending), policy, seed)
    state = with_reopened_rows(state, policy, record.limit_changes, slots)
    if (first := baseline_order(state, policy, slots)) is not None:
        return first, record.queue
    queued, queue = _queued(state, record.queue, slots)
    moved = None if queued is not None else on_demand_move(problem, record.observations, record.pending, rules)
    if queued is not None:
        return queued, queue
    if moved is not None and _can_win(state, moved.row, slots):
        return _planned(state, policy, moved, slots), queue
    decision = search_step(with_chance_to_fail(state), policy, seed=seed, slots=slots)
    return deciding_repeat(state, policy, rules, decision, seed=seed) or decision, queue


def _with_noise(state: State, policy: Policy, seed: int) -> State:
    """The state as a policy sees it that does not take runs at their word; unchanged where runs do not differ.

    As soon as a configuration ran more than once, and the noise is more than a guess, limits with a confidence are tighter, the incumbent
    has the value that is believed of it, and timeouts have a margin.
    """
    problem, observations = state.problem, state.observations
    if problem.deterministic or not isinstance(policy.answer, BestBelieved) or not noise_was_seen(observations):
        return state
    noise = policy.answer.noise
    best = believed_best(problem, observations, policy.surrogate, noise, seed)
    cautious_state = State.present(cautious(problem, noise, observations), observations, state.pending)
    return with_believed_incumbent(cautious_state, best)


def search_step(state: State, policy: Policy, *, seed: int, slots: int = 1) -> Order | Stopped:
    """What the policy alone would do in a state."""
    runnable = with_runnable_rows(state)
    if isinstance(runnable, Stopped):
        return runnable
    plan = policy.choose(runnable, policy.surrogate, seed)
    reason = policy.stop(runnable, plan)
    if reason is not None:
        return Stopped(StopReason.CONVERGED, reason)
    if plan is None:
        left = format_money(float(runnable.left[0]))
        return Stopped(StopReason.BUDGET, f"no configuration is likely enough to finish within the {left} left")
    return _planned(runnable, policy, plan, slots)


def observe(
    problem: Problem, policy: Policy, observations: Observations, order: Order, outcome: Outcome
) -> Observation:
    """The order with its outcome and the training target that the model gets from it."""
    target: TrainingTarget | None = None
    if outcome.end is End.FINISHED:
        target = TrainingTarget(outcome.seconds, outcome.metrics)
    elif outcome.end is End.TIMEOUT:
        target = policy.timeout.censored(problem, order, outcome, State.present(problem, observations))
    return Observation(order, outcome, target)


def budget_stop(problem: Problem, ordered: int, elapsed_s: float) -> Stopped | None:
    """Why no run may start any more: the trials or the wall clock of the budget are used up."""
    budget = problem.budget
    if budget.trials is not None and ordered >= budget.trials:
        used = (
            "the only trial of the budget was"
            if budget.trials == 1
            else f"all {budget.trials} trials of the budget were"
        )
        return Stopped(StopReason.TRIALS, f"{used} used")
    if budget.wall_clock_s is not None and elapsed_s >= budget.wall_clock_s:
        return Stopped(
            StopReason.WALL_CLOCK, f"the study's {format_duration(budget.wall_clock_s)} of wall clock are over"
        )
    return None


def with_runnable_rows(state: State) -> State | Stopped:
    """The state with rows closed that cannot even be started, or cannot win; a reason when no row is left."""
    if not state.open.any():
        return Stopped(StopReason.EXHAUSTED, "every configuration has been run")
    could_win = state.open & (state.timeouts_s()[0] > 0)
    if not could_win.any():
        return Stopped(StopReason.CONVERGED, "no configuration left can beat the incumbent, whatever its speed")
    startable = could_win & (affordable_seconds(state) > 0)
    if not startable.any():
        return Stopped(StopReason.BUDGET, _budget_reason(state))
    return state if startable.all() else replace(state, open=startable)


def _budget_reason(state: State) -> str:
    """Why the budget starts no further run."""
    total, left = state.problem.budget.usd, float(state.left[0])
    beyond = sum(beyond_reservation(seen.order, seen.outcome) for seen in state.observations)
    if left < -ROUNDING * total and beyond > 0:
        return (
            f"nothing is left of {format_money(total)}, because trials were charged {format_money(beyond)} more than was "
            "reserved for them"
        )
    return f"the {format_money(max(left, 0.0))} left of {format_money(total)} buy no further run"


def _queued(state: State, queue: tuple[int, ...], slots: int) -> tuple[Order | None, tuple[int, ...]]:
    """The next configuration that the user asked for and that can run now, and the rest of the queue.

    A configuration that only lacks the money which open trials have reserved stays in the queue; one that can never run leaves it.
    """
    if not queue:
        return None, queue
    now, later = _runnable(state), _runnable(_after_pending(state))
    for place, row in enumerate(queue):
        if now[row]:
            plan = Plan(row, why="asked for by the user", stoppable=False, purpose=Purpose.QUEUE)
            order = order_for(state, plan, float(affordable_seconds(state, slots)[row]))
            return order, (*(one for one in queue[:place] if later[one]), *queue[place + 1 :])
    return None, tuple(row for row in queue if later[row])


def _runnable(state: State) -> BoolArray:
    """Rows `[q]` that can be started now and could win."""
    found = with_runnable_rows(state)
    return np.zeros_like(state.open) if isinstance(found, Stopped) else found.open


def _after_pending(state: State) -> State:
    """The state if pending runs turned out to be free."""
    spent = sum(seen.outcome.charged_usd for seen in state.observations)
    return replace(state, left=np.array([state.problem.budget.usd - spent]))


def _can_win(state: State, row: int, slots: int) -> bool:
    return bool(state.timeouts_s()[0, row] > 0 and affordable_seconds(state, slots)[row] > 0)


def _planned(state: State, policy: Policy, plan: Plan, slots: int) -> Order:
    """A plan with the timeout of the policy, or what the money left affords."""
    wanted_s = policy.timeout.rule(state, plan)
    affordable = affordable_seconds(state, slots if math.isinf(wanted_s) else 1)
    return order_for(state, plan, min(wanted_s, float(affordable[plan.row])))
