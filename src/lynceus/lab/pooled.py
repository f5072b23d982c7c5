"""Competitors over all families of jobs at once, from the summaries of the experiments that have peers in them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lynceus.lab.statistics import across_jobs, clusters, holm

_PEERS = "peers-"
"""How the experiments that are pooled begin."""
_LEVEL = 1.1


def pooled(summaries: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Tables in Markdown: every competitor against every baseline, per family and over all jobs; nothing without such experiments."""
    peers = [summary for summary in summaries if summary["name"].startswith(_PEERS) and summary["across"]]
    if not peers:
        return
    families = {summary["name"].removeprefix(_PEERS): summary for summary in peers}
    yield "## Peers"
    yield ""
    yield (
        f"Money until CNO {_LEVEL:g} relative to a baseline, p50 / p90 (geometric mean over the jobs of a family); below 1 is "
        "cheaper. Libraries, lynceus-2020, BO and whoever is called so start from equal samples; the others have starts of their own, "
        "which is part of what they do ([who starts how](lab.md)). Jobs are counted as cheaper, level or dearer when "
        "the interval of their p90 ratio lies below 1, around it, or above. p is that of Wilcoxon's signed ranks "
        "over clusters of jobs (sizes of one algorithm are one), with Holm's correction over the "
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
    jobs = {policy: _jobs(rows, policy) for policy in policies}
    ratios = {policy: {job: float(one["p90"]) for job, one in jobs[policy].items()} for policy in policies}
    corrected = dict(zip(policies, holm([across_jobs(ratios[policy]) for policy in policies]), strict=True))
    yield f"| relative to {base} | {' | '.join(families)} | fewest seeds | cheaper / level / dearer | p over all jobs |"
    yield "|---|" + "---|" * (len(families) + 3)
    for policy in policies:
        cells = [_ratios(rows[family].get(policy), families[family]["asked"]) for family in families]
        seeds = min(found[policy]["seeds"] for found in rows.values() if policy in found)
        outcomes = [job["outcome"] for job in jobs[policy].values()]
        counts = " / ".join(str(outcomes.count(outcome)) for outcome in ("win", "tie", "loss"))
        p = f"{corrected[policy]:.2g} ({len(outcomes)} jobs, {clusters(ratios[policy])} clusters)"
        yield f"| {policy} | {' | '.join(cells)} | {seeds} | {counts} | {p} |"


def _jobs(rows: Mapping[str, dict[str, dict[str, Any]]], policy: str) -> dict[str, dict[str, Any]]:
    """What became of every job of every family."""
    return {
        f"{family}: {job}": found
        for family, of_family in rows.items()
        for job, found in of_family.get(policy, {"by_job": {}})["by_job"].items()
    }


def _ratios(row: dict[str, Any] | None, asked: int) -> str:
    """Ratios over the jobs that were run, with their number where it is not that of the family."""
    if row is None:
        return "–"
    found = [float(row[name][0]) for name in ("p50", "p90")]
    text = " / ".join("–" if math.isnan(one) else "∞" if math.isinf(one) else f"{one:.2f}" for one in found)
    jobs = row["jobs"] - max(row["undecided"])
    return text if jobs >= asked else f"{text} ({jobs} of {asked} jobs)"
