"""Harder worlds: what they do to runs, and that the same seed meets the same misfortune."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.executor import PretendedClock, Request, TableExecutor
from lynceus.executor.worlds import Failures, Happening, Interruptions, Noise, SlowBoots, Stacked
from lynceus.history import End, Outcome, Reason
from lynceus.policy import preset
from lynceus.testing.job import small_job

WORLDS = [Noise(0.3), Failures(0.4), SlowBoots(90.0), Interruptions(120.0)]


def plain(request: Request) -> Happening:
    """A job of 100 seconds."""
    if request.cap_s < 100:
        return Happening(Outcome(End.CAPPED, request.cap_s, 0.0, oracle_s=100.0))
    return Happening(Outcome(End.FINISHED, 100.0, 0.0))


def request(number: int = 0, cap_s: float = math.inf, boots: bool = True) -> Request:
    return Request("study", number, 0, {}, cap_s, boots)


def ran(world, numbers, seed=0, **how):
    happens = world(plain, seed)
    return [happens(request(number, **how)) for number in numbers]


def test_noise_has_mean_one_and_the_named_spread():
    seconds = np.array([one.outcome.seconds for one in ran(Noise(0.2), range(4000))])
    assert seconds.mean() == pytest.approx(100, rel=0.02)
    assert np.log(seconds).std() == pytest.approx(0.2, rel=0.05)


def test_failures_are_as_frequent_as_named_and_blame_nobody():
    ends = [one.outcome for one in ran(Failures(0.3), range(4000))]
    failed = [one for one in ends if one.end is End.FAILED]
    assert len(failed) / 4000 == pytest.approx(0.3, abs=0.03)
    assert {one.reason for one in failed} == {Reason.INFRA}
    assert np.mean([one.seconds for one in failed]) == pytest.approx(50, abs=4)


def test_interruptions_are_exponential():
    ends = [one.outcome for one in ran(Interruptions(200.0), range(4000))]
    lost = [one for one in ends if one.end is End.FAILED]
    assert len(lost) / 4000 == pytest.approx(1 - math.exp(-0.5), abs=0.03)
    assert {one.reason for one in lost} == {Reason.PREEMPTED}


def test_slow_boots_are_billed_and_warm_machines_do_not_boot():
    late = [one.late_s for one in ran(SlowBoots(60.0), range(4000))]
    assert np.mean(late) == pytest.approx(60, rel=0.06)
    assert {one.late_s for one in ran(SlowBoots(60.0), range(10), boots=False)} == {0.0}


@pytest.mark.parametrize("world", [*WORLDS, Stacked(tuple(WORLDS))], ids=lambda world: type(world).__name__)
@given(st.integers(0, 50), st.integers(0, 5), st.floats(0.5, 400), st.floats(0.1, 1.0))
def test_a_lower_cap_tells_the_same_run_cut_shorter(world, number, seed, cap, share):
    happens = world(plain, seed)
    whole, cut = happens(request(number, cap)).outcome, happens(request(number, cap * share)).outcome
    assert happens(request(number, cap)).outcome == whole
    assert whole.seconds <= cap * (1 + 1e-9)
    assert cut.seconds == pytest.approx(min(whole.seconds, cap * share))
    if whole.end is End.CAPPED:
        assert whole.oracle_s >= whole.seconds
    if cut.end is not End.CAPPED:
        assert (cut.end, cut.reason) == (whole.end, whole.reason)


def test_the_table_charges_what_the_world_made_of_it():
    job = small_job("runtime <= 30m")
    row, price = 3, float(job.problem.price[3])
    clock = PretendedClock()
    executor = TableExecutor(job.problem, job.measured, clock, world=SlowBoots(600.0), seed=5)
    ticket = executor.launch(Request("s", 0, row, {}, math.inf, True))
    assert executor.collect(ticket) is None
    while (outcome := executor.collect(ticket)) is None:
        clock.sleep(1.0)
    late = SlowBoots(600.0)(plain, 5)(request(0)).late_s
    assert outcome.seconds == job.measured.seconds[row]
    assert outcome.charged_usd == pytest.approx(job.problem.tariff.charge(outcome.seconds + late, price))
    assert clock.now() == pytest.approx(outcome.seconds + late + job.problem.tariff.boot_s)


@pytest.mark.parametrize(
    "make", [lambda: Noise(0.0), lambda: Failures(1.0), lambda: SlowBoots(-1), lambda: Interruptions(math.inf)]
)
def test_an_impossible_world_is_refused(make):
    with pytest.raises(InputError, match="world: "):
        make()


def test_a_lucky_measurement_does_not_fool_the_judge():
    from lynceus.replay import replay
    from lynceus.replay.job import ReplayJob
    from lynceus.replay.score import optimum

    job = small_job("runtime <= 30m")
    best = optimum(job.problem, job.measured)
    assert best is not None
    whole = ReplayJob("small", job.problem, job.measured, best)
    done = [replay(whole, preset("random"), seed, until="end", world=Noise(0.8)) for seed in range(4)]
    for one in done:
        truth = {round(step.cno, 9) for step in one.steps if math.isfinite(step.cno)}
        real = {
            round(best.cno(job.problem.cost(row, float(job.measured.seconds[row]))), 9)
            for row in range(len(job.problem.space))
        }
        assert truth <= real
    assert any(after.cno > before.cno for one in done for before, after in zip(one.steps, one.steps[1:], strict=False))
