"""The contract of choosers."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.state import State
from lynceus.policy.interfaces import Chooser
from lynceus.testing.immutability import fingerprint
from lynceus.testing.job import small_job


def check_chooser(chooser: Chooser, surrogate: Surrogate | None = None) -> None:
    """Check open rows, determinism, purity, and None when every row is closed; raises AssertionError."""
    assert hash(chooser) == hash(copy.copy(chooser)), "a part must be a frozen value with a hash"
    job = small_job("runtime <= 30m", "accuracy >= 0.8")
    rows: list[int] = []
    for _ in range(len(job.problem.space)):
        state = State.present(job.problem, job.finished(rows))
        before = fingerprint(state)
        plan = chooser(state, surrogate, 3)
        assert fingerprint(state) == before, "a chooser must not change the state"
        assert repr(plan) == repr(chooser(state, surrogate, 3)), "the same seed must give the same plan"
        if plan is None:
            break
        assert state.open[plan.row], f"row {plan.row} is not open"
        assert plan.why, "a plan must say why"
        rows.append(plan.row)
    assert len(rows) == len(set(rows)), "a row was chosen twice"
    some = job.finished(job.order_of_runs[:4])
    state = State.present(job.problem, some)
    only = job.order_of_runs[11]
    one = np.zeros(len(job.problem.space), dtype=bool)
    one[only] = True
    plan = chooser(replace(state, open=one), surrogate, 3)
    assert plan is None or plan.row == only, "the only open row was not chosen"
    assert chooser(replace(state, open=np.zeros_like(one)), surrogate, 3) is None, (
        "no row is open, yet the chooser returned a plan"
    )
