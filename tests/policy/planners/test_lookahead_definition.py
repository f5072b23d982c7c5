"""The batched look-ahead against the recursive definition of the papers, written here literally."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from lookahead_cases import JOBS, SEED, Generic, planned, state_of
from lynceus.acquisition.functions import ConstrainedImprovement
from lynceus.models.distribution import LogNormal, Normal
from lynceus.models.gaussian_process import GaussianProcess
from lynceus.models.interfaces import Surrogate
from lynceus.models.prediction import Prediction
from lynceus.models.state import Form, State
from lynceus.models.trees import Trees
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.space.column import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class WideTrees:
    """Trees whose std is 10 μ where all of them agree."""

    trees: Trees

    def __call__(self, state: State, seed: int) -> Prediction:
        prediction = self.trees(state, seed)
        std = np.where(prediction.std == 0.0, 10.0 * np.abs(prediction.mean), prediction.std)
        return replace(prediction, std=std)


@dataclass(frozen=True)
class Only:
    """A shortlist of one row: its score becomes that of the plan."""

    row: int

    def __call__(self, state: State, score: FloatArray, candidates: BoolArray, seed: int) -> IntArray:
        return np.array([self.row])


@dataclass(frozen=True)
class Recursive:
    """value(S, x, d) and its parts, one state and one row at a time, with its own arithmetic for costs."""

    lookahead: Lookahead
    surrogate: Surrogate

    def value(self, state: State, prediction: Prediction, row: int, depth: int) -> tuple[float, float]:
        utility = float(self.lookahead.acquisition(prediction, state)[0, row])
        cost = self.expected_charge(state, prediction, row)
        if depth == 0:
            return utility, cost
        for outcome, weight in self.outcomes(prediction, row):
            follower = self.after(state, prediction, row, outcome)
            if follower is None:
                continue
            refitted = self.surrogate(follower, SEED)
            best = self.best_row(follower, refitted)
            if best is None:
                continue
            u, c = self.value(follower, refitted, best, depth - 1)
            utility += self.lookahead.discount * weight * u
            cost += self.lookahead.discount * weight * c
        return utility, cost

    def outcomes(self, prediction: Prediction, row: int) -> list[tuple[tuple[float, ...], float]]:
        nodes, weights = np.polynomial.hermite.hermgauss(self.lookahead.quadrature.points)
        mean, std = prediction.mean[0, row], prediction.std[0, row]
        found = []
        for index in itertools.product(range(len(nodes)), repeat=len(mean)):
            target = tuple(float(m + math.sqrt(2) * s * nodes[i]) for m, s, i in zip(mean, std, index, strict=True))
            found.append((target, float(np.prod([weights[i] / math.sqrt(math.pi) for i in index]))))
        return found

    def after(self, state: State, prediction: Prediction, row: int, target: tuple[float, ...]) -> State | None:
        problem = state.problem
        price = float(problem.price[row])
        if prediction.form == "cost":
            if target[0] <= 0:
                return None
            cost, seconds = (
                target[0],
                max(float(problem.billing.seconds_for(np.array(target[0]), np.array(price))), 0.0),
            )
        else:
            seconds = math.exp(target[0])
            cost = problem.billing.charge(seconds, price)
        charged, value = cost, self.objective_value(state, prediction, row, cost, seconds, target)
        if self.lookahead.charge == "capped":
            timeout_s = self.timeout_s(state, row)
            charged = min(cost, problem.billing.charge(max(timeout_s, 0.0), price))
            if seconds > timeout_s:
                value = math.nan
        charged = max(charged - self.saving(state, row), 0.0)
        left = float(state.left[0]) - charged
        if left <= 0:
            return None
        return replace(
            state,
            left=np.array([left]),
            best=np.fmin(state.best, value),
            current=np.array([row]),
            imagined_rows=np.concatenate([state.imagined_rows, [[row]]], axis=1),
            imagined_targets=np.concatenate([state.imagined_targets, [[target]]], axis=1),
        )

    def objective_value(
        self, state: State, prediction: Prediction, row: int, cost: float, seconds: float, target: tuple[float, ...]
    ) -> float:
        problem = state.problem
        metrics = dict(zip(problem.metrics, target[1:], strict=True))
        for constraint in problem.constraints:
            if constraint.metric == "time":
                # For a model of cost, a deadline is the cost of a run that just meets it.
                feasible = (
                    cost <= problem.billing.charge(constraint.bound, float(problem.price[row]))
                    if prediction.form == "cost"
                    else seconds <= constraint.bound
                )
            else:
                feasible = constraint.holds(metrics[constraint.metric])
            if not feasible:
                return math.nan
        if problem.kind == "metric":
            return (
                -metrics[problem.objective.metric] if problem.objective.maximise else metrics[problem.objective.metric]
            )
        return cost if problem.kind == "cost" else seconds

    def best_row(self, state: State, prediction: Prediction) -> int | None:
        """argmax of the acquisition value over V = {x open: P(C(x) ≤ B) ≥ β}."""
        gain = self.lookahead.acquisition(prediction, state)[0]
        rows = self.candidates(state, prediction)
        return max(rows, key=lambda row: gain[row]) if rows else None

    def candidates(self, state: State, prediction: Prediction) -> list[int]:
        problem, rows = state.problem, []
        for row in np.flatnonzero(state.open).tolist():
            if row in state.imagined_rows[0]:
                continue
            upper = prediction.mean[0, row, 0] + 2.3263478740408408 * prediction.std[0, row, 0]
            if prediction.form == "log time":
                upper = problem.billing.charge(math.exp(upper), float(problem.price[row]))
            if upper - self.saving(state, row) <= state.left[0]:
                rows.append(row)
        return rows

    def saving(self, state: State, row: int) -> float:
        problem = state.problem
        current = int(state.current[0])
        if not problem.billing.warm or current < 0:
            return 0.0
        same = all(
            problem.space.column(name)[row] == problem.space.column(name)[current] for name in problem.billing.warm
        )
        return problem.billing.boot_s * float(problem.price[row]) + problem.billing.fee_usd if same else 0.0

    def timeout_s(self, state: State, row: int) -> float:
        problem, best = state.problem, float(state.best[0])
        cap = problem.deadline_s
        if not math.isnan(best) and problem.kind == "cost":
            cap = min(cap, float(problem.billing.seconds_for(np.array(best), problem.price[row])))
        if not math.isnan(best) and problem.kind == "time":
            cap = min(cap, best)
        return cap

    def expected_charge(self, state: State, prediction: Prediction, row: int) -> float:
        """C = setup + E[charge], or E[charge until the timeout]."""
        billing, price = state.problem.billing, float(state.problem.price[row])
        mean, std = float(prediction.mean[0, row, 0]), float(prediction.std[0, row, 0])
        cap = max(self.timeout_s(state, row), 0.0) if self.lookahead.charge == "capped" else math.inf
        if prediction.form == "cost":
            usd = (
                Normal(mean, std).expectation()
                if math.isinf(cap)
                else Normal(mean, std).capped_mean(billing.charge(cap, price))
            )
            usd = max(float(usd), 0.0)
        else:
            run, floor = LogNormal(mean, std), billing.minimum_s - billing.boot_s
            seconds = float(run.expectation() if math.isinf(cap) else run.capped_mean(max(cap, floor)))
            seconds += float(run.put(floor)) if floor > 0 else 0.0
            usd = price * (seconds + billing.boot_s + billing.granularity_s / 2) + billing.fee_usd
        return max(usd - self.saving(state, row), 0.0)


MODELS = {"cost": Trees(), "log time": Trees(target="log time"), "total": Trees(spread="total", trees=6)}


ROUGH = {"three trees": WideTrees(Trees(trees=3))}
"""Outcomes below zero must be skipped."""


CASES = [
    (name, model)
    for name, model in itertools.product(JOBS, MODELS)
    if model != "total" or not JOBS[name].problem.metrics  # nine outcomes per run make the recursion slow
] + [("deadline", "three trees"), ("no limit", "three trees")]


@pytest.mark.parametrize("charge", ["full", "capped"])
@pytest.mark.parametrize(("name", "model"), CASES)
def test_batches_agree_with_the_recursive_definition(name: str, model: str, charge: str) -> None:
    state, trees = state_of(JOBS[name]), (MODELS | ROUGH)[model]
    for depth in (0, 1, 2):
        lookahead = Lookahead(ConstrainedImprovement(), depth=depth, charge=charge)  # type: ignore[arg-type]
        recursive = Recursive(lookahead, trees)
        prediction = trees(state, SEED)
        rows = recursive.candidates(state, prediction)
        assert rows, "the case must have candidates"
        if depth == 2:
            rows = rows[:2] if state.targets == 1 else rows[:1]
        values = {row: recursive.value(state, prediction, row, depth) for row in rows}
        scores = {row: utility / max(cost, 1e-12) for row, (utility, cost) in values.items()}
        if depth < 2:
            for surrogate in (trees, Generic(trees)):
                plan = planned(lookahead, state, surrogate)
                assert plan.row == max(scores, key=lambda row: scores[row])
                assert plan.score == pytest.approx(max(scores.values()), rel=1e-9, abs=1e-15)
        if depth > 0:
            for row, surrogate in itertools.product(rows, (trees, Generic(trees))):
                plan = planned(replace(lookahead, shortlist=Only(row)), state, surrogate)
                assert plan.score == pytest.approx(scores[row], rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("target", ["cost", "log time"])
@pytest.mark.parametrize("name", ["deadline", "warm", "two metrics", "no feasible run yet"])
def test_a_gaussian_process_agrees_with_the_recursive_definition(name: str, target: Form) -> None:
    """Conditioned on a batch of imagined runs at once, or on one at a time: the same path."""
    process, state = GaussianProcess(target=target), state_of(JOBS[name])
    lookahead = Lookahead(ConstrainedImprovement(), depth=1, charge="capped")
    recursive, prediction = Recursive(lookahead, process), process(state, SEED)
    for row in recursive.candidates(state, prediction)[:2]:
        utility, cost = recursive.value(state, prediction, row, 1)
        plan = planned(replace(lookahead, shortlist=Only(row)), state, process)
        assert plan.score == pytest.approx(utility / cost, rel=1e-9)


def imagined(lookahead: Lookahead, state: State, trees: Trees, levels: int) -> State:
    """All states some runs ahead, three outcomes of each candidate (or of the best row there)."""
    for level in range(levels):
        prediction = trees(state, SEED)
        if level == 0:
            rows, at = np.flatnonzero(state.open), np.zeros(int(state.open.sum()), dtype=int)
        else:
            rows, at = lookahead._pick_by_prediction(state, trees, SEED).row, np.arange(len(state))
            state, rows, at = state.part(rows >= 0), rows[rows >= 0], at[rows >= 0]
        state, _, _ = lookahead._children(
            state, prediction.form, rows, (prediction.mean[at, rows], prediction.std[at, rows])
        )
    return state


@pytest.mark.parametrize("name", list(JOBS))
def test_the_kernel_and_the_generic_path_pick_the_same(name: str) -> None:
    compared = 0
    for runs, levels, exact, trees in itertools.product((3, 8), (1, 2), (False, True), MODELS.values()):
        lookahead = Lookahead(ConstrainedImprovement(exact=exact))
        children = imagined(lookahead, state_of(JOBS[name], runs), trees, levels)
        in_kernel = trees.pick(children, lookahead.acquisition, lookahead.confidence, SEED)
        if in_kernel is None or not len(children):
            continue
        generic = lookahead._pick_by_prediction(children, trees, SEED)
        found = generic.row >= 0
        assert np.array_equal(in_kernel.row >= 0, found)
        np.testing.assert_allclose(in_kernel.value[found], generic.value[found], rtol=1e-9, atol=1e-15)
        # Two rows may be equally good up to the last bit of a sum; then either is correct.
        same = in_kernel.row == generic.row
        gain = lookahead.acquisition(trees(children, SEED), children)
        each = np.flatnonzero(found & ~same)
        np.testing.assert_allclose(gain[each, in_kernel.row[each]], gain[each, generic.row[each]], rtol=1e-12)
        assert same.mean() > 0.8
        np.testing.assert_allclose(in_kernel.mean[found & same], generic.mean[found & same], rtol=1e-9)
        np.testing.assert_allclose(in_kernel.std[found & same], generic.std[found & same], rtol=1e-9, atol=1e-12)
        compared += len(children)
    assert compared > 500 or JOBS[name].problem.kind != "cost" or JOBS[name].problem.billing.warm


def test_the_kernel_is_used() -> None:
    """Otherwise the comparison above compares the generic path with itself."""
    job = JOBS["deadline"]
    assert MODELS["cost"].pick(state_of(job), ConstrainedImprovement(), 0.99, SEED) is not None
    assert MODELS["log time"].pick(state_of(job), ConstrainedImprovement(), 0.99, SEED) is not None
