"""The searcher and the stopper of Ray Tune."""

import math
import pickle
from pathlib import Path
from typing import Any

import pytest
from ray import tune

from lynceus.errors import InputError
from lynceus.integrations.ray_tune import LynceusSearcher, TimeoutStopper, _dimension
from told_times import local, seconds_of, space, told

GIVEN: dict[str, Any] = {"objective": "cost", "constraints": ["runtime <= 20m"], "budget": "2 USD", "seed": 3}


def run(searcher: LynceusSearcher, trials: int, first: int = 0) -> None:
    for number in range(first, first + trials):
        config = searcher.suggest(str(number))
        if config == "FINISHED":
            return
        limit_s = config["lynceus"]["timeout_s"] or math.inf
        searcher.on_trial_complete(str(number), {"runtime_s": min(seconds_of(config), limit_s)})


def test_domains_become_finite() -> None:
    assert _dimension("x", tune.choice(["a", None]), 4).choices == ("a", None)
    assert _dimension("x", tune.randint(1, 4), 4).choices == (1, 2, 3)
    assert _dimension("x", tune.qrandint(2, 8, 2), 4).choices == (2, 4, 6, 8)
    assert _dimension("x", tune.uniform(0.0, 1.0), 3).choices == (0.0, 0.5, 1.0)
    assert _dimension("x", tune.quniform(0.0, 1.0, 0.25), 3).choices == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert _dimension("x", tune.loguniform(1e-4, 1.0), 5).choices == pytest.approx((1e-4, 1e-3, 1e-2, 1e-1, 1.0))
    assert _dimension("x", tune.grid_search([1, 2]), 5).choices == (1, 2)
    with pytest.raises(InputError, match="a finite space is needed"):
        _dimension("x", tune.randn(0, 1), 5)


@pytest.mark.parametrize("way", ["save", "pickle"])
def test_a_searcher_goes_on_where_it_was_saved(tmp_path: Path, way: str) -> None:
    first = LynceusSearcher(space(), **GIVEN)
    run(first, 4)
    if way == "save":
        first.save(str(tmp_path / "searcher.pkl"))
        second = LynceusSearcher(space(), **GIVEN)
        second.restore(str(tmp_path / "searcher.pkl"))
    else:
        second = pickle.loads(pickle.dumps(first))
    run(second, 1000, first=4)
    assert told(second.study) == local()


def test_trials_wait_fail_and_are_known_before() -> None:
    searcher = LynceusSearcher(space(), **GIVEN | {"budget": "0.05 USD"})
    searcher.add_evaluated_point({"vm": "large", "nodes": 8}, 0.18)
    searcher.add_evaluated_point({"vm": "small", "nodes": 1}, 0.1, pruned=True)
    assert [str(one.state) for one in searcher.study.trials] == ["COMPLETE", "TIMEOUT"]
    config = searcher.suggest("a")
    assert config["lynceus"]["deadline_s"] == 1200.0
    assert searcher.suggest("b") is None, "all money is reserved, until the open trial has ended"
    searcher.on_trial_complete("a", error=True)
    assert str(searcher.study.trials[2].state) == "FAIL"
    run(searcher, 1000, first=10)
    assert searcher.study.spent_usd <= 0.05


def test_the_stopper_reads_the_timeout_from_the_config() -> None:
    stopper = TimeoutStopper()
    config = {"lynceus": {"timeout_s": 10.0}}
    assert not stopper("a", {"config": config, "time_total_s": 9.0})
    assert stopper("a", {"config": config, "time_total_s": 10.0})
    assert stopper("a", {"config": config, "time_total_s": 1.0, "runtime_s": 12.0})
    assert not stopper("a", {"config": {"lynceus": {"timeout_s": None}}, "time_total_s": 1e9})
    assert not stopper.stop_all()
