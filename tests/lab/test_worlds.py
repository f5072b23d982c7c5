"""Worlds: how they change runs, and that they depend on the seed only."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.executors.interface import Request
from lynceus.executors.simulation import SimulatedRun
from lynceus.executors.table import SimulatedClock, TableExecutor
from lynceus.policy.presets import preset
from lynceus.testing.job import small_job
from lynceus.trial.outcome import End, FailureReason, Outcome
from lynceus_lab.worlds import Failures, Interruptions, Noise, SlowBoots, Stacked

WORLDS = [Noise(0.3), Failures(0.4), SlowBoots(90.0), Interruptions(120.0)]


def plain(request: Request) -> SimulatedRun:
    """A job of 100 seconds."""
    if request.timeout_s < 100:
        return SimulatedRun(Outcome(End.TIMEOUT, request.timeout_s, 0.0, oracle_s=100.0))
    return SimulatedRun(Outcome(End.FINISHED, 100.0, 0.0))


def request(number: int = 0, timeout_s: float = math.inf, boots: bool = True) -> Request:
    return Request("study", number, 0, {}, timeout_s, boots)


def ran(world, numbers, seed=0, **how):
    simulate = world(plain, seed)
    return [simulate(request(number, **how)) for number in numbers]


def test_noise_has_mean_one_and_the_given_spread():
    seconds = np.array([one.outcome.seconds for one in ran(Noise(0.2), range(4000))])
    assert seconds.mean() == pytest.approx(100, rel=0.02)
    assert np.log(seconds).std() == pytest.approx(0.2, rel=0.05)


def test_failures_have_the_given_frequency_and_do_not_blame_the_configuration():
    ends = [one.outcome for one in ran(Failures(0.3), range(4000))]
    failed = [one for one in ends if one.end is End.FAILED]
    assert len(failed) / 4000 == pytest.approx(0.3, abs=0.03)
    assert {one.reason for one in failed} == {FailureReason.INFRA}
    assert np.mean([one.seconds for one in failed]) == pytest.approx(50, abs=4)


def test_interruptions_are_exponential():
    ends = [one.outcome for one in ran(Interruptions(200.0), range(4000))]
    lost = [one for one in ends if one.end is End.FAILED]
    assert len(lost) / 4000 == pytest.approx(1 - math.exp(-0.5), abs=0.03)
    assert {one.reason for one in lost} == {FailureReason.PREEMPTED}


def test_slow_boots_delay_only_machines_that_boot():
    delays = [one.delay_s for one in ran(SlowBoots(60.0), range(4000))]
    assert np.mean(delays) == pytest.approx(60, rel=0.06)
    assert {one.delay_s for one in ran(SlowBoots(60.0), range(10), boots=False)} == {0.0}


@pytest.mark.parametrize("world", [*WORLDS, Stacked(tuple(WORLDS))], ids=lambda world: type(world).__name__)
@given(st.integers(0, 50), st.integers(0, 5), st.floats(0.5, 400), st.floats(0.1, 1.0))
@example(30, 4, 50.0, 0.5)  # an interruption before a failure
def test_a_smaller_timeout_gives_the_same_run_cut_off_earlier(world, number, seed, timeout_s, share):
    simulate = world(plain, seed)
    whole, cut = simulate(request(number, timeout_s)).outcome, simulate(request(number, timeout_s * share)).outcome
    assert simulate(request(number, timeout_s)).outcome == whole
    assert whole.seconds <= timeout_s * (1 + 1e-9)
    assert cut.seconds == pytest.approx(min(whole.seconds, timeout_s * share))
    if whole.end is End.TIMEOUT:
        assert whole.oracle_s >= whole.seconds
    if cut.end is not End.TIMEOUT:
        assert (cut.end, cut.reason) == (whole.end, whole.reason)


def test_the_table_charges_the_delays_of_a_world():
    job = small_job("runtime <= 30m")
    row, price = 3, float(job.problem.price[3])
    clock = SimulatedClock()
    executor = TableExecutor(job.problem, job.measured, clock, world=SlowBoots(600.0), seed=5)
    ticket = executor.launch(Request("s", 0, row, {}, math.inf, True))
    assert executor.collect(ticket) is None
    while (outcome := executor.collect(ticket)) is None:
        clock.sleep(1.0)
    delay_s = SlowBoots(600.0)(plain, 5)(request(0)).delay_s
    assert outcome.seconds == job.measured.seconds[row]
    assert outcome.charged_usd == pytest.approx(job.problem.billing.charge(outcome.seconds + delay_s, price))
    assert clock.now() == pytest.approx(outcome.seconds + delay_s + job.problem.billing.boot_s)


@pytest.mark.parametrize(
    "make", [lambda: Noise(0.0), lambda: Failures(1.0), lambda: SlowBoots(-1), lambda: Interruptions(math.inf)]
)
def test_an_invalid_world_is_refused(make):
    with pytest.raises(InputError, match="world: "):
        make()


def test_the_score_of_a_noisy_replay_uses_the_true_costs():
    from lynceus.replay.job import ReplayJob
    from lynceus.replay.run import replay
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
