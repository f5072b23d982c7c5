"""What every chooser promises."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from lynceus.parts import Chooser, Surrogate
from lynceus.situation import Situation
from lynceus.testing.job import small_job
from lynceus.testing.unchanged import fingerprint


def check_chooser(chooser: Chooser, surrogate: Surrogate | None = None) -> None:
    """Open rows only, same seed same plan, nothing changed, silence when nothing is open (AssertionError if not)."""
    assert hash(chooser) == hash(copy.copy(chooser)), "a part is a frozen value with a hash"
    job = small_job("runtime <= 30m", "accuracy >= 0.8")
    rows: list[int] = []
    for _ in range(len(job.problem.space)):
        situation = Situation.present(job.problem, job.finished(rows))
        before = fingerprint(situation)
        plan = chooser(situation, surrogate, 3)
        assert fingerprint(situation) == before, "a chooser leaves the situation as it is"
        assert repr(plan) == repr(chooser(situation, surrogate, 3)), "same seed, same plan"
        if plan is None:
            break
        assert situation.open[plan.row], f"row {plan.row} is not open"
        assert plan.why, "a plan says why"
        rows.append(plan.row)
    assert len(rows) == len(set(rows)), "a row was chosen twice"
    some = job.finished(job.order_of_runs[:4])
    situation = Situation.present(job.problem, some)
    only = job.order_of_runs[11]
    one = np.zeros(len(job.problem.space), dtype=bool)
    one[only] = True
    plan = chooser(replace(situation, open=one), surrogate, 3)
    assert plan is None or plan.row == only, "the only open row was not chosen"
    assert chooser(replace(situation, open=np.zeros_like(one)), surrogate, 3) is None, (
        "nothing is open, yet a plan came"
    )
