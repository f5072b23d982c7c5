"""Confirmation: repeated runs of the best configuration before it is recommended, paid from money set aside.

Either the user says how often (`confirm_best`), or the policy repeats as long as the doubt is worth a run. Neither exceeds the budget in
dollars, trials or wall clock.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from lynceus.models.run_noise import RunNoise
from lynceus.models.state import State
from lynceus.policy.answer import BestBelieved
from lynceus.policy.beliefs import Believed, believed_best
from lynceus.policy.interfaces import Confirm
from lynceus.policy.orders import order_for
from lynceus.policy.policy import Policy
from lynceus.policy.reopened_rows import was_stopped
from lynceus.policy.retries import RetryRules
from lynceus.problem.problem import Problem
from lynceus.trial.incumbents import incumbent
from lynceus.trial.order import Order, Plan, Purpose
from lynceus.trial.outcome import FailureReason, Observation, Observations

RESERVED_SHARE = 0.10
"""Share of the budget reserved for the confirmation while no feasible configuration is known."""
LARGEST_SHARE = 0.25
"""Largest share of the budget that the confirmation may reserve."""
MARGIN = 1.5
"""A repeated run may cost so many times what the best run cost."""
TRIALS_PER_REPEAT = 10
"""Of so many trials of a budget one is held for a repetition that the policy decides on."""


@dataclass(frozen=True, slots=True)
class Held:
    """What is held back from the search for the confirmation."""

    usd: float = 0.0
    trials: int = 0


@dataclass(frozen=True, slots=True)
class RepeatBest:
    """Repeat the best configuration until its cost is known well enough, for a small share of what the search has cost."""

    share: float = 0.15
    """The most that all runs from the first repetition on may cost, as a share of what the search had cost before."""
    first: float = 0.25
    """The same for the first repetition alone, which tells whether runs differ at all: a short search could not pay it otherwise."""
    doubt: float = 0.05
    """Repeat while the standard deviation of the logarithm of its mean time is above this: 5 % of its cost."""
    most: int = 5
    """Repetitions at most, also where they cost next to nothing."""
    during_search: bool = False
    """Also repeat configurations while the search goes on, where that is worth more than a new one (`lynceus.policy.deciding_repeats`)."""

    def __post_init__(self) -> None:
        if min(self.share, self.first, self.doubt, self.most) < 0:
            raise ValueError(
                f"share {self.share}, first {self.first}, doubt {self.doubt} and most {self.most} must not be negative"
            )

    def __call__(self, state: State, best: Believed) -> Plan | None:
        """The next repetition; None when there is no doubt, or not enough money."""
        problem, row = state.problem, best.row
        seconds = min(best.belief.seconds, float(problem.ceiling_s[row]))
        usd = problem.billing.charge(seconds, float(problem.price[row]))
        if best.belief.doubt <= self.doubt or sum(map(_repeats, state.observations)) >= self.most:
            return None
        if not self.affords(state.observations, usd):
            return None
        why = f"repeats the best, whose cost is known to within {best.belief.doubt:.0%} only"
        return Plan(row, why=why, stoppable=False, usd=usd, probability=best.chance, purpose=Purpose.CONFIRM)

    def affords(self, observations: Observations, usd: float) -> bool:
        """Whether a run of so many dollars fits into the share, after those that were made since the first repetition."""
        first = next((place for place, seen in enumerate(observations) if _repeats(seen)), len(observations))
        searched = sum(seen.outcome.charged_usd for seen in observations[:first])
        since = sum(seen.outcome.charged_usd for seen in observations[first:])
        share = self.share if first < len(observations) else max(self.first, self.share)
        return since + usd <= share * searched


def own_confirmation(problem: Problem, policy: Policy, rules: RetryRules) -> Confirm | None:
    """The policy's rule for repetitions; None where the user decides, where runs do not differ, and where the policy has none."""
    return None if rules.confirm_best is not None or problem.deterministic else policy.confirm


def held_for_confirmation(problem: Problem, policy: Policy, observations: Observations, rules: RetryRules) -> Held:
    """The part of the budget that waits for the confirmation: trials once there is an incumbent, and never all of them."""
    budget, best = problem.budget, incumbent(problem, observations)
    done = sum(map(_repeats, observations))
    own = own_confirmation(problem, policy, rules)
    left = max((rules.confirm_best or 0) - done, 0) if own is None else int(not done)
    if not left or (best is None and own is not None):
        return Held()
    usd, trials = 0.0, 0
    if math.isfinite(budget.usd):
        largest = (LARGEST_SHARE if own is None else own.share / (1 + own.share)) * budget.usd
        usd = RESERVED_SHARE * budget.usd
        if best is not None:
            charges = (seen.outcome.charged_usd for seen in observations if seen.row == best.row)
            usd = min(left * MARGIN * max(charges), largest)
    if budget.trials is not None and best is not None and (own is None or budget.trials >= TRIALS_PER_REPEAT):
        trials = min(left, budget.trials - 1)
    return Held(usd, trials)


