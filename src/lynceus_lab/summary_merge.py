"""A new summary beside the stored one of the same experiment: what rests on more seeds stays.

Traces need not survive, summaries do. A campaign that was started again with fewer seeds, or only for some budgets, must not replace what
a longer one found; so claims, readings of claims, rows of the table and points of figures are compared one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lynceus_lab.claims import in_setup

Summary = dict[str, Any]
_TEXTS = ("title", "source", "setup", "published", "note", "differs")
_AXES = {"job": "jobs", "variant": "variants", "policy": "policies"}
"""What a row of the table is about, in the order of the rows, and the field of a summary with the names."""


def merged(new: Summary, stored: Summary | None) -> Summary:
    """The summary to keep: of every claim, row and point the one with more seeds, and the new one with as many.

    A stored claim only counts if it says the same and was measured in the same setting; one of a version that did not state the
    setting counts, too. Comparisons over all jobs are those of the summary with more replays. An experiment may have got more policies.
    """
    if stored is None or not stored.get("table"):
        return new
    kept = {claim["id"]: claim for claim in stored["claims"]}
    claims = [_claim(claim, kept.get(claim["id"])) for claim in new["claims"]]
    if not _has_all_of(new, stored):
        taken = any(claim is not own for claim, own in zip(claims, new["claims"], strict=True))
        return {**new, "claims": claims, "made": _joined(new["made"], stored["made"]) if taken else new["made"]}
    larger = stored if _replays(stored) > _replays(new) else new
    jobs = list(dict.fromkeys([*larger["jobs"], *new["jobs"], *stored["jobs"]]))
    found = {**larger, **_texts(new), "jobs": jobs, "policies": new["policies"], "claims": claims}
    found["table"] = _table(new, stored, found)
    found["curves"] = _curves(new, stored, larger)
    same = claims == new["claims"] and found["table"] == new["table"]
    return {**found, "made": new["made"] if same else _joined(new["made"], stored["made"])}


def retold(stored: Summary, new: Summary) -> Summary:
    """The stored summary of an experiment without traces, with the texts of its file."""
    told = {claim["id"]: claim for claim in new["claims"]}
    claims = [
        {**claim, **_texts(told[claim["id"]])}
        if claim["id"] in told and claim["says"] == told[claim["id"]]["says"]
        else claim
        for claim in stored["claims"]
    ]
    return {**stored, **_texts(new), "claims": claims}


def settled(summary: Summary) -> Summary:
    """The summary with each verdict as the set-up of its claim allows: what stored claims know of theirs may be new."""
    return {**summary, "claims": [_settled(claim) for claim in summary["claims"]]}


def _settled(claim: Summary) -> Summary:
    def verdict(one: Summary) -> Summary:
        return {**one, "verdict": in_setup(one["verdict"], claim["published"], claim.get("differs", []))}

    readings = {name: verdict(one) for name, one in claim.get("readings", {}).items()}
    return verdict(claim) | ({"readings": readings} if "readings" in claim else {})


def _texts(summary: Summary) -> Summary:
    """What a summary, or a claim of it, only repeats from the file of its experiment."""
    return {name: summary[name] for name in _TEXTS if name in summary}


def _claim(new: Summary, stored: Summary | None) -> Summary:
    """The claim with more seeds, and of each reading the one with more; texts are always those of the experiment's file."""
    if stored is None or stored["ours"] is None:
        return new
    if stored["says"] != new["says"] or stored.get("setting", new["setting"]) != new["setting"]:
        return new
    own = new if stored["seeds"] <= new["seeds"] else {**stored, **_texts(new), "setting": new["setting"]}
    readings = {
        name: _reading((found, new), (stored["readings"].get(name), stored))
        for name, found in new.get("readings", {}).items()
    }
    return {**own, "readings": readings} if readings else own


def _reading(new: tuple[Summary, Summary], stored: tuple[Summary | None, Summary]) -> Summary:
    """Each with its claim, whose seeds are those of a reading that does not state its own."""
    (found, claim), (older, older_claim) = new, stored
    if older is None or older["ours"] is None:
        return found
    before, now = ((one if "seeds" in one else its)["seeds"] for one, its in ((older, older_claim), (found, claim)))
    return found if found["ours"] is not None and now >= before else {**older, "seeds": before}


