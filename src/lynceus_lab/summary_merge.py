"""A new summary beside the stored one of the same experiment: what rests on more seeds stays.

Traces need not survive, summaries do. A campaign that was started again with fewer seeds must not replace what a longer one found; but
what the stored summary does not have is taken from the new one, claim by claim.
"""

from __future__ import annotations

from typing import Any

Summary = dict[str, Any]


def merged(new: Summary, stored: Summary | None) -> Summary:
    """The summary to keep: tables and figures of the one with more replays, and of every claim the one with more seeds.

    A stored claim only counts if it says the same and was measured in the same setting; one of a version that did not state the
    setting counts, too.
    """
    if stored is None or not stored.get("table"):
        return new
    kept = {claim["id"]: claim for claim in stored["claims"]}
    claims = [_claim(claim, kept.get(claim["id"])) for claim in new["claims"]]
    taken = any(claim is not own for claim, own in zip(claims, new["claims"], strict=True))
    larger = dict(stored if _replays(stored) > _replays(new) and _same_policies(new, stored) else new)
    made = _joined(new["made"], stored["made"]) if taken or larger["table"] is stored["table"] else new["made"]
    texts: Summary = {name: new[name] for name in ("title", "source", "paper", "here", "readings") if name in new}
    return {**larger, **texts, "claims": claims, "made": made}


def _claim(new: Summary, stored: Summary | None) -> Summary:
    """The claim with more seeds; texts are always those of the experiment's file."""
    if stored is None or stored["ours"] is None or stored["seeds"] <= new["seeds"]:
        return new
    if stored["says"] != new["says"] or stored.get("setting", new["setting"]) != new["setting"]:
        return new
    return {**stored, **{name: new[name] for name in ("published", "note", "setting")}}


def _replays(summary: Summary) -> int:
    return sum(int(row["seeds"]) for row in summary["table"])


def _same_policies(new: Summary, stored: Summary) -> bool:
    """Whether both have the same rows, so that the stored tables can stand for the new ones."""
    return set(new["policies"]) == set(stored["policies"]) and set(new["variants"]) == set(stored["variants"])


def _joined(one: dict[str, list[str]], other: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: sorted({*one.get(name, []), *other.get(name, [])}) for name in {**one, **other}}
