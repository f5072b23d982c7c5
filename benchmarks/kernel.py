"""Times of the compiled kernel on the shapes of a look-ahead: python -m benchmarks.kernel [threads].

Prints the smallest wall and processor time of several repetitions, because the machine may be busy.
"""

import sys
import time
from collections.abc import Callable

import numpy as np

from lynceus.models import _kernel as kernel

REPETITIONS = 7
OUTCOMES = 3


def table(q: int, generator: np.random.Generator) -> kernel.Codes:
    """A grid of 384 rows with few distinct values per feature, as a cloud table has; continuous features otherwise."""
    if q == 384:
        sizes = (2, 2, 3, 4, 4, 2)
        return kernel.encode(np.stack(np.meshgrid(*map(np.arange, sizes)), axis=-1).reshape(-1, len(sizes)))
    return kernel.encode(generator.random((q, 6)))


def observed(codes: kernel.Codes, n: int, trees: int, generator: np.random.Generator) -> kernel.Observed:
    rows = generator.choice(codes.q, n, replace=False)
    target = np.exp(codes.codes[:, rows].T @ generator.normal(size=codes.d) / codes.codes.max(axis=1).sum())
    target += 0.1 * generator.random(n)
    bags = generator.multinomial(n, np.full(n, 1 / n), size=(1, trees))
    return kernel.Observed(rows, target[None], bags, generator.integers(0, 2**63, (1, trees)))


def imagined(
    codes: kernel.Codes, seen: kernel.Observed, first: int, depth: int, generator: np.random.Generator
) -> kernel.Imagined:
    """`first` rows with three outcomes each, and at every further level one row with three outcomes.

    Outcomes are the Gauss-Hermite points of the prediction in the real observations, as a look-ahead has them.
    """
    mean, std = kernel.predict(codes, seen, None, kernel.Growth(attributes=3))
    points = mean[0] + std[0] * np.sqrt(3) * np.array([-1, 0, 1])
    b = first * OUTCOMES**depth
    rows, target = np.empty((b, depth), dtype=np.int64), np.empty((b, depth, 1))
    for level in range(depth):
        branches = first * OUTCOMES**level
        chosen = np.arange(first) % codes.q if level == 0 else generator.integers(0, codes.q, branches)
        outcomes = points[chosen]
        rows[:, level] = np.repeat(chosen, b // branches)
        target[:, level, 0] = np.repeat(outcomes.ravel(), b // (branches * OUTCOMES))
    return kernel.Imagined(rows, target, generator.poisson(1, (1, seen.bags.shape[1], depth)))


def acquisition(codes: kernel.Codes, seen: kernel.Observed, b: int, form: str) -> kernel.Acquisition:
    q, best = codes.q, float(np.quantile(seen.target, 0.1))
    is_open = np.ones(q, dtype=bool)
    is_open[seen.rows] = False
    bound = np.full((1, q), float(np.median(seen.target)))
    billing = kernel.Billing(np.full(q, 1.0), np.zeros(q), np.zeros(q)) if form == "lognormal" else None
    constraints = kernel.Constraints([0], [1], bound) if form == "product" else kernel.Constraints()
    return kernel.Acquisition(
        form,
        is_open,
        np.full(b, np.exp(best) if form == "lognormal" else best),
        np.full(b, float(seen.target.max())),
        np.full(b, 5.0),
        confidence_z=2.326,
        constraints=constraints,
        ceiling=None if form == "product" else (np.exp(bound[0]) if form == "lognormal" else bound[0]),
        billing=billing,
    )


def clock(name: str, work: Callable[[], object]) -> None:
    walls, processors = [], []
    for _ in range(REPETITIONS):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    print(f"{name:58s} {1e3 * min(walls):9.2f} ms wall {1e3 * min(processors):9.2f} ms processor")


def main(threads: int) -> None:
    generator = np.random.default_rng(1)
    growth = kernel.Growth(attributes=3)
    print(f"compiled: {kernel.compiled}, threads: {threads}")
    for q, n, first, depths in (
        (384, 40, 384, (0, 1, 2, 3)),
        (384, 150, 384, (1,)),
        (5000, 40, 100, (1,)),
        (50_000, 40, 1, (0,)),
    ):
        codes = table(q, generator)
        seen = observed(codes, n, 10, generator)
        if 0 in depths:
            clock(f"predict q={q} n={n}, 1 state", lambda c=codes, s=seen: kernel.predict(c, s, None, growth, threads))
        for depth in depths:
            if depth == 0:
                continue
            many = imagined(codes, seen, first, depth, generator)
            for form in ("product", "exact", "lognormal") if depth == 1 else ("product",):
                wanted = acquisition(codes, seen, many.b, form)
                clock(
                    f"pick q={q} n={n}, {many.b} states e={depth} ({form})",
                    lambda c=codes, s=seen, i=many, a=wanted: kernel.pick(c, s, i, growth, a, threads),
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
