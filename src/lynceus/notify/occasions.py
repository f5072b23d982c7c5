"""What there is to tell about a study. Pure: the same study gives the same occasions, whoever looks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lynceus.errors import InputError
from lynceus.history import Because
from lynceus.plain import finite
from lynceus.study import Study
from lynceus.units import format_money

MOST_OF_BUDGET = 0.8
"""Share of the budget after which people are told."""


@dataclass(frozen=True)
class Occasion:
    """Something that people should hear of, once."""

    kind: str
    """`end`, `pause` or `budget`."""
    key: str
    """The same for the same news: a study that is resumed and ends again without another trial is no news."""
    title: str
    text: str
    """A few sentences."""
    facts: dict[str, Any]
    """The same for programs."""


def occasions(study: Study) -> list[Occasion]:
    """Everything that there is to tell now, whether or not it was told before."""
    found = []
    # What is written down, not what was said last: while trials are open, a study may only seem to be at its end.
    budget, spent, stopped = study.budget_usd, study.spent_usd, study.ledger.stopped
    if math.isfinite(budget) and budget > 0 and spent >= MOST_OF_BUDGET * budget:
        title = f"{study.name}: {spent / budget:.0%} of the budget is spent".replace("%", " %")
        found.append(_occasion(study, "budget", f"budget {budget:.9g}", title, ""))
    if stopped is not None and not study.pending:
        settled = len(study.history)
        if stopped.because is Because.PAUSED:
            found.append(_occasion(study, "pause", f"pause {settled}", f"{study.name} pauses", stopped.reason))
        else:
            found.append(
                _occasion(study, "end", f"end {stopped.because} {settled}", f"{study.name} has ended", stopped.reason)
            )
    return found


def _occasion(study: Study, kind: str, key: str, title: str, reason: str) -> Occasion:
    best = _best(study)
    lines = [f"{reason[:1].upper()}{reason[1:]}."] if reason else []
    count = len(study.history)
    budget = f" of {format_money(study.budget_usd)}" if math.isfinite(study.budget_usd) else ""
    lines.append(f"{format_money(study.spent_usd)}{budget} were spent on {count} trial{'s' * (count != 1)}.")
    if best is None:
        lines.append("No configuration is known to keep every limit.")
    else:
        words = ", ".join(f"{name}={value}" for name, value in best["params"].items())
        lines.append(f"The best so far: {words} ({study.problem.goal}: {best['value']:.6g}).")
    if kind == "pause":
        lines.append(f"Look at the failures, then continue with: lynceus resume {study.name}")
    facts = {
        "study": study.name,
        "occasion": kind,
        "title": title,
        "text": "\n".join([title, *lines]),
        "reason": reason or None,
        "spent_usd": study.spent_usd,
        "budget_usd": study.budget_usd,
        "trials": len(study.history),
        "best": best,
    }
    return Occasion(kind, key, title, "\n".join(lines), finite(facts))


def _best(study: Study) -> dict[str, Any] | None:
    try:
        return {"params": dict(study.best_params), "value": study.best_value}
    except InputError:
        return None
