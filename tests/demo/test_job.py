"""The job of the demo behaves as documented."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.demo.job import demo_job, demo_space, done, held_gb, run_seconds, spill

SPACE = demo_space()
NOISE_FREE = run_seconds(SPACE)


def seconds(**params: object) -> float:
    return float(NOISE_FREE[SPACE.row(params)])


def where(name: str, value: object) -> np.ndarray:
    return np.asarray(SPACE.column(name)) == value


def test_the_same_seed_gives_the_same_job_and_another_seed_other_noise() -> None:
    first, again, other = demo_job(3), demo_job(3), demo_job(4)
    assert (first.measured.seconds == again.measured.seconds).all()
    assert first.measured.progress == again.measured.progress
    assert not np.isclose(first.measured.seconds, other.measured.seconds).all()
    assert first.problem.space == other.problem.space


def test_noise_is_a_few_percent() -> None:
    spread = np.log(demo_job(0).measured.seconds / NOISE_FREE).std()
    assert 0.03 < spread < 0.05
    assert (demo_job(0, noise=0.0).measured.seconds == NOISE_FREE).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_job_is_worth_tuning(seed: int) -> None:
    job = demo_job(seed)
    times, costs = job.measured.seconds, job.cost_usd
    assert 300 <= len(job.problem.space) <= 1500
    assert (times > 0).all()
    assert times.min() < 5 * 60
    assert times.max() > 3600
    assert 0.4 < job.on_time.mean() < 0.6
    assert costs.max() / job.optimum_usd > 30
    near = job.on_time & (costs <= 1.1 * job.optimum_usd)
    assert 1 <= near.sum() <= 0.03 * len(costs)


@pytest.mark.parametrize("seed", range(5))
def test_the_optimum_is_neither_the_cheapest_nor_the_most_expensive_nor_the_fastest_machine(seed: int) -> None:
    job = demo_job(seed)
    price, row = job.problem.price, job.optimum_row
    assert price.min() < price[row] < price.max()
    assert job.measured.seconds[row] > job.measured.seconds.min()
    assert job.problem.space.point(row)["partitions"] == 256
    assert job.cost_usd[row] == job.optimum_usd
    assert job.on_time[row]


def test_the_budget_pays_for_about_25_typical_runs() -> None:
    job = demo_job()
    assert 20 < job.problem.budget.usd / job.cost_usd.mean() < 30


def test_forbidden_combinations_are_left_out() -> None:
    assert (np.asarray(SPACE.column("cores"), float) <= 128).all()
    assert not (where("machine", "compute.4") & where("executor_gb", 10)).any()


@given(st.floats(0.05, 60), st.floats(0.5, 30), st.floats(1.0, 4.0))
def test_more_memory_is_never_slower_at_the_cliff(need: float, have: float, more: float) -> None:
    less_memory, more_memory = spill(np.array([need, need]), np.array([have, have * more]))
    assert 1 <= more_memory <= less_memory


def test_the_cliff_is_steep_and_smooth() -> None:
    have = np.full(400, 1.0)
    need = np.linspace(0.5, 2.0, 400)
    slowdown = spill(need, have)
    assert slowdown[0] < 1.01
    assert slowdown[-1] > 5
    assert np.diff(slowdown).max() < 0.03
    # twice the machines hold half of the cache each
    assert held_gb(np.array([8.0]), np.array([2.0]), np.array([256.0])) < held_gb(
        np.array([4.0]), np.array([2.0]), np.array([256.0])
    )


def test_machines_with_more_memory_avoid_the_cliff() -> None:
    rest = {"nodes": 2, "executor_gb": 4, "partitions": 256, "codec": "lz4"}
    poor, rich = seconds(machine="compute.8", **rest), seconds(machine="memory.8", **rest)
    assert poor > 3 * rich  # although its cores are faster


def test_more_nodes_help_at_first_and_cost_more_in_the_end() -> None:
    by_nodes = {
        nodes: seconds(machine="general.8", nodes=nodes, executor_gb=4, partitions=256, codec="lz4")
        for nodes in (2, 4, 8, 16)
    }
    assert by_nodes[2] > 2 * by_nodes[4]
    assert by_nodes[16] * 16 > 1.5 * by_nodes[4] * 4  # node-seconds: communication outweighs the speed-up


def test_the_best_number_of_partitions_depends_on_the_cluster() -> None:
    def best(machine: str, nodes: int) -> int:
        options = (64, 256, 1024)
        times = [seconds(machine=machine, nodes=nodes, executor_gb=4, partitions=p, codec="lz4") for p in options]
        return options[int(np.argmin(times))]

    found = {best(machine, nodes) for machine in ("compute.8", "compute.16", "memory.4") for nodes in (2, 4, 8)}
    assert len(found) > 1


def test_the_better_codec_depends_on_the_cluster() -> None:
    zstd = NOISE_FREE[where("codec", "zstd")] < NOISE_FREE[where("codec", "lz4")]
    assert 0 < zstd.sum() < len(zstd)


def test_progress_rises_to_one_and_saturates() -> None:
    job = demo_job()
    assert job.measured.progress is not None
    for row in range(0, len(job.problem.space), 7):
        progress = np.array(job.measured.progress[row])
        assert len(progress) == np.ceil(job.measured.seconds[row] / job.measured.tick_s)
        assert (np.diff(progress) > 0).all()
        assert 0 < progress[0] <= 1
        assert progress[-1] == pytest.approx(1.0)
    halves = done(np.array([0.0, 0.5, 1.0, 1.2]))
    assert halves[0] == 0
    assert 0.5 < halves[1] < 1
    assert halves[2] == halves[3] == pytest.approx(1)
