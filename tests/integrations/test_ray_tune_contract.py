"""What Ray expects of a searcher: the cases of its own tests of searchers (`test_searchers.py`, not part of its packages), for ours.

Invalid values, past trials, and states that are saved in the middle. Several objectives do not apply: a searcher of Lynceus has one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import tune
from ray.tune.search import ConcurrencyLimiter

from lynceus.integrations.ray_tune import LynceusSearcher

SPACE: dict[str, Any] = {"report": tune.uniform(0.0, 5.0), "list": [1, 2, 3], "num": 4}
INVALID = {2: math.nan, 3: -math.inf, 4: math.inf}


def reports_nonsense(config: dict[str, Any]) -> None:
    """Above 2, the metric is no number."""
    tune.report({"score": INVALID.get(math.ceil(config["report"]) - 1, config["report"]), "runtime_s": 1.0})


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def fitted(searcher: Any, folder: Path, samples: int) -> tune.ResultGrid:
    return tune.Tuner(
        reports_nonsense,
        param_space=SPACE,
        tune_config=tune.TuneConfig(search_alg=searcher, metric="score", mode="max", num_samples=samples),
        run_config=tune.RunConfig(storage_path=str(folder), name="tuned", verbose=0),
    ).fit()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_an_experiment_survives_values_that_are_no_numbers(cluster: None, tmp_path: Path) -> None:
    searcher = LynceusSearcher(seed=1)
    results = fitted(ConcurrencyLimiter(searcher, max_concurrent=2), tmp_path, samples=8)
    assert (len(results), results.num_errors) == (8, 0)
    assert {str(one.state) for one in searcher.study.trials} == {"COMPLETE", "FAIL"}
    failed = [one for one in searcher.study.trials if str(one.state) == "FAIL"]
    assert all(one.params["report"] > 2.0 and one.detail.startswith("the trial reported score = ") for one in failed)
    best = max((one.metrics for one in results if one.metrics), key=lambda one: searched(one["score"]))
    assert best["config"]["report"] <= 2.0
    assert (best["config"]["list"], best["config"]["num"]) == ([1, 2, 3], 4), "what is constant reaches the trial"
    (kept,) = (tmp_path / "tuned").glob("search*.pkl")
    again = LynceusSearcher(seed=1)
    again.set_search_properties("score", "max", SPACE)
    ConcurrencyLimiter(again, max_concurrent=2).restore_from_dir(str(kept.parent))
    assert len(again.study.trials) == 8, "Ray saves what the searcher knows beside the experiment"


def searched(score: float) -> float:
    return score if math.isfinite(score) else -math.inf


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_trials_of_an_earlier_experiment_are_known(cluster: None, tmp_path: Path) -> None:
    first = fitted(LynceusSearcher(seed=1), tmp_path, samples=3)
    second = LynceusSearcher(objective="time", seed=2)
    second.set_search_properties("runtime_s", "min", SPACE)
    second.add_evaluated_trials(first._experiment_analysis, "runtime_s")
    assert [(str(one.state), one.runtime_s) for one in second.study.trials] == [("COMPLETE", 1.0)] * 3
    known = {one.params["report"] for one in second.study.trials}
    assert second.suggest("next")["report"] not in known


@pytest.mark.parametrize("value", INVALID.values())
def test_a_value_that_is_no_number_is_a_failure_of_the_configuration(value: float) -> None:
    searcher = LynceusSearcher(seed=1)
    searcher.set_search_properties("score", "max", SPACE)
    searcher.suggest("a")
    searcher.on_trial_complete("a", {"score": value, "time_total_s": 2.0})
    (trial,) = searcher.study.trials
    assert (str(trial.state), str(trial.reason), trial.runtime_s) == ("FAIL", "job", 2.0)
    assert trial.detail == f"the trial reported score = {value}"


def test_a_time_that_is_no_number_is_read_from_the_clock_of_ray() -> None:
    searcher = LynceusSearcher(objective="time", seed=1)
    searcher.set_search_properties(None, None, SPACE)
    searcher.suggest("a")
    searcher.on_trial_complete("a", {"runtime_s": math.nan, "time_total_s": 2.0})
    assert [(str(one.state), one.runtime_s) for one in searcher.study.trials] == [("COMPLETE", 2.0)]


def test_open_trials_are_known_after_a_restore_and_late_reports_change_nothing(tmp_path: Path) -> None:
    result = {"training_iteration": 1, "score": 1.0, "time_total_s": 1.0}
    first = LynceusSearcher(seed=1)
    first.set_search_properties("score", "max", SPACE)
    for name in ("1", "2", "open"):
        first.suggest(name)
    for _ in range(2):  # a trial may report after its end
        first.on_trial_result("1", result)
        first.on_trial_complete("1", result)
    first.save(str(tmp_path / "searcher.pkl"))
    second = LynceusSearcher(seed=1)
    second.restore(str(tmp_path / "searcher.pkl"))
    second.on_trial_complete("2", result)
    second.suggest("3")
    second.on_trial_complete("3", result)
    assert [str(one.state) for one in second.study.trials] == ["COMPLETE", "COMPLETE", "RUNNING", "COMPLETE"]
    assert len(second.study.pending) == 1
