"""The subset of runs that a model is trained on: how many, which ones, and what the decision loses by it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from deciding import decide
from lynceus.acquisition.functions import ConstrainedImprovement
from lynceus.models import subset_of_data as module
from lynceus.models.interfaces import Surrogate
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.models.subset_of_data import SubsetOfData, training_subset
from lynceus.models.trees import Trees
from lynceus.policy.default import MODEL
from lynceus.policy.presets import preset
from lynceus.policy.stopping import Never
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.column import FloatArray
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space
from lynceus.testing import check_surrogate
from lynceus.trial.order import Expected, Order, Plan
from lynceus.trial.outcome import End, Observation, Outcome, TrainingTarget

SPACE = Space.build(
    [Categorical("vm", ["a", "b", "c"]), Integer("nodes", 1, 20), Integer("block", 1, 10)],
    price="nodes * (1.0 if vm == 'a' else 1.5 if vm == 'b' else 2.2)",
)


def times(seed: int = 0) -> FloatArray:
    """Seconds of every row: the machine, scaling, a block size that should be 6, noise."""
    speed = np.array([1.0, 1.3, 2.6])[[["a", "b", "c"].index(str(vm)) for vm in SPACE.column("vm")]]
    nodes, block = (np.asarray(SPACE.column(name), dtype=float) for name in ("nodes", "block"))
    noise = np.random.default_rng(seed).lognormal(0.0, 0.05, len(SPACE))
    return np.asarray((60 + 3000 / (nodes * speed) + 5 * nodes) * (1 + 0.05 * np.square(block - 6)) * noise)


def runs(problem: Problem, count: int, seed: int = 0) -> tuple[Observation, ...]:
    """Random rows, each stopped at the deadline or at the cost of the best run before it."""
    seconds, best, seen = times(), np.inf, []
    for number, row in enumerate(np.random.default_rng(seed).permutation(len(SPACE))[:count].tolist()):
        timeout_s = min(problem.deadline_s, best / float(problem.price[row]))
        took = min(float(seconds[row]), timeout_s)
        end = End.FINISHED if took < timeout_s else End.TIMEOUT
        usd, metrics = problem.cost(row, took), dict.fromkeys(problem.metrics, 1000.0 / took)
        best = min(best, usd) if end is End.FINISHED else best
        target = TrainingTarget(took, metrics)
        if end is End.TIMEOUT:
            target = TrainingTarget(1.2 * took, metrics, censored=True, bound_s=took)
        order = Order(number, row, timeout_s, usd, Plan(row, why="test"))
        seen.append(Observation(order, Outcome(end, took, usd, metrics), target))
    return tuple(seen)


def problem(**other: object) -> Problem:
    limits = (Constraint("time", float(np.median(times()))),)
    return replace(Problem(SPACE, constraints=limits), deterministic=True, **other)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Counting:
    """Counts on how many runs it is trained."""

    surrogate: Surrogate = field(default_factory=lambda: Trees(trees=3, target="log time"))
    sizes: list[int] = field(default_factory=list, compare=False)

    def __call__(self, state: State, seed: int) -> Prediction:
        self.sizes.append(len(state.rows))
        return self.surrogate(state, seed)


def test_it_meets_the_contract_of_surrogates() -> None:
    check_surrogate(SubsetOfData(Trees(trees=3, target="log time"), most=16), tolerance=1e-6)


@pytest.mark.parametrize("count", [129, 250, 600])
def test_the_work_does_not_grow_with_the_number_of_runs(count: int) -> None:
    module._subset.cache_clear()
    counting = Counting()
    SubsetOfData(counting)(State.present(problem(), runs(problem(), count)), 1)
    assert counting.sizes == [64, 128]


def test_with_few_runs_it_is_the_model_itself() -> None:
    counting = Counting()
    state = State.present(problem(), runs(problem(), 128))
    got, wanted = SubsetOfData(counting)(state, 1), counting.surrogate(state, 1)
    assert counting.sizes == [128]
    assert np.array_equal(got.mean, wanted.mean)
    assert np.array_equal(got.std, wanted.std)


@pytest.mark.parametrize("count", [1, 7, 30, 60, 100])
def test_decisions_after_few_runs_are_those_of_the_model_alone(count: int) -> None:
    policy = replace(preset("lynceus"), stop=Never())
    alone = replace(policy, surrogate=MODEL.surrogate)
    seen = runs(problem(), count)
    assert decide(problem(), policy, seen, seed=3) == decide(problem(), alone, seen, seed=3)


def test_best_latest_and_pending_runs_are_always_learnt_from() -> None:
    seen = runs(problem(), 300)
    expected = Expected("log time", (5.0,), (0.3,))
    free = sorted(set(range(len(SPACE))) - {each.row for each in seen})[:6]
    pending = tuple(
        Order(300 + place, row, 500.0, 1.0, Plan(row, why="test", expected=expected)) for place, row in enumerate(free)
    )
    state = State.present(problem(), seen, pending)
    chosen = training_subset(state, Trees(trees=3, target="log time"), 48, 1)
    finished = [place for place, each in enumerate(seen) if each.outcome.end is End.FINISHED]
    best = min(finished, key=lambda place: seen[place].outcome.charged_usd)
    assert len(chosen) == len(set(chosen.tolist())) == 48
    assert {best, *range(296, 306)} <= set(chosen.tolist())


def test_near_promising_rows_more_runs_are_known_than_elsewhere() -> None:
    state = State.present(problem(), runs(problem(), 120))
    chosen = training_subset(state, MODEL.surrogate, 24, 1)
    prediction = MODEL.surrogate(state, 1)
    score = np.where(state.open, ConstrainedImprovement(exact=True)(prediction, state)[0], -np.inf)
    promising = np.argsort(-score)[:5]
    near = module._distances(SPACE, promising, state.rows).argsort(axis=1)[:, :2]
    assert np.isin(near, chosen).mean() > 2 * 24 / 120


def test_states_that_are_imagined_from_one_state_share_its_subset() -> None:
    state = State.present(problem(), runs(problem(), 200))
    rows, model = np.flatnonzero(state.open)[:4], Trees(trees=3, target="log time")
    children = state.after(rows, np.full((4, 2, 1), 5.0), np.full((4, 2), 0.1), np.full((4, 2), 0.01))
    first = training_subset(children, model, 32, 1)
    module._subset.cache_clear()
    assert np.array_equal(training_subset(state, model, 32, 1), first)
    assert np.array_equal(training_subset(children.part(slice(3, 6)), model, 32, 1), first)


@pytest.mark.parametrize("metric", ["maximize rate", "rate"])
def test_objectives_that_are_reported_have_a_subset_too(metric: str) -> None:
    task = problem(objective=Objective.parse(metric))
    state = State.present(task, runs(task, 150))
    prediction = SubsetOfData(MODEL.surrogate, most=32)(state, 1)
    assert prediction.mean.shape == (1, len(SPACE), 2)
    assert np.isfinite(prediction.mean).all()


def test_without_a_limit_and_without_a_feasible_run_there_is_a_subset() -> None:
    task = replace(problem(), constraints=(Constraint.parse("rate >= 1e9"),))
    state = State.present(task, runs(problem(), 150))
    state = replace(state, metrics=1000.0 / state.seconds[:, np.newaxis])
    assert len(training_subset(state, MODEL.surrogate, 32, 1)) == 32


def test_many_runs_of_few_configurations_are_enough() -> None:
    seen = runs(problem(), 5)
    repeated = tuple(replace(each, order=replace(each.order, number=number)) for number, each in enumerate(seen * 40))
    assert len(training_subset(State.present(problem(), repeated), Trees(trees=3, target="log time"), 32, 1)) == 32


def test_the_choice_is_as_good_as_that_of_the_model_that_knows_all_runs() -> None:
    """By the values of the whole model, averaged over seeds; another seed of the whole model is no better on average."""
    shares, others = [], []
    some = SubsetOfData(MODEL.surrogate, most=64)
    for start in range(3):
        state = State.present(problem(), runs(problem(), 120, seed=start))

        def values(model: Surrogate, seed: int, state: State = state) -> FloatArray:
            prediction = model(state, seed)
            value = ConstrainedImprovement(exact=True, guess="ceiling")(prediction, state)
            usd = prediction.charge(state, state.timeouts_s())
            return np.asarray(np.where(state.open, value / usd, -np.inf)[0])

        whole = [values(MODEL.surrogate, seed) for seed in range(10, 13)]
        truth = np.mean(whole, axis=0)
        shares += [truth[values(some, seed).argmax()] / truth.max() for seed in range(2)]
        others += [truth[each.argmax()] / truth.max() for each in whole]
    assert np.mean(shares) > 0.8 * np.mean(others)


def test_a_model_needs_some_runs() -> None:
    with pytest.raises(ValueError, match="16 or more"):
        SubsetOfData(Trees(), most=3)
