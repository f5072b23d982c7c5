"""The page of one experiment: its tables and figures, made from its summary alone."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from lynceus_lab.markdown import header, interval, number, of_jobs, row
from lynceus_lab.measures import MEANS

_MAX_CODES = 6
"""Fingerprints listed on the page."""
_LONG = 200
"""Rows from which on the table of further means is left to the CSV file."""


def experiment_page(summary: dict[str, Any], figures: Sequence[str]) -> str:
    """The page as Markdown; `figures` holds paths relative to it."""
    lines = [f"# {summary['name']}", "", title(summary)]
    if summary["table"]:
        lines += ["", _code(summary)]
    for figure in figures:
        lines += ["", f"![{summary['title']}]({figure})"]
    for section in (_across(summary), _degraded(summary), _money(summary), _means(summary)):
        if text := list(section):
            lines += ["", *text]
    return "\n".join(lines).rstrip() + "\n"


def title(summary: dict[str, Any]) -> str:
    """What an experiment shows, and which figure or table of which paper it repeats."""
    return f"{summary['title']}. {summary['source']}".strip().rstrip(".") + "."


def _code(summary: dict[str, Any]) -> str:
    """The sources that the traces were made with, and policies whose sources have changed since."""
    codes = sorted({one["code"] for one in summary["table"]})
    shown = ", ".join(f"`{code}`" for code in codes[:_MAX_CODES])
    shown += f" and {len(codes) - _MAX_CODES} more (in the CSV file)" if len(codes) > _MAX_CODES else ""
    commits = ", ".join(name for name in summary["made"].get("commit", []) if name != "unknown")
    old = list(dict.fromkeys(one["policy"] for one in summary["table"] if not one["current"]))
    since = f" Measured with code that has changed since: {', '.join(old)}." if old else ""
    adopted, traces = (sum(one[name] for one in summary["table"]) for name in ("adopted", "seeds"))
    verified = (
        f" {adopted:,} of {traces:,} traces are from earlier code and were adopted (`lynceus lab verify`)."
        if adopted
        else ""
    )
    source = f" (commit {commits})" if commits else ""
    return f"Fingerprints of code and tables: {shown}{source}.{since}{verified}"


def _across(summary: dict[str, Any]) -> Iterator[str]:
    several = len(summary["variants"]) > 1
    head = ["policy", *(["variant"] if several else []), "until CNO", "jobs", "seeds", "p50", "p90"]
    head += [
        "cheaper / equal / more expensive (p90)",
        "jobs with p < 0.05 (seeds, Holm)",
        "p over jobs (clusters; Holm)",
    ]
    for base in dict.fromkeys(one["base"] for one in summary["across"]):
        yield f"Money relative to **{base}** (geometric mean over jobs on the seeds that both have; below 1 is cheaper):"
        yield ""
        yield from header(head)
        for one in summary["across"]:
            if one["base"] == base:
                first = [one["policy"], *([one["variant"]] if several else []), f"{one['cno']:g}", str(one["jobs"])]
                outcome = f"{one['wins']} / {one['ties']} / {one['losses']}"
                p_jobs = f"{number(one['p_jobs'])} ({one['clusters']})"
                yield row([*first, str(one["seeds"]), *_ratios(one), outcome, str(one["significant"]), p_jobs])
        yield ""


def _ratios(one: dict[str, Any]) -> list[str]:
    """Ratios at p50 and p90, each with the number of jobs behind it."""
    asked, undecided = one["jobs"], one["undecided"]
    return [
        interval(one[name]) + of_jobs(asked - left_out, asked)
        for name, left_out in zip(("p50", "p90"), undecided, strict=True)
    ]


def _degraded(summary: dict[str, Any]) -> Iterator[str]:
    """One line per policy, one column per world."""
    rows = summary["degraded"]
    if not rows:
        return
    worlds = list(dict.fromkeys(one["variant"] for one in rows))
    found = {(one["policy"], one["variant"]): " / ".join(_ratios(one)) + _unreached(one) for one in rows}
    seeds = {policy: min(one["seeds"] for one in rows if one["policy"] == policy) for policy, _ in found}
    yield (
        f"Money until CNO {rows[0]['cno']:g} of each policy, divided by its own in the world **{rows[0]['over']}**, p50 / p90 (paired by "
        f"seed, geometric mean over {max(one['jobs'] for one in rows)} jobs; above 1 costs more than there; another billing also "
        "changes the optimum), and how many seeds of all jobs did not reach it:"
    )
    yield ""
    yield from header(["policy", "seeds", *worlds])
    for policy, count in seeds.items():
        yield row([policy, str(count), *(found.get((policy, world), "–") for world in worlds)])


def _unreached(one: dict[str, Any]) -> str:
    return f"; {count} not" if (count := sum(one["unreached"])) else ""


def _money(summary: dict[str, Any]) -> Iterator[str]:
    if not (summary["table"] and summary["levels"]):
        return
    columns = [f"until CNO {level:g}" for level in summary["levels"]]
    yield from _details("Dollars per job, p50 / p90, and seeds that did not reach the CNO")
    yield from header(["job", "policy", "seeds", *columns])
    for one in summary["table"]:
        yield row([_job(one), one["policy"], str(one["seeds"]), *(_level(entry) for entry in one["levels"])])
    yield ""
    yield "</details>"


def _level(entry: dict[str, Any]) -> str:
    p90, low, high = (number(value) for value in entry["p90"])
    text = f"{number(entry['p50'][0])} / {p90} [{low}, {high}]"
    return f"{text}; {entry['unreached']} not" if entry["unreached"] else text


def _means(summary: dict[str, Any]) -> Iterator[str]:
    if not 0 < len(summary["table"]) <= _LONG:
        return
    yield from _details("Further means over seeds")
    yield from header(["job", "policy", "seeds", *MEANS.values()])
    for one in summary["table"]:
        means = [interval(one[key]) if key in one else "–" for key in MEANS]
        yield row([_job(one), one["policy"], str(one["seeds"]), *means])
    yield ""
    yield "</details>"


def _details(text: str) -> Iterator[str]:
    yield f"<details><summary>{text}</summary>"
    yield ""


def _job(one: dict[str, Any]) -> str:
    return f"{one['job']}, {one['variant']}" if one["variant"] else str(one["job"])


def as_csv(summary: dict[str, Any]) -> str:
    """The table of an experiment for spreadsheets: one line per job, variant, policy and level."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    ends = ("", "_low", "_high")
    statistics = ("p50", "p90", "ratio_p50", "ratio_p90")
    head = ["job", "variant", "policy", "code", "seeds", "cno", "unreached"]
    writer.writerow([*head, *(f"{s}{e}" for s in statistics for e in ends), "p", *MEANS])
    for one in summary["table"]:
        means = [one[name][0] if name in one else "" for name in MEANS]
        for entry in one["levels"] or [{}]:
            first = [one[name] for name in ("job", "variant", "policy", "code", "seeds")]
            numbers = [value for name in statistics for value in entry.get(name, ("", "", ""))]
            writer.writerow(
                [*first, entry.get("cno", ""), entry.get("unreached", ""), *numbers, entry.get("p", ""), *means]
            )
    return out.getvalue()
