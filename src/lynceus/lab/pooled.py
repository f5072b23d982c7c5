"""Competitors over all families of jobs at once, from the summaries of the experiments that have peers in them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lynceus.lab.statistics import across_jobs, holm

_PEERS = "peers-"
"""How the experiments that are pooled begin."""
_LEVEL = 1.1


def pooled(summaries: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Tables in Markdown: every competitor against every baseline, per family and over all jobs; nothing without such experiments."""
    peers = [
        summary
        for summary in summaries
        # Summaries of an older form do not say which job had which ratio.
        if summary["name"].startswith(_PEERS) and any("by_job" in row for row in summary["across"])
    ]
    if not peers:
        return
    families = {summary["name"].removeprefix(_PEERS): summary for summary in peers}
    yield "## Peers"
    yield ""
    yield (
        f"Money until CNO {_LEVEL:g} relative to a baseline, p50 / p90 (geometric mean over the jobs of a family, of which equal seeds "
        "start from equal samples); below 1 is cheaper. Jobs are counted as cheaper, level or dearer when the interval of their p90 "
        "ratio lies below 1, around it, or above. p is that of Wilcoxon's signed ranks over all jobs, with Holm's correction over the "
        "competitors; a family that a competitor cannot run in, or was not run in, is a dash."
    )
    for base in dict.fromkeys(row["base"] for summary in peers for row in summary["across"]):
        yield ""
        yield from _against(base, families)


def _against(base: str, families: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    rows = {
        family: {row["policy"]: row for row in summary["across"] if row["base"] == base and row["cno"] == _LEVEL}
        for family, summary in families.items()
    }
    policies = list(dict.fromkeys(policy for found in rows.values() for policy in found))
    jobs = {policy: _jobs(found[policy] for found in rows.values() if policy in found) for policy in policies}
    corrected = dict(zip(policies, holm([_p(jobs[policy]) for policy in policies]), strict=True))
    yield f"| relative to {base} | {' | '.join(families)} | fewest seeds | cheaper / level / dearer | p over all jobs |"
    yield "|---|" + "---|" * (len(families) + 3)
    for policy in policies:
        cells = [_ratios(rows[family].get(policy)) for family in families]
        seeds = min(found[policy]["seeds"] for found in rows.values() if policy in found)
        outcomes = [job["outcome"] for job in jobs[policy]]
        counts = " / ".join(str(outcomes.count(outcome)) for outcome in ("win", "tie", "loss"))
        yield f"| {policy} | {' | '.join(cells)} | {seeds} | {counts} | {corrected[policy]:.2g} ({len(outcomes)} jobs) |"


def _jobs(rows: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    return [job for row in rows for job in row["by_job"].values()]


def _p(jobs: Sequence[dict[str, Any]]) -> float:
    """A job in which the competitor never got to the level has no finite ratio."""
    return across_jobs([math.inf if job["p90"] is None else job["p90"] for job in jobs])


def _ratios(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    return " / ".join("∞" if row[name][0] is None else f"{row[name][0]:.2f}" for name in ("p50", "p90"))
