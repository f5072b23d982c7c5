"""Random numbers as a function of a seed and of their purpose.

No generator is kept between two steps: the same seed and the same names always give the same random numbers.
"""

from __future__ import annotations

import zlib

import numpy as np


def derive(seed: int, *names: str | int) -> int:
    """A 64-bit seed made from `seed` and names.

    >>> derive(1, "trees", 4) == derive(1, "trees", 4) != derive(1, "trees", 5)
    True
    """
    words = [zlib.crc32(name.encode()) if isinstance(name, str) else name for name in names]
    low, high = np.random.SeedSequence([seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF, *words]).generate_state(2)
    return int(low) | int(high) << 32


def generator(seed: int, *names: str | int) -> np.random.Generator:
    """A fresh generator for one named purpose."""
    return np.random.Generator(np.random.PCG64(derive(seed, *names)))
