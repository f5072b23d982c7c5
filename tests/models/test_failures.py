"""The chance to fail: what it learns from few trials, and its approximation against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_expit

from lynceus.models.failures import _kernel, _laplace, chance_to_fail
from lynceus.space.parameter import Categorical, Integer, Ordinal
from lynceus.space.table import Space
from lynceus.trial.outcome import End, FailureReason, Observation
from retry_cases import run

SPACE = Space.build(
    [Ordinal("memory_gib", (2, 4, 8, 16, 32)), Integer("workers", 1, 6), Categorical("codec", ("lz4", "zstd"))],
    price="0.01 * memory_gib * workers",
)


def rows_where(**wanted: object) -> list[int]:
    return [row for row in range(len(SPACE)) if wanted.items() <= SPACE.point(row).items()]


def seen(failed: list[int], worked: list[int], reason: FailureReason = FailureReason.OOM) -> tuple[Observation, ...]:
    return (*(run(row, reason) for row in failed), *(run(row, End.FINISHED) for row in worked))


def test_without_a_failure_that_blames_a_configuration_there_is_no_chance() -> None:
    assert chance_to_fail(SPACE, ()) is None
    others = [run(3, reason) for reason in FailureReason if not reason.blames_configuration]
    assert chance_to_fail(SPACE, (run(0, End.FINISHED), run(1, End.TIMEOUT), *others)) is None


def test_out_of_memory_raises_a_floor_of_memory() -> None:
    chance = chance_to_fail(SPACE, seen(rows_where(memory_gib=8, workers=3)[:1], []))
    assert chance is not None
    by_memory = [float(np.mean(chance[rows_where(memory_gib=size)])) for size in (2, 4, 8, 16, 32)]
    assert by_memory[2:] == sorted(by_memory[2:], reverse=True)
    assert min(by_memory[:3]) > by_memory[-1] + 0.08
    job = chance_to_fail(SPACE, seen(rows_where(memory_gib=8, workers=3)[:1], [], FailureReason.JOB))
    assert job is not None
    spread = [float(np.mean(job[rows_where(memory_gib=size)])) for size in (2, 32)]
    assert by_memory[0] - by_memory[-1] > spread[0] - spread[-1], "only out of memory says something about memory"


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_failures_of_one_value_are_learnt_from_a_few_trials(codec: str) -> None:
    other = {"lz4": "zstd", "zstd": "lz4"}[codec]
    failed, worked = rows_where(codec=codec)[::7][:4], rows_where(codec=other)[::7][:4]
    chance = chance_to_fail(SPACE, seen(failed, worked, FailureReason.JOB))
    assert chance is not None
    assert chance[rows_where(codec=codec)].min() > 0.5 > chance[rows_where(codec=other)].max()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(SPACE) - 1), st.booleans()), min_size=1, max_size=40))
def test_chances_are_probabilities_and_rank_what_was_seen(trials: list[tuple[int, bool]]) -> None:
    found = tuple(run(row, FailureReason.JOB if bad else End.FINISHED) for row, bad in trials)
    chance = chance_to_fail(SPACE, found)
    if not any(bad for _, bad in trials):
        assert chance is None
        return
    assert chance is not None
    assert chance.shape == (len(SPACE),)
    assert ((chance > 0) & (chance < 1)).all()
    rows = {row for row, _ in trials}
    always = [row for row in rows if all(bad for one, bad in trials if one == row)]
    never = [row for row in rows if not any(bad for one, bad in trials if one == row)]
    if always and never:
        assert chance[always].mean() > chance[never].mean()


def test_the_approximation_finds_the_largest_posterior() -> None:
    random = np.random.default_rng(0)
    inputs = random.normal(size=(30, 2))
    rows = np.arange(12)
    failed = inputs[rows, 0] > 0.3
    cross, own, prior = _kernel(inputs, inputs[rows], 1.0, 0.2), np.full(30, 36.0), np.full(30, -2.5)
    chance, evidence = _laplace(cross, own, rows, failed, prior)
    among, sign = cross[rows] + 1e-6 * np.eye(12), np.where(failed, 1.0, -1.0)

    def loss(weighed: np.ndarray) -> float:
        return float(0.5 * weighed @ among @ weighed - log_expit(sign * (prior[rows] + among @ weighed)).sum())

    best = minimize(loss, np.zeros(12), method="BFGS", options={"maxiter": 2000})
    latent = prior + cross @ best.x
    assert ((chance > 0.5) == (latent > 0)).all()
    curvature = np.exp(log_expit(latent[rows]) + log_expit(-latent[rows]))
    root = np.sqrt(curvature)
    volume = np.linalg.slogdet(np.eye(12) + root[:, None] * among * root)[1] / 2
    assert evidence == pytest.approx(-best.fun - volume, abs=0.02)
