"""What changed since the last edition of the results: the verdicts of both, counted, and every claim with another verdict or number."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lynceus.errors import InputError
from lynceus_lab.claims import FEWEST, Verdict
from lynceus_lab.markdown import header, interval, row
from lynceus_lab.results_page import anchor, in_percent, is_goal, shown_number

EDITION = "last-edition.csv"
"""The claims of the last edition, in the folder of summaries: their numbers, their verdicts, and why a number or verdict is another now."""
_COLUMNS = ("experiment", "claim", "ours", "low", "high", "seeds", "verdict", "reason")


@dataclass(frozen=True)
class Before:
    """A claim of the last edition."""

    ours: tuple[str, str, str] | None
    """The number and its interval as they were written; None when it was not measured."""
    seeds: int
    verdict: str
    reason: str
    """Why it is another now."""


Edition = Mapping[tuple[str, str], Before]
"""(experiment, claim) → what it was."""


def read_edition(folder: Path) -> Edition:
    """The last edition beside the summaries; empty when there is none."""
    path = folder / EDITION
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        if tuple(lines.fieldnames or ()) != _COLUMNS:
            raise InputError(f"--summaries: {path} needs the columns {', '.join(_COLUMNS)}.")
        return {(one["experiment"], one["claim"]): _before(one) for one in lines}


def _before(line: Mapping[str, str]) -> Before:
    ours = (line["ours"], line["low"], line["high"]) if line["ours"] else None
    return Before(ours, int(line["seeds"]), line["verdict"], line["reason"])


def changes_page(summaries: Sequence[dict[str, Any]], edition: Edition) -> str:
    """The page as Markdown."""
    claims = {
        (summary["name"], claim["id"]): (summary, claim)
        for summary in summaries
        for claim in summary["claims"]
        if not is_goal(claim)
    }
    lines = [
        "# What changed",
        "",
        "Written by `lynceus lab report` from the summaries and `results/last-edition.csv`: the claims of the papers in the last edition",
        "and in this one, and why a verdict or a number is another. [Results](results.md) says how to read both. “Does not hold” is now",
        "said in the set-up of the paper alone; in another set-up a claim is not reproduced, which refutes nothing.",
        "",
        *_counts([before.verdict for before in edition.values()], [claim for _, claim in claims.values()]),
        *_changed(claims, edition),
        *_added({key: one for key, one in claims.items() if key not in edition}),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _counts(before: Sequence[str], now: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Verdicts of both editions, with those that rest on few seeds."""
    searched = [claim for claim in now if claim["measured"] != "table" and claim["ours"] is not None]
    few = [claim for claim in searched if claim["seeds"] < FEWEST]
    yield from header(["verdict", "before", "now", f"of these with fewer than {FEWEST} seeds"])
    for verdict in Verdict:
        counts = [list(before).count(verdict)]
        counts += [sum(claim["verdict"] == verdict for claim in claims) for claims in (now, few)]
        yield row([verdict, *map(str, counts)])
    yield row(["all", *map(str, (len(before), len(now), len(few)))])
    yield ""


def _changed(
    claims: Mapping[tuple[str, str], tuple[dict[str, Any], dict[str, Any]]], edition: Edition
) -> Iterator[str]:
    verdicts = [key for key in edition if key in claims and claims[key][1]["verdict"] != edition[key].verdict]
    numbers = [
        key for key in edition if key in claims and key not in verdicts and _differs(claims[key][1], edition[key])
    ]
    for heading, keys in (("Other verdicts", verdicts), ("Other numbers, the same verdict", numbers)):
        if keys:
            yield from (f"## {heading}", "", f"{len(keys)} claims.", "")
            yield from header(["claim", "published", "before", "now", "reason"])
            for key in (key for key in claims if key in keys):
                summary, claim = claims[key]
                was = _was(edition[key], percent=in_percent(claim))
                yield row([_named(summary, claim), claim["published"], was, _now(claim), edition[key].reason])
            yield ""


def _differs(claim: dict[str, Any], before: Before) -> bool:
    now = None if claim["ours"] is None else tuple(map(float, claim["ours"]))
    return now != (None if before.ours is None else tuple(map(float, before.ours)))


def _now(claim: dict[str, Any]) -> str:
    return f"{shown_number(claim, percent=in_percent(claim))}{_of_seeds(claim['seeds'])}, **{claim['verdict']}**"


def _was(before: Before, *, percent: bool) -> str:
    if before.ours is None:
        return before.verdict
    return f"{interval(before.ours, percent=percent)}{_of_seeds(before.seeds)}, {before.verdict}"


def _added(claims: Mapping[tuple[str, str], tuple[dict[str, Any], dict[str, Any]]]) -> Iterator[str]:
    if not claims:
        return
    yield from ("## New claims", "", f"{len(claims)} claims.", "")
    yield from header(["claim", "published", "now"])
    for summary, claim in claims.values():
        yield row([_named(summary, claim), claim["published"], _now(claim)])


def _named(summary: dict[str, Any], claim: dict[str, Any]) -> str:
    return f"[{summary['name']}](results.md#{anchor(summary)}): {claim['says']}"


def _of_seeds(seeds: int) -> str:
    return f" ({seeds} seeds)" if seeds else ""
