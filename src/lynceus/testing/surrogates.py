"""The contract of surrogates."""

from __future__ import annotations

import copy

import numpy as np

from lynceus.acquisition.functions import ConstrainedImprovement
from lynceus.models.interfaces import SupportsPick, Surrogate
from lynceus.models.state import State
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.planners.outcomes import GaussHermite, imagine
from lynceus.testing.immutability import fingerprint
from lynceus.testing.job import SmallJob, small_job


def check_surrogate(surrogate: Surrogate, *, tolerance: float = 1e-9) -> None:
    """Check shapes, finite numbers, determinism, purity, and that batches agree with single states; raises AssertionError."""
    assert hash(surrogate) == hash(copy.copy(surrogate)), "a part must be a frozen value with a hash"
    for job in (
        small_job("runtime <= 30m"),
        small_job("runtime <= 30m", "accuracy >= 0.85"),
        small_job("runtime <= 30m", objective="maximize accuracy"),
    ):
        for n in (1, 2, 3, 9):
            _check_one(surrogate, job, n)
        _check_batch(surrogate, job, tolerance)
        _check_pick(surrogate, job)


def _check_one(surrogate: Surrogate, job: SmallJob, n: int) -> None:
    state = State.present(job.problem, job.finished(job.order_of_runs[:n]))
    before = fingerprint(state)
    prediction = surrogate(state, 7)
    shape = (1, len(job.problem.space), state.targets)
    assert prediction.mean.shape == prediction.std.shape == shape, (
        f"a prediction must have shape {shape}, not {prediction.mean.shape}"
    )
    assert np.isfinite([prediction.mean, prediction.std]).all(), f"{n} observations: predictions must be finite"
    assert (prediction.std >= 0).all(), "standard deviations must not be negative"
    again = surrogate(state, 7)
    assert np.array_equal([prediction.mean, prediction.std], [again.mean, again.std]), (
        "the same seed must give the same prediction"
    )
    assert fingerprint(state) == before, "a surrogate must not change the state"


def _children(surrogate: Surrogate, job: SmallJob, levels: int) -> State:
    """Imagined states `levels` runs deep, three outcomes each."""
    state = State.present(job.problem, job.finished(job.order_of_runs[:6]))
    for level in range(levels):
        prediction = surrogate(state, 7)
        rows = np.full(len(state), job.order_of_runs[10 + level], dtype=np.int64)
        if level == 0:
            rows = np.array(job.order_of_runs[6:10], dtype=np.int64)
        at = np.zeros(len(rows), dtype=np.int64) if level == 0 else np.arange(len(rows))
        moments = (prediction.mean[at, rows], prediction.std[at, rows])
        imagined = imagine(state, prediction.form, rows, moments, GaussHermite(), capped=False, logs=prediction.logs)
        state = state.after(rows, imagined.target, imagined.charge, imagined.value)
    return state


def _check_batch(surrogate: Surrogate, job: SmallJob, tolerance: float) -> None:
    for levels in (1, 2):
        children = _children(surrogate, job, levels)
        prediction = surrogate(children, 7)
        for i in range(0, len(children), max(1, len(children) // 5)):
            alone = surrogate(children.part(slice(i, i + 1)), 7)
            for name in ("mean", "std"):
                batched, single = getattr(prediction, name)[i], getattr(alone, name)[0]
                assert np.allclose(batched, single, rtol=tolerance, atol=tolerance), (
                    f"imagined state {i} has another {name} in a batch than alone"
                )


def _check_pick(surrogate: Surrogate, job: SmallJob) -> None:
    if not isinstance(surrogate, SupportsPick):
        return
    acquisition, confidence = ConstrainedImprovement(), 0.99
    children = _children(surrogate, job, 1)
    fused = surrogate.pick(children, acquisition, confidence, 7)
    if fused is None:
        return
    plain = Lookahead(acquisition, confidence=confidence)._pick_by_prediction(children, surrogate, 7)
    assert np.array_equal(fused.row, plain.row), "pick and predictions choose different rows"
    for name in ("value", "mean", "std"):
        assert np.allclose(getattr(fused, name), getattr(plain, name), rtol=1e-9, atol=1e-12), f"pick: other {name}"
