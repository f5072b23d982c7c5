"""The values of recurring jobs for Prometheus."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lynceus.analysis.job_effects import totals
from lynceus.errors import LynceusError
from lynceus.library.recurring.job_record import KnownJob, known_job
from lynceus.recurring.canary_rules import allowance_left
from lynceus.recurring.watch import watch
from lynceus.storage.sql.jobs import JobStore
from lynceus.trial.outcome import End


@dataclass(frozen=True)
class Gauge:
    """One value, by the conventions of Prometheus: base units, and `_total` for what only grows."""

    name: str
    help: str
    labels: Mapping[str, str]
    value: float


def job_gauges(store: JobStore) -> list[Gauge]:
    """All values of all jobs; a job that cannot be read is left out."""
    found: list[Gauge] = []
    for head in store.heads():
        try:
            found += _gauges(known_job(store, head.name))
        except LynceusError:
            continue  # the others are shown all the same
    return found


def _gauges(job: KnownJob) -> Iterator[Gauge]:
    record, labels = job.record, {"job_name": job.record.name}
    deadline_s = min(job.problem.deadline_s, record.settings.deadline_s)
    seen, sums = watch(record, deadline_s=deadline_s), totals(record, deadline_s)
    last = next((run for run in reversed(record.runs) if run.end is End.FINISHED), None)
    values = {
        "runs_total": ("Production runs recorded.", float(sums.runs)),
        "late_runs_total": ("Production runs that missed the deadline.", float(sums.late)),
        "failed_runs_total": ("Production runs that failed or were stopped.", float(sums.failed)),
        "canaries_total": ("Production runs that tried another version.", float(sums.canaries)),
        "cost_usd_total": ("Dollars of all production runs.", sums.cost_usd),
        "saved_usd": ("Dollars saved against the first version.", sums.saved_usd),
        "version": ("The version in production.", float(record.current or 0)),
        "held": ("1 while the kill switch is on.", float(record.settings.held)),
        "last_runtime_seconds": ("Time of the last finished run.", math.nan if last is None else last.seconds),
        "expected_runtime_seconds": (
            "Expected time of the next run.",
            math.nan if seen.next_run is None else seen.next_run.seconds,
        ),
        "late_chance": ("Chance that the next run misses the deadline.", _known(seen.late_chance)),
        "findings": ("Changes of the present version that are no noise.", float(len(seen.findings))),
        "allowance_left_usd": ("Dollars left for trying in this month.", allowance_left(record, job.now_s)),
    }
    for name, (about, value) in values.items():
        if math.isfinite(value):
            yield Gauge(f"lynceus_job_{name}", about, labels, value)


def _known(value: float | None) -> float:
    return math.nan if value is None else value


def prometheus_text(gauges: Iterable[Gauge]) -> str:
    r"""Values in the text format of Prometheus, grouped by name.

    >>> print(prometheus_text([Gauge("lynceus_job_runs_total", "Runs.", {"job_name": 'a"b'}, 3.0)]), end="")
    # HELP lynceus_job_runs_total Runs.
    # TYPE lynceus_job_runs_total counter
    lynceus_job_runs_total{job_name="a\"b"} 3
    """
    groups: dict[str, list[Gauge]] = {}
    for one in gauges:
        groups.setdefault(one.name, []).append(one)
    lines = []
    for name, members in groups.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines += [f"# HELP {name} {members[0].help}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{{{_labels(one.labels)}}} {one.value:.15g}" for one in members]
    return "".join(f"{line}\n" for line in lines)


def _labels(labels: Mapping[str, str]) -> str:
    escaped = {
        name: text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for name, text in labels.items()
    }
    return ",".join(f'{name}="{text}"' for name, text in escaped.items())
