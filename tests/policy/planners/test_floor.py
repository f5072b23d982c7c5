"""A search under a floor costs at most (1 + factor) times as much as a sweep, plus the grant, however wrong its chooser is."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deciding import decide
from lynceus.models.state import State
from lynceus.policy.designs import Amount, CheapFirst
from lynceus.policy.next_step import observe
from lynceus.policy.planners.floor import NotFarBehind, passed_usd
from lynceus.policy.planners.simple import ByPrice, FirstOf
from lynceus.policy.policy import Policy
from lynceus.policy.presets import preset
from lynceus.policy.timeouts.by_name import TIMEOUTS
from lynceus.policy.timeouts.rules import IncumbentTimeout
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.trial.order import Plan
from lynceus.trial.outcome import End, Outcome
from lynceus.trial.stop import Stopped


@dataclass(frozen=True)
class Stubborn:
    """A chooser that is sure of a wrong order, and expects nothing of a run's cost."""

    order: tuple[int, ...]

    def __call__(self, state, surrogate, seed):
        row = next((row for row in self.order if state.open[row]), None)
        return None if row is None else Plan(row, why="because", usd=0.0)


def policy_of(chooser) -> Policy:
    return Policy("floor", chooser, timeout=TIMEOUTS["capped"])


def search(problem: Problem, policy: Policy, seconds: np.ndarray) -> list[tuple[int, float]]:
    """(row, dollars) of every run until the policy stops."""
    observations: tuple = ()
    while not isinstance(order := decide(problem, policy, observations, seed=0), Stopped):
        took = float(seconds[order.row])
        ran = min(took, order.timeout_s)
        end = End.FINISHED if took <= order.timeout_s else End.TIMEOUT
        usd = problem.billing.charge(ran, float(problem.price[order.row]))
        observations = (*observations, observe(problem, policy, observations, order, Outcome(end, ran, usd)))
    return [(seen.row, seen.outcome.charged_usd) for seen in observations]


def until(runs: list[tuple[int, float]], row: int) -> float:
    """Dollars up to and including the run of a row."""
    place = [each for each, _ in runs].index(row)
    return sum(usd for _, usd in runs[: place + 1])


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_chooser_spends_more_than_the_bound(data: st.DataObject) -> None:
    size = data.draw(st.integers(2, 14), label="rows")
    times = data.draw(st.lists(st.floats(1.0, 2000.0), min_size=size, max_size=size), label="seconds")
    wrong = tuple(data.draw(st.permutations(range(size)), label="order"))
    factor = data.draw(st.sampled_from([0.0, 1.0, 3.0]), label="factor")
    longer = data.draw(st.booleans(), label="the first run may take twice the deadline")
    grant = data.draw(st.sampled_from([2.0, 8.0] if longer else [0.0, 2.0, 8.0]), label="grant")
    deadline = data.draw(st.sampled_from([50.0, 500.0, 3000.0]), label="deadline")
    seconds = np.array(times)
    problem = Problem(
        Space.build([Integer("nodes", 1, size)], price="0.5 * nodes"), constraints=(Constraint("time", deadline),)
    )
    cost = np.where(seconds <= deadline, seconds * problem.price, np.inf)
    if not np.isfinite(cost).any():
        return
    best = int(np.argmin(cost))
    sweep = search(problem, policy_of(ByPrice()), seconds)
    policy = policy_of(NotFarBehind(Stubborn(wrong), factor, grant))
    if longer:
        start, rule = CheapFirst(Amount(count=1), pool=None), IncumbentTimeout(first_runs_too=True, overtime=2.0)
        policy = replace(policy, choose=FirstOf((start, policy.choose)), timeout=replace(policy.timeout, rule=rule))
    bounded = search(problem, policy, seconds)
    cheapest = problem.billing.charge(deadline, float(problem.price[0]))
    assert until(bounded, best) <= (1 + factor) * until(sweep, best) * (1 + 1e-9) + grant * cheapest


def test_without_the_floor_the_same_chooser_exceeds_it() -> None:
    """The property above can fail: most expensive first, where the cheapest configuration is the best."""
    problem = Problem(Space.build([Integer("nodes", 1, 40)], price="nodes"), constraints=(Constraint("time", 100.0),))
    seconds = np.where(np.arange(40) < 3, 90.0, 99.0)
    wrong = tuple(reversed(range(40)))
    free, bounded = (
        until(search(problem, policy_of(chooser), seconds), 0)
        for chooser in (Stubborn(wrong), NotFarBehind(Stubborn(wrong)))
    )
    sweep = until(search(problem, policy_of(ByPrice()), seconds), 0)
    assert free > 4 * sweep + 8 * 100 / 3600
    assert bounded <= 4 * sweep + 8 * 100 / 3600


def test_a_plan_within_its_share_is_not_changed() -> None:
    problem = Problem(Space.build([Integer("nodes", 1, 9)], price="nodes"), constraints=(Constraint("time", 100.0),))
    runs = search(problem, policy_of(NotFarBehind(Stubborn((4, 3, 2, 1, 0)), grant=1e6)), np.full(9, 50.0))
    assert [row for row, _ in runs][:2] == [4, 3]


def test_a_run_counts_as_passed_with_at_most_the_best_cost() -> None:
    """A run that was charged more than the incumbent costs now would have been stopped there in a sweep."""
    problem = Problem(Space.build([Integer("nodes", 1, 4)], price="3600 * nodes"))
    policy = policy_of(ByPrice())
    observations: tuple = ()
    for seconds in (9.0, 2.0):
        order = decide(problem, policy, observations, seed=0)
        outcome = Outcome(End.FINISHED, seconds, problem.billing.charge(seconds, float(problem.price[order.row])))
        observations = (*observations, observe(problem, policy, observations, order, outcome))
    assert passed_usd(State.present(problem, observations), cheapest=2) == pytest.approx(4.0 + 4.0)


def test_the_default_has_a_floor() -> None:
    assert isinstance(preset("lynceus").choose.choosers[1].ample, NotFarBehind)


@pytest.mark.parametrize(("factor", "grant"), [(-1.0, 1.0), (1.0, -1.0)])
def test_negative_shares_are_refused(factor: float, grant: float) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        NotFarBehind(ByPrice(), factor, grant)
