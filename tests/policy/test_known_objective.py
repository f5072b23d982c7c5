"""Objectives of which a part, or all, is known before anything runs: the known part is not learnt."""

from collections.abc import Callable

import numpy as np
import pytest

import lynceus
from lynceus.models.state import State
from lynceus.policy.next_step import with_runnable_rows
from lynceus.study.study import Study
from lynceus.trial.stop import Stopped
from lynceus.trial.trial import Trial

SPACE = lynceus.Space.build(
    [lynceus.Categorical("gpu", ["a10", "l4", "h100"]), lynceus.Integer("pods", 1, 8)],
    price="pods * (1.0 if gpu == 'a10' else 0.8 if gpu == 'l4' else 4.0)",
)
SPEED = {"a10": 100.0, "l4": 60.0, "h100": 600.0}


def p99(gpu: str, pods: int) -> float:
    return 60_000.0 / (SPEED[gpu] * pods**0.9)


def search(
    objective: str, report: Callable[[str, int], dict[str, float]], constraints: list[str], policy: str = "lynceus"
) -> Study:
    study = lynceus.create_study(
        space=SPACE, objective=objective, constraints=constraints, budget=40, policy=policy, seed=1
    )

    def run(trial: Trial) -> dict[str, float]:
        gpu, pods = str(trial.params["gpu"]), int(trial.params["pods"])  # type: ignore[call-overload]
        return {"runtime": 120.0, **report(gpu, pods)}

    study.optimize(run)
    return study


def test_a_fleet_whose_price_is_known_is_searched_for_its_limit_alone() -> None:
    study = search("minimize price", lambda gpu, pods: {"p99": p99(gpu, pods)}, ["p99 <= 150"])
    prices = SPACE.price_per_second * 3600
    kept = [p99(str(SPACE.point(row)["gpu"]), int(SPACE.point(row)["pods"])) <= 150 for row in range(len(SPACE))]  # type: ignore[call-overload]
    assert study.best_value == pytest.approx(prices[np.array(kept)].min())
    for place, seen in enumerate(study.observations):
        before = State.present(study.problem, study.observations[:place])
        if not np.isnan(before.best[0]):
            assert prices[seen.row] < before.best[0] or seen.order.plan.purpose == "confirm"


def test_a_configuration_that_is_known_to_be_no_better_never_runs() -> None:
    study = search("minimize price", lambda gpu, pods: {"p99": p99(gpu, pods)}, ["p99 <= 150"])
    state = State.present(study.problem, study.observations)
    left = with_runnable_rows(state)
    known = study.problem.goal.known
    assert known is not None
    if not isinstance(left, Stopped):
        assert (known[left.open] < state.best[0]).all()
    else:
        assert not (known[state.open] < state.best[0]).any()


@pytest.mark.parametrize("policy", ["lynceus", "lynceus-2020", "bo", "random", "sweep"])
def test_every_policy_minimises_a_formula(policy: str) -> None:
    study = search(
        "minimize price / tokens_per_s",
        lambda gpu, pods: {"tokens_per_s": SPEED[gpu] * pods**0.95, "p99": p99(gpu, pods)},
        ["p99 <= 400"],
        policy,
    )
    best = study.best_params
    assert p99(str(best["gpu"]), int(best["pods"])) <= 400  # type: ignore[call-overload]
    speed = SPEED[str(best["gpu"])] * int(best["pods"]) ** 0.95  # type: ignore[call-overload]
    row = SPACE.row(best)
    assert study.best_value == pytest.approx(float(SPACE.price_per_second[row]) * 3600 / speed)
    frame = study.trials_dataframe()
    assert frame["value"].min() <= study.best_value * (1 + 1e-9)


def test_policies_of_information_refuse_formulas() -> None:
    with pytest.raises(
        lynceus.InputError, match="needs cost, time or one metric as the objective, not 'price / speed'"
    ):
        search("minimize price / speed", lambda gpu, pods: {"speed": SPEED[gpu]}, [], "trimtuner")


def test_a_parameter_or_metric_called_price_is_refused() -> None:
    space = lynceus.Space.build([lynceus.Integer("price", 1, 3)], price=1.0)
    with pytest.raises(lynceus.InputError, match="'price' is the name of a configuration's dollars per hour"):
        lynceus.create_study(space=space, budget=1)
