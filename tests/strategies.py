"""What hypothesis draws: billing, constraints, small jobs and policies."""

from __future__ import annotations

from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.policy.policy import Policy
from lynceus.policy.presets import all_presets, preset
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.testing.job import SmallJob, small_job


def _shortest(name: str) -> int | None:
    """A look-ahead of one run, where the preset has a planner that looks ahead."""
    try:
        preset(name, 1)
    except InputError:
        return None
    return 1


READY = tuple(all_presets())
SHORT = {name: _shortest(name) for name in READY}
"""Every preset with a look-ahead that costs little."""
WITHOUT_MODEL = tuple(name for name, lookahead in SHORT.items() if lookahead is None)
"""Presets that refuse a look-ahead."""

seconds = st.floats(0.0, 1e6)
prices = st.floats(1e-6, 1.0)
dollars = st.floats(0.0, 1e5)


@st.composite
def billings(draw: st.DrawFn, *, warm: bool = True) -> Billing:
    """Every way to bill, alone and together."""
    return Billing(
        granularity_s=draw(st.sampled_from([0.0, 0.0, 1.0, 60.0, 3600.0])),
        minimum_s=draw(st.sampled_from([0.0, 60.0, 600.0])),
        boot_s=draw(st.sampled_from([0.0, 45.0, 300.0])),
        fee_usd=draw(st.sampled_from([0.0, 0.01])),
        warm=draw(st.sampled_from([(), ("vm",), ("vm", "nodes")])) if warm else (),
    )


@st.composite
def jobs(draw: st.DrawFn) -> SmallJob:
    """A small job under some budget, billing, objective and constraints."""
    constraints = draw(
        st.sampled_from(
            [(), ("runtime <= 30m",), ("runtime <= 30m", "accuracy >= 0.88"), ("cost <= $0.35",), ("accuracy >= 0.9",)]
        )
    )
    budget = Budget(
        usd=draw(st.sampled_from([0.3, 2.0, 5.0, 12.0, float("inf")])),
        trials=draw(st.sampled_from([None, None, None, 7])),
        wall_clock_s=draw(st.sampled_from([None, None, None, 7200.0])),
    )
    objective = draw(st.sampled_from(["cost", "cost", "time", "maximize accuracy"]))
    return small_job(
        *constraints, objective=objective, budget=budget, billing=draw(billings()), seed=draw(st.integers(0, 5))
    )


TIMEOUT_NAMES = ["none", "tg", "tg-30s", "linear", "max-cost", "no-info", "ituned", "capped", "ideal"]


def policies(*names: str) -> st.SearchStrategy[Policy]:
    """These presets (or all), look-ahead kept short, with a timeout of their own or another."""
    return st.builds(
        _policy,
        st.sampled_from(names or READY),
        st.sampled_from([0, 1]),
        st.sampled_from([None, None, None, *TIMEOUT_NAMES]),
    )


def _policy(name: str, lookahead: int, timeout: str | None) -> Policy:
    return preset(name, None if name in WITHOUT_MODEL else lookahead, timeout)
