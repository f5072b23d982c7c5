"""Policies and peer libraries compared over all families of jobs, from the summaries of the experiments with peers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lynceus_lab.markdown import header, row
from lynceus_lab.statistics import across_jobs, clusters, holm

_PEERS = "peers-"
"""Prefix of the names of the experiments that are pooled."""
_LEVEL = 1.1


def pooled(summaries: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Markdown tables: every policy against every baseline, per family and over all jobs; empty without such experiments."""
    peers = [summary for summary in summaries if summary["name"].startswith(_PEERS) and summary["across"]]
    if not peers:
        return
    families = {summary["name"].removeprefix(_PEERS): summary for summary in peers}
    yield "## Peers"
    yield ""
    yield (
        f"Money until CNO {_LEVEL:g} relative to a baseline, p50 / p90 (geometric mean over the jobs of a family); below 1 is "
        "cheaper. Libraries, lynceus-2020, BO and policies named so start from equal samples; the others have their own initial "
        "designs ([details](lab.md)). A job counts as cheaper, equal or more expensive when "
        "the interval of its p90 ratio lies below 1, contains 1, or lies above. p is from Wilcoxon's signed-rank test "
        "over clusters of jobs (sizes of one algorithm form one cluster), with Holm's correction over the "
        "policies; a dash marks a family in which a policy cannot run or was not run."
    )
    for base in dict.fromkeys(one["base"] for summary in peers for one in summary["across"]):
        yield ""
        yield from _against(base, families)


def _against(base: str, families: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    rows = {
        family: {one["policy"]: one for one in summary["across"] if one["base"] == base and one["cno"] == _LEVEL}
        for family, summary in families.items()
    }
    policies = list(dict.fromkeys(policy for found in rows.values() for policy in found))
    jobs = {policy: _jobs(rows, policy) for policy in policies}
    ratios = {policy: {job: float(one["p90"]) for job, one in jobs[policy].items()} for policy in policies}
    corrected = dict(zip(policies, holm([across_jobs(ratios[policy]) for policy in policies]), strict=True))
    counts = ["fewest seeds", "cheaper / equal / more expensive", "p over all jobs"]
    yield from header([f"relative to {base}", *families, *counts])
    for policy in policies:
        cells = [_ratios(rows[family].get(policy), families[family]["asked"]) for family in families]
        seeds = min(found[policy]["seeds"] for found in rows.values() if policy in found)
        outcomes = [job["outcome"] for job in jobs[policy].values()]
        outcomes_shown = " / ".join(str(outcomes.count(outcome)) for outcome in ("win", "tie", "loss"))
        p = f"{corrected[policy]:.2g} ({len(outcomes)} jobs, {clusters(ratios[policy])} clusters)"
        yield row([policy, *cells, str(seeds), outcomes_shown, p])


def _jobs(rows: Mapping[str, dict[str, dict[str, Any]]], policy: str) -> dict[str, dict[str, Any]]:
    """The results of a policy on every job of every family."""
    return {
        f"{family}: {job}": found
        for family, of_family in rows.items()
        for job, found in of_family.get(policy, {"by_job": {}})["by_job"].items()
    }


def _ratios(found: dict[str, Any] | None, asked: int) -> str:
    """Ratios over the jobs that were run, with their number if it is smaller than the family."""
    if found is None:
        return "–"
    ratios = [float(found[name][0]) for name in ("p50", "p90")]
    text = " / ".join("–" if math.isnan(one) else "∞" if math.isinf(one) else f"{one:.2f}" for one in ratios)
    jobs = found["jobs"] - max(found["undecided"])
    return text if jobs >= asked else f"{text} ({jobs} of {asked} jobs)"
