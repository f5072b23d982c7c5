"""Packed systems: the compiled kernel against LAPACK and against explicit formulas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from lynceus.models.gaussian import packed as module
from lynceus.models.gaussian.packed import log_evidence, packed_lower, systems, unpacked
from lynceus.space.column import FloatArray


def random_systems(members: int, size: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Covariances of random points, right-hand sides, and variances."""
    generator = np.random.default_rng(seed)
    points = generator.random((size, 3))
    distance = np.linalg.norm(points[:, np.newaxis] - points, axis=2)
    matrices = np.exp(-distance * generator.uniform(0.2, 5.0, (members, 1, 1)))
    return packed_lower(matrices), generator.normal(size=(members, size)), generator.uniform(0.01, 2.0, (members, size))


@pytest.mark.skipif(not module.compiled, reason="the compiled kernel is not installed")
@given(st.integers(1, 20), st.integers(1, 40), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_the_compiled_kernel_computes_what_lapack_does(members: int, size: int, seed: int) -> None:
    packed, mean, variance = random_systems(members, size, seed)
    for inverse in (True, False):
        got = systems(packed, mean, variance, inverse=inverse)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "compiled", False)
            wanted = systems(packed, mean, variance, inverse=inverse)
        for name in ("log_size", "squares", "diagonal", "solved"):
            np.testing.assert_allclose(getattr(got, name), getattr(wanted, name), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("size", [1, 4, 5, 30])
def test_systems_are_those_of_the_formulas(size: int, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "compiled", compiled and module.compiled)
    packed, mean, variance = random_systems(3, size, seed=size)
    found, evidence = systems(packed, mean, variance, inverse=True), log_evidence(packed, mean[0], variance)
    lower = unpacked(packed, variance)
    for member, triangle in enumerate(lower):
        matrix = triangle + np.tril(triangle, -1).T
        inverse = np.linalg.inv(matrix)
        assert found.diagonal[member] == pytest.approx(np.diagonal(inverse))
        assert found.solved[member] == pytest.approx(inverse @ mean[member])
        assert found.squares[member] == pytest.approx(mean[member] @ inverse @ mean[member])
        assert found.log_size[member] == pytest.approx(0.5 * np.linalg.slogdet(matrix)[1], abs=1e-12)
        assert evidence[member] == pytest.approx(multivariate_normal.logpdf(mean[0], cov=matrix))


@pytest.mark.parametrize("compiled", [True, False])
def test_one_singular_matrix_gets_a_jitter_and_spoils_no_other(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "compiled", compiled and module.compiled)
    matrices = np.stack([np.eye(3) * 4.0, np.ones((3, 3))])
    found = systems(packed_lower(matrices), np.ones((2, 3)), np.zeros((2, 3)), inverse=True)
    assert found.diagonal[0] == pytest.approx([0.25] * 3)
    assert np.isfinite(found.solved).all()


@pytest.mark.skipif(not module.compiled, reason="the compiled kernel is not installed")
def test_the_kernel_refuses_arrays_of_another_size() -> None:
    packed, mean, variance = random_systems(2, 4, seed=0)
    outputs = (np.empty(2), np.empty(2), None, None)
    with pytest.raises(ValueError, match="another size"):
        module._compiled_solve((2, 5), (packed, mean, variance), outputs)


def test_unpacking_reverses_packing() -> None:
    matrices = np.tril(np.random.default_rng(0).random((2, 6, 6)))
    assert (unpacked(packed_lower(matrices)) == matrices).all()
