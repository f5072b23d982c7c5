"""Fleets of simulated jobs: money, learning, and going on after an end."""

from __future__ import annotations

import numpy as np
import pytest

import lynceus
from lynceus.executors.table import Measurements, SimulatedClock, TableExecutor
from lynceus.models.state import feasible_runs
from lynceus.study.fleet import Fleet, FleetJob
from lynceus.trial.order import Purpose
from lynceus.trial.outcome import Observation
from lynceus.trial.record import RequestedState

SPACE = lynceus.Space.build(
    [lynceus.Ordinal("size", [1, 2, 4, 8]), lynceus.Ordinal("nodes", [1, 2, 4, 8, 16])], price="0.1 * size * nodes"
)
SIZE, NODES = (
    np.array([float(str(SPACE.point(row)[name])) for row in range(len(SPACE))]) for name in ("size", "nodes")
)


def member(
    name: str, clock: SimulatedClock, *, work: float, runs: float = 100.0, wall: float = 8.0, family: str = ""
) -> FleetJob:
    seconds = work / (SIZE * NODES) ** 0.7 * np.where(wall > SIZE * NODES, 3.0, 1.0)
    deadline = f"runtime <= {float(np.median(seconds)):.0f}s"
    study = lynceus.create_study(
        space=SPACE, constraints=[deadline], budget="$100", study_name=name, future={"runs": runs}
    )
    study = lynceus.Study(study.problem, study.policy, seed=1, name=name, clock=clock)
    return FleetJob(study, TableExecutor(study.problem, Measurements(seconds), clock), family)


@pytest.mark.parametrize("budget", [0.3, 2.0])
def test_a_fleet_spends_at_most_its_budget(budget: float) -> None:
    clock = SimulatedClock()
    fleet = Fleet([member(f"job-{work}", clock, work=work) for work in (2000.0, 4000.0, 9000.0)], budget, clock)
    fleet.run()
    assert 0 < fleet.spent_usd <= budget * (1 + 1e-9)
    assert fleet.turn() is None
    assert fleet.left_usd >= -1e-9


@pytest.mark.parametrize("families", [("", ""), ("etl", "training")])
def test_jobs_of_one_family_learn_from_each_other(families: tuple[str, str]) -> None:
    clock, purposes = SimulatedClock(), []

    def settled(job: FleetJob, seen: Observation) -> None:
        purposes.append((job.study.name, seen.order.plan.purpose))

    jobs = [
        member(f"job-{one}", clock, work=one, family=each)
        for one, each in zip((1000.0, 20000.0), families, strict=True)
    ]
    fleet = Fleet(jobs, 20.0, clock)
    fleet.run(settled=settled)
    assert purposes[0][0] == "job-1000.0"  # its trials are cheaper
    assert (("job-20000.0", Purpose.HISTORY) in purposes) is (families[0] == families[1])
    assert all(job.study.best_value > 0 for job in fleet.jobs)
    assert all(job.study.over for job in fleet.jobs)


def test_a_suggestion_of_a_relative_gets_money_by_what_it_is_expected_to_save() -> None:
    """It says what it is worth, once a run has kept the limits: a job that is solved does not come first for ever."""
    clock, seen = SimulatedClock(), []
    fleet = Fleet([member(f"job-{work}", clock, work=work) for work in (1000.0, 4000.0)], 20.0, clock)
    fleet.run(settled=lambda job, one: seen.append((job, one)))
    for job, one in seen:
        plan, before = (
            one.order.plan,
            [other for other in job.study.observations if other.order.number < one.order.number],
        )
        if plan.purpose is Purpose.HISTORY:
            assert np.isnan(plan.gain) == (not feasible_runs(job.study.problem, tuple(before)))
    assert any(one.order.plan.purpose is Purpose.HISTORY and one.order.plan.gain >= 0 for _, one in seen)


def test_a_job_that_runs_more_often_gets_more() -> None:
    spent = {}
    for runs in (1.0, 1000.0):
        clock = SimulatedClock()
        jobs = [member("a", clock, work=4000.0, runs=runs), member("b", clock, work=4100.0, runs=50.0)]
        Fleet(jobs, 1.0, clock).run()
        spent[runs] = len(jobs[0].study.observations)
    assert spent[1.0] < spent[1000.0]


def test_a_job_that_the_user_stops_before_its_turn_does_not_hold_up_the_others() -> None:
    """What it was to run next was decided before."""
    clock, seen, asked = SimulatedClock(), list[Observation](), list[int]()
    jobs = [member(f"job-{work}", clock, work=work) for work in (2000.0, 4000.0)]
    fleet, stopped = Fleet(jobs, 20.0, clock), list[FleetJob]()

    def settled(job: FleetJob, one: Observation) -> None:
        seen.append(one)
        if len(seen) == 4:
            turn = fleet.turn()
            assert turn is not None
            stopped.append(fleet.jobs[turn.job])
            stopped[0].study.stop()

    def requested() -> RequestedState:
        asked.append(0)
        assert len(asked) < 10_000, "the fleet asks a job again and again that has ended"
        return RequestedState.RUN

    fleet.run(settled=settled, requested_state=requested)
    (one,) = stopped
    (other,) = (job for job in jobs if job is not one)
    assert one.study.reason == "stopped by the user"
    assert other.study.over
    assert len(other.study.observations) + len(one.study.observations) == len(seen) > 4


def test_a_fleet_that_was_ended_goes_on_with_what_is_left() -> None:
    clock = SimulatedClock()
    jobs = [member(f"job-{work}", clock, work=work) for work in (2000.0, 4000.0)]
    count: list[int] = []
    Fleet(jobs, 20.0, clock).run(
        settled=lambda job, seen: count.append(1),
        requested_state=lambda: RequestedState.STOP if len(count) >= 4 else RequestedState.RUN,
    )
    assert sum(len(job.study.observations) for job in jobs) == 4
    again = Fleet(jobs, 20.0, clock)
    again.run()
    assert again.spent_usd <= 20.0
    assert all(job.study.over for job in jobs)
