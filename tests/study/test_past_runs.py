"""Runs that were made elsewhere: what they teach, and what they do not do to a study."""

import pytest

import lynceus
from lynceus.errors import InputError
from lynceus.study.past_runs import PastRun

SPACE = lynceus.Space.build([lynceus.Integer("nodes", 1, 4)], price="nodes")


def study(**more: object) -> lynceus.Study:
    return lynceus.create_study(space=SPACE, constraints=["runtime <= 20m"], **more)  # type: ignore[arg-type]


def test_a_stopped_run_is_a_lower_bound_and_may_run_longer_here() -> None:
    one = study(policy="sweep")
    one.add_trials([PastRun({"nodes": nodes}, "5m", state="TIMEOUT") for nodes in (1, 2, 3, 4)])
    assert all(seen.target is not None and seen.target.censored for seen in one.observations)
    trial = one.ask()
    assert trial is not None, "20 minutes are allowed here, and it ran 5"
    one.tell(trial, runtime="20m", state="TIMEOUT")
    asked = [trial.params]
    while (more := one.ask()) is not None:
        one.tell(more, runtime="20m", state="TIMEOUT")
        asked.append(more.params)
    assert sorted(params["nodes"] for params in asked) == [1, 2, 3, 4], "each once, and then no more"


def test_a_run_stopped_at_the_limit_is_not_repeated() -> None:
    one = study(policy="sweep")
    one.add_trials([PastRun({"nodes": nodes}, "20m", state="TIMEOUT") for nodes in (1, 2, 3, 4)])
    assert one.ask() is None


def test_failures_elsewhere_neither_pause_a_study_nor_use_up_its_retries() -> None:
    one = study(policy="sweep")
    one.add_trials([PastRun({"nodes": 1}, state="FAIL", reason="infra") for _ in range(9)])
    one.add_trial({"nodes": 2}, state="FAIL", reason="user")
    one.add_trial({"nodes": 3}, runtime=9.0, state="FAIL", reason="oom", detail="exit code 137")
    asked = set()
    while (trial := one.ask()) is not None:
        asked.add(trial.params["nodes"])
        one.tell(trial, runtime=min(100.0, trial.timeout or 100.0))
    assert asked == {1, 2, 4}, "only the configuration that ran out of memory stays closed"
    assert one.trials[10].detail == "exit code 137"


def test_mistakes_are_refused_as_a_whole() -> None:
    one = study()
    for wrong, sentence in (
        (PastRun({"nodes": 1}, 0.0), "0 seconds"),
        (PastRun({"nodes": 1}), "needs its running time"),
        (PastRun({"nodes": 1}, 5.0, reason="oom"), "only a trial that failed has a reason"),
        (PastRun({"nodes": 1}, 5.0, state="RUNNING"), "running already"),
        (PastRun({"nodes": 9}, 5.0), "cannot be 9"),
    ):
        with pytest.raises(InputError, match=sentence):
            one.add_trials([PastRun({"nodes": 2}, 60.0), wrong])
    assert not one.trials
