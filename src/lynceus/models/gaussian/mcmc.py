"""Markov-chain Monte Carlo over hyper-parameters: the ensemble sampler of Goodman and Weare (2010), all walkers at once."""

from collections.abc import Callable

import numpy as np

from lynceus.space.column import FloatArray

_STRETCH = 2.0
"""The parameter a of the stretch move; 2 in the paper and in common implementations."""


def stretched(
    theta: FloatArray,
    weights: FloatArray,
    log_density: Callable[[FloatArray], FloatArray],
    steps: int,
    generator: np.random.Generator,
    walkers: int | None = None,
) -> FloatArray:
    """`[walkers, t]` draws from a density after `steps` stretch moves, started from weighted vectors `theta [h, t]`.

    A walker x moves along the line through a walker y of the other half: x' = y + z (x - y), z from g(z) ∝ 1/√z on
    [1/a, a], accepted with probability min(1, z^(t-1) p(x')/p(x)) (their eq. 7). More than 2 t walkers are needed.
    """
    size = theta.shape[1]
    count = max(walkers or 0, 2 * size + 2)
    count += count % 2
    # Equal walkers would span no volume; a small random offset separates them.
    start = theta[generator.choice(len(theta), count, p=weights)]
    walker: FloatArray = start + 0.05 * generator.standard_normal(start.shape)
    level = log_density(walker)
    half = count // 2
    for step in range(2 * steps):
        moving = slice(0, half) if step % 2 == 0 else slice(half, count)
        resting = slice(half, count) if step % 2 == 0 else slice(0, half)
        z = np.square((_STRETCH - 1.0) * generator.random(half) + 1.0) / _STRETCH
        partner = walker[resting][generator.integers(0, half, half)]
        proposal = partner + z[:, np.newaxis] * (walker[moving] - partner)
        reached = log_density(proposal)
        log_ratio = (size - 1) * np.log(z) + reached - level[moving]
        accepted = np.log(generator.random(half)) < log_ratio
        walker[moving][accepted] = proposal[accepted]
        level[moving][accepted] = reached[accepted]
    return walker