def _table(new: Summary, stored: Summary, names: Summary) -> list[Summary]:
    """The rows of both, in the order of the names; of two for the same place the one with more seeds."""
    rows: dict[tuple[str, ...], Summary] = {}
    for row in (*stored["table"], *new["table"]):
        place = tuple(row[axis] for axis in _AXES)
        if place not in rows or rows[place]["seeds"] <= row["seeds"]:
            rows[place] = row
    order = [list(names[field]) for field in _AXES.values()]
    return [rows[place] for place in sorted(rows, key=lambda place: _position(place, order))]


def _position(place: Sequence[str], order: Sequence[list[str]]) -> list[int]:
    return [names.index(name) if name in names else len(names) for name, names in zip(place, order, strict=True)]


def _curves(new: Summary, stored: Summary, larger: Summary) -> list[Summary]:
    """The figures of the larger summary; those of both with the points, or with the lines, that rest on more seeds."""
    older = {(figure["title"], figure["kind"]): figure for figure in stored.get("curves", [])}
    newer = {(figure["title"], figure["kind"]): figure for figure in new.get("curves", [])}
    return [
        (_by_variant if figure["kind"] == "by-variant" else _by_policy)(newer[name], older[name], (new, stored))
        if (name := (figure["title"], figure["kind"])) in newer.keys() & older.keys()
        else figure
        for figure in larger.get("curves", [])
    ]


def _by_policy(new: Summary, stored: Summary, both: tuple[Summary, Summary]) -> Summary:
    """Of each policy the line of the summary with more seeds of it, and the new one with as many."""
    policies = both[0]["policies"]
    renewed = {name for name in policies if _policy_seeds(both[0], name) >= _policy_seeds(both[1], name)}
    panels = {panel["title"]: panel for panel in (*new["panels"], *stored["panels"])}
    lines: dict[str, list[Summary]] = {title: [] for title in panels}
    for figure, is_new in ((new, True), (stored, False)):
        for panel in figure["panels"]:
            lines[panel["title"]] += [line for line in panel["lines"] if (line["label"] in renewed) == is_new]
    return {
        **new,
        "panels": [
            {**panel, "lines": sorted(lines[title], key=lambda line: _position([line["label"]], [policies]))}
            for title, panel in panels.items()
        ],
    }


def _by_variant(new: Summary, stored: Summary, both: tuple[Summary, Summary]) -> Summary:
    panels = {panel["title"]: panel for panel in stored["panels"]}
    panels |= {
        panel["title"]: {**panel, "lines": _lines(panel["lines"], panels.get(panel["title"], panel)["lines"], both)}
        for panel in new["panels"]
    }
    return {**new, "panels": list(panels.values())}


def _lines(new: Sequence[Summary], stored: Sequence[Summary], both: tuple[Summary, Summary]) -> list[Summary]:
    """Lines by policy, with the points of both; a point by the summary with more seeds of its policy in its variant."""
    order = both[0]["policies"]
    found: dict[str, dict[str, list[Any]]] = {}
    for summary, lines in zip(reversed(both), (stored, new), strict=True):
        other = both[1] if summary is both[0] else both[0]
        for line in lines:
            points = found.setdefault(line["label"], {})
            for x, *values in zip(*(line[name] for name in ("x", "y", "low", "high")), strict=True):
                if x not in points or _seeds(summary, line["label"], x) >= _seeds(other, line["label"], x):
                    points[x] = values
    made = []
    for label in sorted(found, key=lambda name: _position([name], [order])):
        shown = sorted(found[label].items(), key=lambda point: _position([point[0]], [both[0]["variants"]]))
        y, low, high = (list(column) for column in zip(*(values for _, values in shown), strict=True))
        made.append({"label": label, "x": [x for x, _ in shown], "y": y, "low": low, "high": high})
    return made


def _seeds(summary: Summary, policy: str, variant: str) -> int:
    return sum(row["seeds"] for row in summary["table"] if (row["policy"], row["variant"]) == (policy, variant))


def _policy_seeds(summary: Summary, policy: str) -> int:
    return sum(row["seeds"] for row in summary["table"] if row["policy"] == policy)


def _replays(summary: Summary) -> int:
    return sum(int(row["seeds"]) for row in summary["table"])


def _has_all_of(new: Summary, stored: Summary) -> bool:
    """Whether the new one still has all rows of the stored one, so that the stored tables can stand for its own."""
    return set(new["policies"]) >= set(stored["policies"]) and set(new["variants"]) == set(stored["variants"])


def _joined(one: dict[str, list[str]], other: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: sorted({*one.get(name, []), *other.get(name, [])}) for name in {**one, **other}}
