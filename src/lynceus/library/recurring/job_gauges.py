"""The values of recurring jobs for Prometheus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lynceus.analysis.job_effects import JobTotals, totals
from lynceus.analysis.prometheus import Kind, family
from lynceus.library.recurring.job_record import KnownJob
from lynceus.recurring.canary_rules import allowance_left
from lynceus.recurring.watch import Watch, watch
from lynceus.trial.outcome import End


@dataclass(frozen=True)
class JobNumbers:
    """One job at one moment."""

    job: KnownJob
    totals: JobTotals
    watch: Watch

    @classmethod
    def of(cls, job: KnownJob) -> JobNumbers:
        """The numbers of a job."""
        deadline_s = min(job.problem.deadline_s, job.record.settings.deadline_s)
        return cls(job, totals(job.record, deadline_s), watch(job.record, deadline_s=deadline_s))

    def values(self) -> dict[str, float | None]:
        """By the name of the metric; what is not known is None."""
        record, seen, sums = self.job.record, self.watch, self.totals
        last = next((run for run in reversed(record.runs) if run.end is End.FINISHED), None)
        return {
            "runs_total": sums.runs,
            "late_runs_total": sums.late,
            "failed_runs_total": sums.failed,
            "canaries_total": sums.canaries,
            "cost_dollars_total": sums.cost_usd,
            "saved_dollars": sums.saved_usd if math.isfinite(sums.saved_usd) else None,
            "version": record.current,
            "held": int(record.settings.held),
            "last_runtime_seconds": None if last is None else last.seconds,
            "expected_runtime_seconds": None if seen.next_run is None else seen.next_run.seconds,
            "late_chance": seen.late_chance,
            "findings": len(seen.findings),
            "allowance_left_dollars": allowance_left(record, self.job.now_s),
        }


_ABOUT = {
    "runs_total": "Production runs.",
    "late_runs_total": "Production runs that missed the deadline.",
    "failed_runs_total": "Production runs that failed or were stopped.",
    "canaries_total": "Production runs that tried another version.",
    "cost_dollars_total": "What all production runs cost.",
    "saved_dollars": "What was saved against the first version.",
    "version": "The version in production.",
    "held": "1 while the kill switch is on.",
    "last_runtime_seconds": "Time of the last finished run.",
    "expected_runtime_seconds": "Expected time of the next run.",
    "late_chance": "Chance that the next run misses the deadline.",
    "findings": "Changes of the present version that are no noise.",
    "allowance_left_dollars": "What trying may still cost in this month.",
}


def job_exposition(found: Sequence[JobNumbers]) -> str:
    """The metrics of jobs as text; empty without jobs. The label is `job_name`, because Prometheus uses `job` itself."""
    if not found:
        return ""
    values = [({"job_name": one.job.record.name}, one.values()) for one in found]
    lines: list[str] = []
    for name, about in _ABOUT.items():
        kind: Kind = "counter" if name.endswith("_total") else "gauge"
        lines += family(f"lynceus_job_{name}", kind, about, ((at, all_values[name]) for at, all_values in values))
    return "\n".join(lines) + "\n"
