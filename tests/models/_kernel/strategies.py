"""Random problems for the kernel: small tables with ties, bags with zeros, all growths, imagined siblings."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from lynceus.models._kernel import Acquisition, Billing, Codes, Constraints, Growth, Imagined, Observed, encode

growths = st.builds(
    Growth,
    attributes=st.integers(1, 4),
    min_gain=st.sampled_from([0.0, 1e-6, 0.5]),
    min_variance=st.sampled_from([0.0, 0.001, 0.1]),
    min_leaf=st.integers(1, 3),
    splits=st.sampled_from(["best", "random"]),
    spread=st.sampled_from(["between", "total"]),
)


@dataclass(frozen=True)
class Case:
    codes: Codes
    observed: Observed
    imagined: Imagined
    growth: Growth


@st.composite
def cases(draw: st.DrawFn, most_rows: int = 80) -> Case:
    """Shapes and kinds come from hypothesis (they shrink well), the numbers from a seeded generator."""
    q, d = draw(st.integers(1, most_rows)), draw(st.integers(1, 4))
    n, trees, m = draw(st.integers(1, 14)), draw(st.integers(1, 4)), draw(st.integers(1, 2))
    b, e = draw(st.integers(1, 6)), draw(st.integers(0, 3))
    grid, whole_numbers, keep_sets = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))

    codes = encode(generator.integers(0, 5, (q, d)) ** 1.5 if grid else generator.normal(size=(q, d)))
    if not keep_sets:
        codes = Codes(codes.codes, codes.values, codes.starts, codes.below[:0])

    def target(*shape: int) -> np.ndarray:
        return generator.integers(0, 4, shape).astype(float) if whole_numbers else generator.normal(5, 2, shape)

    seeds = generator.integers(0, 2**63, (m, trees))
    observed = Observed(generator.integers(0, q, n), target(m, n), generator.poisson(1, (m, trees, n)), seeds)
    rows, values = generator.integers(0, q, (b, e)), target(b, e, m)
    if e > 1 and draw(st.booleans()):  # siblings: all share the first imagined observation
        rows[:, 0], values[:, 0] = rows[0, 0], values[0, 0]
    return Case(codes, observed, Imagined(rows, values, generator.poisson(1, (m, trees, e))), draw(growths))


@st.composite
def acquisitions(draw: st.DrawFn, case: Case) -> Acquisition:
    """An acquisition function for the case: with unknown best values, unaffordable, closed and certain rows."""
    form = draw(st.sampled_from(["product", "exact", "lognormal"]))
    number = draw(st.integers(0, 2))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    q, b, m = case.codes.q, case.imagined.b, len(case.observed.target)
    scale = np.exp if form == "lognormal" else np.asarray
    best = scale(generator.normal(4, 1, b))
    best[generator.random(b) < 0.3] = np.nan
    boot, minimum = draw(st.sampled_from([0.0, 2.0])), draw(st.sampled_from([0.0, 1.0, 30.0]))
    billing = Billing(generator.random(q) + 0.1, np.full(q, boot), np.full(q, minimum)) if form == "lognormal" else None
    return Acquisition(
        form,
        generator.random(q) < 0.8,
        best,
        np.full(b, 8.0),
        generator.choice([7.0, 50.0, np.inf], b),
        confidence_z=draw(st.sampled_from([-np.inf, 1.0, 2.326])),
        ceiling=None if form == "product" or draw(st.booleans()) else scale(generator.normal(5, 1, q)),
        constraints=Constraints(
            generator.integers(0, m, number), generator.choice([-1, 1], number), generator.normal(5, 2, (number, q))
        ),
        billing=billing,
    )
