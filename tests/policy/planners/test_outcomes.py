"""The outcomes that the look-ahead imagines."""

from __future__ import annotations

import numpy as np
import pytest

from lynceus.policy.planners.outcomes import GaussHermite


@pytest.mark.parametrize("points", [1, 2, 3, 5])
def test_quadrature_is_exact_for_polynomials(points: int) -> None:
    mean, std = np.array([[2.0, -1.0]]), np.array([[0.5, 3.0]])
    nodes, weights = GaussHermite(points)(mean, std)
    assert nodes.shape == (1, points**2, 2)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights * nodes[0, :, 0] * nodes[0, :, 1]).sum() == pytest.approx(-2.0)
    if points > 1:
        assert (weights * nodes[0, :, 1] ** 2).sum() == pytest.approx(1.0 + 9.0)
