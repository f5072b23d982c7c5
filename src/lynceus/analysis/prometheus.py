"""What a study uses and how its trials ended, in the text format that Prometheus reads.

The format is a few lines and has not changed in years, so no package is needed for it, neither where a server answers nor beside a worker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from lynceus.study.view import StudyView
from lynceus.trial.outcome import End
from lynceus.trial.shared_budget import SharedBudget

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Kind = Literal["counter", "gauge", "summary"]
Sample = tuple[Mapping[str, str], float | None]
"""Labels and a value; None: it is not known."""


@dataclass(frozen=True)
class StudyNumbers:
    """One study at one moment. What is not known is None."""

    study: str
    state: str
    spent_usd: float
    reserved_usd: float
    running: int
    complete: int
    timeout: int
    failed: int
    budget_usd: float | None = None
    saved_usd: float | None = None
    """Dollars that a use of the best configuration saves against the baseline."""
    late: int | None = None
    """Runs that took longer than the limit on time, or were stopped there."""
    decisions: int = 0
    """Decisions of this process."""
    deciding_s: float = 0.0


def late_runs(study: StudyView) -> int:
    """Runs that took longer than the limit on time, or were stopped there."""
    deadline_s = study.problem.deadline_s
    return sum(is_late(seen.outcome.end, seen.outcome.seconds, deadline_s) for seen in study.observations)


def is_late(end: End, seconds: float, deadline_s: float) -> bool:
    """Whether a run missed the deadline, as far as it ran."""
    return seconds > deadline_s if end is End.FINISHED else end is End.TIMEOUT and seconds >= deadline_s


def numbers_of(study: StudyView, state: str, *, decisions: int = 0, deciding_s: float = 0.0) -> StudyNumbers:
    """The numbers of a study that is in memory."""
    ends = [seen.outcome.end for seen in study.observations]
    return StudyNumbers(
        study.name,
        state,
        study.spent_usd,
        study.reserved_usd,
        len(study.pending),
        ends.count(End.FINISHED),
        ends.count(End.TIMEOUT),
        ends.count(End.FAILED),
        study.budget_usd if math.isfinite(study.budget_usd) else None,
        late=late_runs(study),
        decisions=decisions,
        deciding_s=deciding_s,
    )


def exposition(found: Sequence[StudyNumbers]) -> str:
    """The metrics of studies as text.

    >>> print(exposition([StudyNumbers("etl", "RUNNING", 1.5, 0.25, 1, 3, 2, 0)]).splitlines()[2])
    lynceus_spent_dollars_total{study="etl"} 1.5
    """
    own = [({"study": one.study}, one) for one in found]
    lines: list[str] = []
    for name, kind, about, value in _PLAIN:
        lines += family(name, kind, about, ((at, value(one)) for at, one in own))
    by_state: list[Sample] = [
        ({**at, "state": state}, float(getattr(one, state))) for at, one in own for state in _STATES
    ]
    lines += family("lynceus_trials", "gauge", "Trials by state.", by_state)
    decided = [(at, one) for at, one in own if one.decisions]
    sums: list[Sample] = [({**at, "": "sum"}, one.deciding_s) for at, one in decided]
    counts: list[Sample] = [({**at, "": "count"}, one.decisions) for at, one in decided]
    about = "Time to choose trials, in this process."
    lines += family("lynceus_decision_seconds", "summary", about, (*sums, *counts))
    states: list[Sample] = [({**at, "state": one.state}, 1.0) for at, one in own]
    lines += family("lynceus_study_state", "gauge", "1 for the state of a study.", states)
    return "\n".join(lines) + "\n"


_STATES = ("running", "complete", "timeout", "failed")
_PLAIN: tuple[tuple[str, Kind, str, Callable[[StudyNumbers], float | None]], ...] = (
    ("lynceus_spent_dollars_total", "counter", "What settled trials were charged.", lambda one: one.spent_usd),
    ("lynceus_reserved_dollars", "gauge", "What open trials may still be charged.", lambda one: one.reserved_usd),
    ("lynceus_budget_dollars", "gauge", "What the search may spend.", lambda one: one.budget_usd),
    (
        "lynceus_saved_dollars",
        "gauge",
        "What a use of the best configuration saves against the baseline.",
        lambda one: one.saved_usd,
    ),
    (
        "lynceus_deadline_misses_total",
        "counter",
        "Trials that took longer than the limit on time, or were stopped there.",
        lambda one: one.late,
    ),
)
"""Metrics with one value per study."""


def budget_exposition(found: Sequence[SharedBudget]) -> str:
    """The metrics of shared budgets as text; empty without budgets."""
    if not found:
        return ""
    lines: list[str] = []
    for field, about in _OF_BUDGETS.items():
        samples = (({str(one.account.kind): one.account.name}, float(getattr(one, field))) for one in found)
        lines += family(f"lynceus_shared_budget_{field.removesuffix('usd')}dollars", "gauge", about, samples)
    return "\n".join(lines) + "\n"


_OF_BUDGETS = {
    "usd": "What a project or an owner may spend in this month.",
    "charged_usd": "What their runs were charged in this month.",
    "reserved_usd": "What their open runs may still be charged.",
    "left_usd": "What is left of their budget for this month.",
}


def family(name: str, kind: Kind, about: str, samples: Iterable[Sample]) -> list[str]:
    """The lines of one metric; samples that are not known are left out."""
    known = [(labels, value) for labels, value in samples if value is not None]
    shown = [f"{_series(name, kind, labels)} {_number(value)}" for labels, value in known]
    return [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *shown]


def _series(name: str, kind: str, labels: Mapping[str, str]) -> str:
    part = f"_{labels['']}" if kind == "summary" else ""
    shown = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items() if key)
    return f"{name}{part}{{{shown}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value) or math.isnan(value):
        return {True: "+Inf", False: "-Inf"}[value > 0] if math.isinf(value) else "NaN"
    return repr(value) if isinstance(value, int) or value != int(value) else str(int(value))
