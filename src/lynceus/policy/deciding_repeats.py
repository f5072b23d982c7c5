"""Repetitions during a search: a configuration runs again where that is worth more per dollar than a new one.

One lucky run makes a configuration the incumbent, one unlucky run hides the best. Another run of either moves what is believed of it, and
may change the answer. For a configuration with ln time f ~ N(m, s²) after its runs, and noise σ, a further run moves m by a normal step of
variance s⁴ / (s² + σ²). The loss of answering with it is

    u(m) = v e^m + v P(f > ln limit)                 v: its cost; an answer that breaks a limit costs as much again

and the repetition is worth min(E u, u°) − E min(u, u°), with u° the smallest loss among the others (knowledge gradient: Frazier, Powell and
Dayanik 2009). Its unit is the objective of one run, like that of the expected improvement of a new configuration, so both compare per
dollar.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from lynceus.models.state import State
from lynceus.policy.answer import BestBelieved
from lynceus.policy.beliefs import Believed, believed_rivals
from lynceus.policy.confirmation import RepeatBest, own_confirmation, repeated_order
from lynceus.policy.policy import Policy
from lynceus.policy.retries import RetryRules
from lynceus.problem.units import format_money
from lynceus.trial.order import Order, Plan, Purpose
from lynceus.trial.stop import Stopped, StopReason

_RIVALS = 4
"""Configurations that may be repeated: those that look best. Each needs a fit of the model without it."""
_STEPS = 64
"""Places at which the step of a further run is evaluated, evenly spaced in probability."""


@dataclass(frozen=True, slots=True)
class Rival:
    """A configuration that may be the answer: a summary of what is believed of it."""

    value: float
    """Expected objective of a run, above 0."""
    slack: float
    """ln of its limit over its typical time: below 0, it breaks the limit; infinite without one."""
    doubt: float
    """s: standard deviation of ln of its typical time."""
    spread: float
    """σ: standard deviation of ln of the time of one run."""

    def losses(self) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """u after each of `_STEPS` equally likely steps that another run would make `[k]`."""
        step = self.doubt**2 / math.hypot(self.doubt, self.spread) if self.doubt > 0 else 0.0
        moved = step * ndtri((np.arange(_STEPS) + 0.5) / _STEPS)
        left = math.sqrt(max(self.doubt**2 - step**2, 0.0))
        late = ndtr((moved - self.slack) / left) if left > 0 else (moved > self.slack).astype(float)
        return np.asarray(self.value * (np.exp(moved) + late))

    @property
    def loss(self) -> float:
        """E u: what answering with it is expected to lose."""
        return float(self.losses().mean())


def worth_of_repeating(rival: Rival, others: list[Rival]) -> float:
    """What another run of a configuration is expected to save per run of the answer, in the unit of the objective.

    Without another one to turn to, there is no answer, which costs as much as one that breaks a limit.

    >>> close, far = Rival(1.05, math.inf, 0.2, 0.2), Rival(3.0, math.inf, 0.2, 0.2)
    >>> best = Rival(1.0, math.inf, 0.2, 0.2)
    >>> worth_of_repeating(best, [close, far]) > 10 * worth_of_repeating(far, [best, close])
    True
    """
    losses = rival.losses()
    rest = min((other.loss for other in others), default=2 * rival.value)
    return max(0.0, min(float(losses.mean()), rest) - float(np.minimum(losses, rest).mean()))


def deciding_repeat(
    state: State, policy: Policy, rules: RetryRules, decision: Order | Stopped, *, seed: int
) -> Order | None:
    """The repetition that is worth more than what the search decided; None where the decision stands.

    Where the search has converged, a repetition must be worthwhile by the policy's own rule for stopping.
    """
    own = own_confirmation(state.problem, policy, rules)
    if not isinstance(own, RepeatBest) or not own.during_search or not isinstance(policy.answer, BestBelieved):
        return None
    if state.pending or state.problem.kind == "metric" or _is_final(state, decision):
        return None
    plan = _best_repeat(state, policy, policy.answer, own.most, seed)
    if plan is None:
        return None
    if isinstance(decision, Order):
        worthwhile = plan.best_rate > decision.plan.best_rate
    else:
        worthwhile = policy.stop(state, plan) is None
    return repeated_order(state, plan) if worthwhile else None


def _is_final(state: State, decision: Order | Stopped) -> bool:
    """Whether no repetition may replace a decision: initial runs come first, nothing follows the confirmation or the end of the money."""
    if any(seen.order.plan.purpose is Purpose.CONFIRM for seen in state.observations):
        return True
    if isinstance(decision, Stopped):
        return decision.kind is not StopReason.CONVERGED
    return decision.plan.purpose is not Purpose.SEARCH or math.isnan(decision.plan.best_rate)


def _best_repeat(state: State, policy: Policy, answer: BestBelieved, most: int, seed: int) -> Plan | None:
    """The repetition that is worth most per dollar; None if nothing may be repeated."""
    problem = state.problem
    believed = believed_rivals(problem, state.observations, policy.surrogate, answer.noise, seed, _RIVALS)
    rivals = [_rival(state, each) for each in believed]
    best: Plan | None = None
    for place, (each, rival) in enumerate(zip(believed, rivals, strict=True)):
        if sum(seen.row == each.row for seen in state.observations) > most:
            continue
        worth = worth_of_repeating(rival, [*rivals[:place], *rivals[place + 1 :]])
        seconds = min(each.belief.seconds, float(problem.ceiling_s[each.row]))
        usd = problem.billing.charge(seconds, float(problem.price[each.row]))
        rate = worth / max(usd, 1e-12)
        if best is None or rate > best.best_rate:
            amount = format_money(worth) if problem.kind == "cost" else f"{worth:.3g}"
            why = f"runs again, because a lucky or unlucky run may decide: worth {amount} for {format_money(usd)}"
            best = Plan(
                each.row,
                why=why,
                stoppable=False,
                score=rate,
                gain=worth,
                best_gain=worth,
                best_rate=rate,
                probability=each.chance,
                usd=usd,
            )
    return best


def _rival(state: State, each: Believed) -> Rival:
    belief = each.belief
    limit_s = float(state.problem.ceiling_s[each.row])
    slack = math.log(limit_s / belief.typical_s) if math.isfinite(limit_s) else math.inf
    return Rival(max(each.typical, 1e-12), slack, belief.doubt, belief.spread)