def confirmation(
    problem: Problem, policy: Policy, observations: Observations, rules: RetryRules, *, seed: int
) -> Order | None:
    """The next repeated run; None when nothing is left to confirm, or it cannot be paid. No trial may be open."""
    state = State.present(problem, observations)
    own = own_confirmation(problem, policy, rules)
    if own is not None:
        best = believed_incumbent(state, policy, seed)
        plan = None if best is None else own(state, best)
        return None if plan is None else repeated_order(state, plan)
    done = sum(map(_repeats, observations))
    if done >= (rules.confirm_best or 0):
        return None
    row = _best_row(state, policy, seed)
    why = f"confirms the best ({done + 1} of {rules.confirm_best})"
    return None if row is None else repeated_order(state, Plan(row, why=why, stoppable=False, purpose=Purpose.CONFIRM))


def _best_row(state: State, policy: Policy, seed: int) -> int | None:
    """The configuration that the study would name as its best one: a policy that weighs all runs may prefer another than the incumbent."""
    if isinstance(policy.answer, BestBelieved) and not state.problem.deterministic:
        best = believed_incumbent(state, policy, seed)
        return None if best is None else best.row
    known = incumbent(state.problem, state.observations)
    return None if known is None else known.row


def believed_incumbent(state: State, policy: Policy, seed: int) -> Believed | None:
    """The best configuration by what the policy believes of noise."""
    noise = policy.answer.noise if isinstance(policy.answer, BestBelieved) else RunNoise()
    return believed_best(state.problem, state.observations, policy.surrogate, noise, seed)


def search_is_over(
    problem: Problem,
    policy: Policy,
    observations: Observations,
    rules: RetryRules,
    order: Order,
    *,
    seed: int,
    resumed_at: int = 0,
) -> bool:
    """Whether the search may not order this run any more, because the best configuration is being repeated already.

    After the first repetition, the rest of the share is for further ones. It is for the search only while no configuration is sure enough
    of the constraints, and for configurations that were stopped because the best one had seemed better than it is. A user who resumes the
    study (`resumed_at`) wants the search to go on: repetitions before count no longer.
    """
    own = own_confirmation(problem, policy, rules)
    if (
        own is None
        or order.plan.purpose not in (Purpose.SEARCH, Purpose.HISTORY)
        or not any(map(_repeats, observations[resumed_at:]))
    ):
        return False
    state = State.present(problem, observations)
    best = believed_incumbent(state, policy, seed)
    wanted = best is not None and (not best.admissible or was_stopped(state, order.row))
    return not (wanted and own.affords(observations, order.plan.usd))


def repeated_reason(problem: Problem, policy: Policy, observations: Observations, *, seed: int) -> str:
    """Why the search is over after repetitions: the answer was repeated, or repetitions of another configuration made it the answer."""
    rows = [seen.row for seen in observations if _repeats(seen)]
    best = believed_incumbent(State.present(problem, observations), policy, seed)
    if best is None or not rows or best.row in rows:
        return "the best configuration was repeated"
    before, now = (
        " ".join(f"{name}={value}" for name, value in problem.space.point(row).items()) for row in (rows[-1], best.row)
    )
    return f"{before} was repeated, and {now} is now believed to be better; a repetition of it is not worth its cost"


def repeated_order(state: State, plan: Plan) -> Order | None:
    """A repeated run with its timeout; None when the money left does not pay for it, or when the configuration failed since."""
    problem, row = state.problem, plan.row
    reasons = [seen.outcome.reason for seen in state.observations if seen.row == row]
    if any(reason is FailureReason.USER or (reason and reason.blames_configuration) for reason in reasons):
        return None
    affordable = float(problem.billing.timeouts_for(state.left[0], np.asarray(float(problem.price[row]))))
    # A run twice as slow as the slowest so far refutes the incumbent; so does a run that breaks the constraints.
    slowest = max(seen.outcome.seconds for seen in state.observations if seen.row == row)
    timeout_s = min(affordable, max(float(problem.ceiling_s[row]), 0.0), 2 * MARGIN * slowest)
    return None if timeout_s < slowest else order_for(state, plan, timeout_s, boots=True)


def _repeats(seen: Observation) -> bool:
    """Whether a run repeated the best configuration; one that the infrastructure ended tells nothing."""
    failed = seen.outcome.reason in (FailureReason.INFRA, FailureReason.PREEMPTED)
    return seen.order.plan.purpose is Purpose.CONFIRM and not failed
