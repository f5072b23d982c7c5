"""Explorations of the demo's job: money, distances, what stopping saved."""

import math

import pytest

from lynceus.demo import Course, Tally, course_of, demo_job, in_order, run_study, summarise, tasks
from lynceus.demo.compare import Task
from lynceus.demo.course import saved_usd
from lynceus.demo.report import near_of, verdict
from lynceus.demo.words import sparkline
from lynceus.history import End


@pytest.mark.parametrize("policy", ["random", "random+timeouts", "sweep", "bo"])
def test_no_policy_overspends_and_the_tally_agrees_with_the_study(policy: str) -> None:
    job = demo_job(1, budget_usd=4.0)
    study = run_study(job, policy, seed=2)
    tally = Tally()
    for seen in study.history:
        tally = tally.after(job, seen)
    assert 0 < tally.spent_usd == pytest.approx(study.spent_usd)
    assert study.spent_usd <= 4.0 * (1 + 1e-9)
    assert tally.stopped == sum(seen.outcome.end is End.CAPPED for seen in study.history)
    assert len(tally.lines) == len(tally.bests) == len(study.history)
    if tally.best_row is not None:
        assert tally.best_usd == pytest.approx(study.best_value)
        assert dict(job.problem.space.point(tally.best_row)) == dict(study.best_params)


def test_savings_are_what_the_rest_of_the_stopped_runs_would_have_cost() -> None:
    job = demo_job(1, budget_usd=3.0)
    study = run_study(job, "sweep", seed=0)
    stopped = [seen for seen in study.history if seen.outcome.end is End.CAPPED]
    assert stopped
    for seen in stopped:
        full = job.cost_usd[seen.row]
        assert saved_usd(job.problem, seen) == pytest.approx(full - seen.outcome.charged_usd)
    assert all(saved_usd(job.problem, seen) == 0 for seen in study.history if seen not in stopped)


def test_a_course_goes_down_to_the_distance_of_the_best_run() -> None:
    job = demo_job(0, budget_usd=6.0)
    study = run_study(job, "random", seed=0)
    course = course_of(job, "random", 0, study.history)
    assert list(course.distance) == sorted(course.distance, reverse=True)
    assert list(course.spent_usd) == sorted(course.spent_usd)
    assert course.spent_usd[-1] == pytest.approx(study.spent_usd)
    final = course.distance_after(6.0)
    assert final == pytest.approx(study.best_value / job.optimum_usd)
    assert course.distance_after(course.spent_until(final)) == final
    assert math.isinf(course.distance_after(0.0))
    assert math.isinf(course.spent_until(0.99))


def test_a_task_gives_in_another_process_what_it_gives_here() -> None:
    from lynceus.demo import background

    task = Task("random", 3, 0, 3.0)
    with background([task], workers=1) as courses:
        assert next(courses) == task.run()


def test_the_comparison_has_every_policy_and_not_the_watched_run() -> None:
    work = tasks("lynceus", seed=7, budget_usd=5.0, seeds=3)
    assert {task.policy for task in work} == {"bo", "random", "lynceus"}
    assert Task("lynceus", 7, 7, 5.0) not in work
    assert all(task.budget_usd == (5.0 if task.policy == "lynceus" else 15.0) for task in work)
    assert len(set(work)) == len(work) == 6 + 6 + 2
    assert work[-1].policy == "lynceus"  # the slow ones last, so that they are what impatience drops
    assert len(tasks("bo", 0, 5.0, 3)) == 6 + 5


def test_summaries_are_medians_and_count_who_never_arrived() -> None:
    def course(policy: str, seed: int, *usd_and_distance: tuple[float, float]) -> Course:
        return Course(policy, seed, tuple(u for u, _ in usd_and_distance), tuple(d for _, d in usd_and_distance))

    courses = [
        course("mine", 1, (1, 2.0), (2, 1.0)),
        course("random", 2, (1, 2.0), (4, 1.5)),
        course("bo", 1, (4, 1.05)),
        course("mine", 0, (3, 1.1)),
        course("bo", 0, (1, 3.0), (9, 1.3)),
        course("bo", 2, (6, 1.0)),
    ]
    mine, bo, random = summarise(in_order(courses), near=1.1, budget_usd=5.0)
    assert (mine.policy, mine.seeds, mine.arrived, mine.usd_until_near) == ("mine", 2, 2, 2.5)
    assert (bo.seeds, bo.arrived, bo.usd_until_near, bo.final) == (3, 2, 6, 3.0)
    assert random.arrived == 0
    assert math.isinf(random.usd_until_near)
    sentence = verdict([mine, bo, random])
    assert "Plain Bayesian optimisation 2.4 times" in sentence
    assert "random search more than 6.0 times" in sentence
    assert "larger --budget" in verdict([random, bo])


def test_policies_are_compared_at_ten_percent_or_as_near_as_the_watched_run_got() -> None:
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
