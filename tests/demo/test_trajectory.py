"""Searches of the demo's job: money, distances, savings of early stops."""

import math

import pytest

from lynceus.demo.compare import Search, in_order, searches, summarise
from lynceus.demo.job import demo_job
from lynceus.demo.report import near_of, verdict
from lynceus.demo.trajectory import Trajectory, run_study, saved_usd, trajectory_of
from lynceus.demo.trial_lines import Tally, sparkline
from lynceus.trial.outcome import End


@pytest.mark.parametrize("policy", ["random", "random+timeouts", "sweep", "bo"])
def test_no_policy_exceeds_the_budget_and_the_tally_agrees_with_the_study(policy: str) -> None:
    job = demo_job(1, budget_usd=4.0)
    study = run_study(job, policy, seed=2)
    tally = Tally()
    for seen in study.observations:
        tally = tally.after(job, seen)
    assert 0 < tally.spent_usd == pytest.approx(study.spent_usd)
    assert study.spent_usd <= 4.0 * (1 + 1e-9)
    assert tally.stopped == sum(seen.outcome.end is End.TIMEOUT for seen in study.observations)
    assert len(tally.lines) == len(tally.bests) == len(study.observations)
    if tally.best is not None:
        assert tally.best_usd == pytest.approx(study.best_value)
        assert dict(job.problem.space.point(tally.best.row)) == dict(study.best_params)


def test_savings_are_the_cost_of_the_rest_of_stopped_runs() -> None:
    job = demo_job(1, budget_usd=3.0)
    study = run_study(job, "sweep", seed=0)
    stopped = [seen for seen in study.observations if seen.outcome.end is End.TIMEOUT]
    assert stopped
    for seen in stopped:
        full = job.cost_usd[seen.row]
        assert saved_usd(job.problem, seen) == pytest.approx(full - seen.outcome.charged_usd)
    assert all(saved_usd(job.problem, seen) == 0 for seen in study.observations if seen not in stopped)


def test_a_trajectory_falls_to_the_distance_of_the_best_run() -> None:
    job = demo_job(0, budget_usd=6.0)
    study = run_study(job, "random", seed=0)
    trajectory = trajectory_of(job, "random", 0, study.observations)
    assert list(trajectory.distance) == sorted(trajectory.distance, reverse=True)
    assert list(trajectory.spent_usd) == sorted(trajectory.spent_usd)
    assert trajectory.spent_usd[-1] == pytest.approx(study.spent_usd)
    final = trajectory.distance_after(6.0)
    assert final == pytest.approx(study.best_value / job.optimum_usd)
    assert trajectory.distance_after(trajectory.spent_until(final)) == final
    assert math.isinf(trajectory.distance_after(0.0))
    assert math.isinf(trajectory.spent_until(0.99))


def test_a_search_gives_the_same_result_in_another_process() -> None:
    from lynceus.demo.compare import background

    search = Search("random", 3, 0, 3.0)
    with background([search], workers=1) as found:
        assert next(found) == search.run()


def test_the_comparison_has_every_policy_and_not_the_watched_run() -> None:
    work = searches("lynceus", seed=7, budget_usd=5.0, seeds=3)
    assert {search.policy for search in work} == {"bo", "random", "lynceus"}
    assert Search("lynceus", 7, 7, 5.0) not in work
    assert all(search.budget_usd == (5.0 if search.policy == "lynceus" else 15.0) for search in work)
    assert len(set(work)) == len(work) == 6 + 6 + 2
    assert work[-1].policy == "lynceus"  # the slow ones last, so that a timeout drops them
    assert len(searches("bo", 0, 5.0, 3)) == 6 + 5


def test_summaries_are_medians_and_count_seeds_that_got_near() -> None:
    def trajectory(policy: str, seed: int, *usd_and_distance: tuple[float, float]) -> Trajectory:
        return Trajectory(policy, seed, tuple(u for u, _ in usd_and_distance), tuple(d for _, d in usd_and_distance))

    trajectories = [
        trajectory("mine", 1, (1, 2.0), (2, 1.0)),
        trajectory("random", 2, (1, 2.0), (4, 1.5)),
        trajectory("bo", 1, (4, 1.05)),
        trajectory("mine", 0, (3, 1.1)),
        trajectory("bo", 0, (1, 3.0), (9, 1.3)),
        trajectory("bo", 2, (6, 1.0)),
    ]
    mine, bo, random = summarise(in_order(trajectories), near=1.1, budget_usd=5.0)
    assert (mine.policy, mine.seeds, mine.reached, mine.usd_until_near) == ("mine", 2, 2, 2.5)
    assert (bo.seeds, bo.reached, bo.usd_until_near, bo.final_distance) == (3, 2, 6, 3.0)
    assert random.reached == 0
    assert math.isinf(random.usd_until_near)
    sentence = verdict([mine, bo, random])
    assert "Plain Bayesian optimization 2.4 times" in sentence
    assert "random search more than 6.0 times" in sentence
    assert "larger --budget" in verdict([random, bo])


def test_policies_are_compared_at_ten_percent_or_at_the_distance_of_the_watched_search() -> None:
    assert near_of(1.0) == near_of(math.inf) == 1.1
    assert near_of(1.3) == 1.3


def test_a_sparkline_fits_and_ends_with_the_last_value() -> None:
    values = [math.inf] * 5 + [8.0] * 50 + [1.0]
    line = sparkline(values, 20)
    assert len(line) == 20
    assert line[0] == " "
    assert line.rstrip()[-1] == "▁"
    assert sparkline([], 5) == ""
    assert sparkline([math.inf], 5) == " "
