"""What every surrogate promises."""

from __future__ import annotations

import copy

import numpy as np

from lynceus.acquisition.gains import ConstrainedImprovement
from lynceus.choose.imagine import Quadrature, imagine
from lynceus.choose.rollout import Rollout
from lynceus.parts import PicksRows, Surrogate
from lynceus.situation import Situation
from lynceus.testing.job import SmallJob, small_job
from lynceus.testing.unchanged import fingerprint


def check_surrogate(surrogate: Surrogate, *, tolerance: float = 1e-9) -> None:
    """Shapes, finite numbers, determinism, purity, and batches that agree with single situations (AssertionError if not)."""
    assert hash(surrogate) == hash(copy.copy(surrogate)), "a part is a frozen value with a hash"
    for job in (
        small_job("runtime <= 30m"),
        small_job("runtime <= 30m", "accuracy >= 0.85"),
        small_job("runtime <= 30m", goal="maximize accuracy"),
    ):
        for n in (1, 2, 3, 9):
            _check_one(surrogate, job, n)
        _check_batch(surrogate, job, tolerance)
        _check_pick(surrogate, job)


def _check_one(surrogate: Surrogate, job: SmallJob, n: int) -> None:
    situation = Situation.present(job.problem, job.finished(job.order_of_runs[:n]))
    before = fingerprint(situation)
    belief = surrogate(situation, 7)
    shape = (1, len(job.problem.space), situation.targets)
    assert belief.mean.shape == belief.std.shape == shape, f"a belief has shape {shape}, not {belief.mean.shape}"
    assert np.isfinite([belief.mean, belief.std]).all(), f"{n} observations: numbers must be finite"
    assert (belief.std >= 0).all(), "a standard deviation is not negative"
    again = surrogate(situation, 7)
    assert np.array_equal([belief.mean, belief.std], [again.mean, again.std]), "same seed, same belief"
    assert fingerprint(situation) == before, "a surrogate leaves the situation as it is"


def _children(surrogate: Surrogate, job: SmallJob, levels: int) -> Situation:
    """Imagined situations `levels` runs deep, three outcomes each."""
    situation = Situation.present(job.problem, job.finished(job.order_of_runs[:6]))
    for level in range(levels):
        belief = surrogate(situation, 7)
        rows = np.full(len(situation), job.order_of_runs[10 + level], dtype=np.int64)
        if level == 0:
            rows = np.array(job.order_of_runs[6:10], dtype=np.int64)
        at = np.zeros(len(rows), dtype=np.int64) if level == 0 else np.arange(len(rows))
        moments = (belief.mean[at, rows], belief.std[at, rows])
        imagined = imagine(situation, belief.form, rows, moments, Quadrature(), capped=False)
        situation = situation.after(rows, imagined.told, imagined.charge, imagined.value)
    return situation


def _check_batch(surrogate: Surrogate, job: SmallJob, tolerance: float) -> None:
    for levels in (1, 2):
        children = _children(surrogate, job, levels)
        belief = surrogate(children, 7)
        for i in range(0, len(children), max(1, len(children) // 5)):
            alone = surrogate(children.part(slice(i, i + 1)), 7)
            for name in ("mean", "std"):
                batched, single = getattr(belief, name)[i], getattr(alone, name)[0]
                assert np.allclose(batched, single, rtol=tolerance, atol=tolerance), (
                    f"imagined situation {i} of a batch has another {name} than the same situation alone"
                )


def _check_pick(surrogate: Surrogate, job: SmallJob) -> None:
    if not isinstance(surrogate, PicksRows):
        return
    gain, sure = ConstrainedImprovement(), 0.99
    children = _children(surrogate, job, 1)
    fused = surrogate.pick(children, gain, sure, 7)
    if fused is None:
        return
    plain = Rollout(gain, sure=sure)._pick_by_belief(children, surrogate, 7)
    assert np.array_equal(fused.row, plain.row), "pick and belief choose different rows"
    for name in ("gain", "mean", "std"):
        assert np.allclose(getattr(fused, name), getattr(plain, name), rtol=1e-9, atol=1e-12), f"pick: other {name}"
