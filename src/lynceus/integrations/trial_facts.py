"""A settled trial as parameters, numbers and texts, as trackers keep it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lynceus.analysis.trial_rows import trial_row
from lynceus.study.view import StudyView
from lynceus.trial.outcome import Observation


@dataclass(frozen=True)
class TrialFacts:
    """What trackers keep of a trial."""

    name: str
    params: dict[str, object]
    numbers: dict[str, float]
    """Reported metrics, and `runtime_s`, `cost_usd`, `charged_usd`, `value`, `price_usd_per_hour` where they are known."""
    texts: dict[str, str]
    """State, reason, detail, and why the configuration was chosen; without empty ones."""
    started_s: float
    ended_s: float
    """Seconds since the epoch."""


def trial_facts(study: StudyView, seen: Observation, now_s: float) -> TrialFacts:
    """The facts of a trial that ended at the latest at `now_s`."""
    row = trial_row(study.problem, seen)
    known = {
        "runtime_s": row.runtime_s,
        "cost_usd": row.cost_usd,
        "charged_usd": row.charged_usd,
        "value": row.value,
        "price_usd_per_hour": row.price_usd_per_hour,
        "timeout_s": row.timeout_s,
    }
    numbers = {name: value for name, value in known.items() if value is not None and math.isfinite(value)}
    texts = {"state": row.state, "reason": row.reason or "", "detail": row.detail, "why": row.why}
    if row.keeps_constraints is not None:
        texts["keeps_constraints"] = str(row.keeps_constraints).lower()
    ended_s = now_s if seen.ended_s is None else seen.ended_s
    started_s = ended_s - seen.outcome.seconds if seen.started_s is None else seen.started_s
    return TrialFacts(
        f"trial {row.number}",
        dict(row.params),
        {**row.metrics, **numbers},
        {name: text for name, text in texts.items() if text},
        started_s,
        ended_s,
    )
