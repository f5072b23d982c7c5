"""The results page: every claim beside our number, then every experiment with its tables and pictures. Made from summaries alone."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from typing import Any

from lynceus.lab.claims import FEWEST, HEADLINE, Verdict
from lynceus.lab.measures import MEANS
from lynceus.lab.pooled import pooled

_GOAL = "our goal"
"""What stands for the published value of a claim of ours."""


def page(summaries: Sequence[dict[str, Any]], pictures: dict[str, list[str]]) -> str:
    """The whole page as Markdown; `pictures` holds paths relative to it, by experiment."""
    lines = [
        "# Results",
        "",
        "This page is written by `lynceus lab report`: numbers come from the summaries in `results/`; notes beside claims are written by "
        "hand, in the experiments' files. Run `make reproduce` for the quick set or `make reproduce-full` for everything.",
        "",
        "How to read it. Money is what an exploration was charged until its best finished, feasible run was within a factor of the "
        "optimum (CNO), initial samples and stopped runs included; a seed that never got there counts as infinite (∞), a dash is no "
        "number at all, and a job on which neither of two competitors got there is left out of their ratio. Brackets are 95 % "
        "bootstrap intervals over seeds, drawn in pairs where two competitors are compared; whiskers in pictures are the same. "
        "A claim **holds** when our whole "
        "interval satisfies the published statement, and **does not hold** when the interval lies outside of it; what reaches over a "
        "bound is not clear. The statement and its bounds stand in the experiment's file.",
        "",
        *_made(summaries),
        "",
        *_claims("Claims of the papers", summaries, goals=False),
        *_claims("Our own goals", summaries, goals=True),
    ]
    lines += [*pooled(summaries), ""]
    for summary in summaries:
        lines += [*_experiment(summary, pictures.get(summary["name"], [])), ""]
    return "\n".join(lines).rstrip() + "\n"


def _made(summaries: Sequence[dict[str, Any]]) -> Iterator[str]:
    made: dict[str, set[str]] = {}
    for summary in summaries:
        for name, values in summary["made"].items():
            made.setdefault(name, set()).update(values)
    if made:
        dates = sorted(made["date"])
        span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        versions = "; ".join(
            f"{name} {', '.join(sorted(made[name]))}" for name in ("lynceus", "commit", "python", "numpy")
        )
        yield f"Run {span} with {versions}, on {'; '.join(sorted(made['machine']))}."


def _claims(title: str, summaries: Sequence[dict[str, Any]], *, goals: bool) -> Iterator[str]:
    """The claims of others, or what we set ourselves, under a heading with how many came out how."""
    shown = [(summary, claim) for summary in summaries for claim in summary["claims"] if is_goal(claim) == goals]
    if not shown:
        return
    verdicts = [claim["verdict"] for _, claim in shown]
    counts = "; ".join(f"{name} – {verdicts.count(name)}" for name in Verdict if name in verdicts)
    yield f"## {title}"
    yield ""
    yield f"{len(shown)} in all: {counts}."
    yield ""
    head = ["goal" if goals else "claim", *([] if goals else ["published"]), "ours", "seeds", "verdict"]
    yield _cells(head)
    yield "|" + "---|" * len(head)
    for summary, claim in shown:
        says = f"{claim['says']} ([{summary['source'] or summary['name']}](#{anchor(summary)}))"
        ours = "–" if claim["ours"] is None else interval(claim["ours"]) + _decided(claim)
        of_table = claim["measured"] == "table" and claim["ours"] is not None
        seeds = "table" if of_table else str(claim["seeds"] or "–")
        verdict = " ".join(filter(None, (f"**{claim['verdict']}**{_caution(claim)}", claim["note"])))
        yield _cells([says, *([] if goals else [claim["published"]]), ours, seeds, verdict])
    yield ""


def _decided(claim: dict[str, Any]) -> str:
    jobs, undecided = claim["jobs"], claim["undecided"]
    return _of_jobs(jobs, jobs + undecided)


def is_goal(claim: dict[str, Any]) -> bool:
    """Whether a claim is ours and nobody has published it."""
    return bool(claim["published"] == _GOAL)


def _of_jobs(counted: int, asked: int) -> str:
    """On how many jobs a ratio rests, where it is not all of them."""
    return f" ({counted} of {asked} jobs)" if counted < asked else ""


def _caution(claim: dict[str, Any]) -> str:
    if claim["measured"] == "table" or claim["ours"] is None:
        return ""
    if claim["seeds"] < FEWEST:
        return f" (preliminary: fewer than {FEWEST} seeds)"
    return "" if claim["seeds"] >= HEADLINE else f" ({claim['seeds']} seeds)"


def anchor(summary: dict[str, Any]) -> str:
    """The fragment that GitHub gives to an experiment's heading."""
    return "".join(sign for sign in summary["name"].lower() if sign.isalnum() or sign in "-_")


def _experiment(summary: dict[str, Any], pictures: Sequence[str]) -> Iterator[str]:
    yield f"## {summary['name']}"
    yield ""
    yield f"{summary['title']}. {summary['source']}".strip().rstrip(".") + "."
    if summary["table"]:
        yield ""
        yield _code(summary)
    for picture in pictures:
        yield ""
        yield f"![{summary['title']}]({picture})"
    if summary["across"]:
        yield ""
        yield from _across(summary)
    if summary["degraded"]:
        yield ""
        yield from _degraded(summary)
    if summary["table"] and summary["levels"]:
        yield ""
        yield from _money(summary)
    if summary["table"] and len(summary["table"]) <= _LONG:
        yield ""
        yield from _others(summary)


def _code(summary: dict[str, Any]) -> str:
    """With which sources the traces were made, and which competitors' sources have changed since."""
    codes = sorted({row["code"] for row in summary["table"]})
    shown = ", ".join(f"`{code}`" for code in codes[:_CODES])
    shown += f" and {len(codes) - _CODES} more (in the CSV file)" if len(codes) > _CODES else ""
    commits = ", ".join(summary["made"]["commit"])
    old = list(dict.fromkeys(row["policy"] for row in summary["table"] if not row["current"]))
    since = f" Measured with code that has changed since: {', '.join(old)}." if old else ""
    adopted, traces = (sum(row[name] for row in summary["table"]) for name in ("adopted", "seeds"))
    stands = (
        f" {adopted:,} of {traces:,} traces are of earlier code and were adopted (`lynceus lab verify`)."
        if adopted
        else ""
    )
    return f"Traces of code and tables {shown} (commit {commits}).{since}{stands}"


_CODES = 6
"""Fingerprints that are listed on the page."""
_LONG = 200
"""Rows from which on the table of further quantities is left to the CSV file."""


def _across(summary: dict[str, Any]) -> Iterator[str]:
    several = len(summary["variants"]) > 1
    head = ["policy", *(["variant"] if several else []), "until CNO", "jobs", "seeds", "p50", "p90"]
    head += ["cheaper / level / dearer (p90)", "jobs with p < 0.05 (seeds, Holm)", "p over jobs (clusters; Holm)"]
    for base in dict.fromkeys(row["base"] for row in summary["across"]):
        yield f"Money relative to **{base}** (geometric mean over jobs on the seeds that both have; below 1 is cheaper):"
        yield ""
        yield _cells(head)
        yield "|" + "---|" * len(head)
        for row in summary["across"]:
            if row["base"] == base:
                first = [row["policy"], *([row["variant"]] if several else []), f"{row['cno']:g}", str(row["jobs"])]
                outcome = f"{row['wins']} / {row['ties']} / {row['losses']}"
                p_jobs = f"{number(row['p_jobs'])} ({row['clusters']})"
                yield _cells([*first, str(row["seeds"]), *_ratios(row), outcome, str(row["significant"]), p_jobs])
        yield ""


def _ratios(row: dict[str, Any]) -> list[str]:
    """Ratios at p50 and p90, each with the jobs that it rests on."""
    asked, undecided = row["jobs"], row["undecided"]
    return [
        interval(row[name]) + _of_jobs(asked - left_out, asked)
        for name, left_out in zip(("p50", "p90"), undecided, strict=True)
    ]


def _degraded(summary: dict[str, Any]) -> Iterator[str]:
    """A line per competitor, a column per world."""
    rows = summary["degraded"]
    worlds = list(dict.fromkeys(row["variant"] for row in rows))
    found = {(row["policy"], row["variant"]): " / ".join(_ratios(row)) + _lost(row) for row in rows}
    seeds = {policy: min(row["seeds"] for row in rows if row["policy"] == policy) for policy, _ in found}
    yield (
        f"Money until CNO {rows[0]['cno']:g} of each policy over its own in the world **{rows[0]['over']}**, p50 / p90 (in pairs by "
        f"seed, geometric mean over {max(row['jobs'] for row in rows)} jobs; above 1 is dearer than there; another tariff moves the "
        "optimum too), and how many seeds of all jobs never got there:"
    )
    yield ""
    yield _cells(["policy", "seeds", *worlds])
    yield "|" + "---|" * (len(worlds) + 2)
    for policy, count in seeds.items():
        yield _cells([policy, str(count), *(found.get((policy, world), "–") for world in worlds)])


def _lost(row: dict[str, Any]) -> str:
    return f"; {lost} not" if (lost := sum(row["unreached"])) else ""


def _cells(texts: Sequence[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _money(summary: dict[str, Any]) -> Iterator[str]:
    yield "<details><summary>Dollars per job, p50 / p90, and seeds that never got there</summary>"
    yield ""
    levels = summary["levels"]
    yield "| job | policy | seeds | " + " | ".join(f"until CNO {level:g}" for level in levels) + " |"
    yield "|---|---|---|" + "---|" * len(levels)
    for row in summary["table"]:
        name = f"{row['job']}, {row['variant']}" if row["variant"] else row["job"]
        cells = [_level(entry) for entry in row["levels"]]
        yield f"| {name} | {row['policy']} | {row['seeds']} | {' | '.join(cells)} |"
    yield ""
    yield "</details>"


def _level(entry: dict[str, Any]) -> str:
    text = (
        f"{number(entry['p50'][0])} / {number(entry['p90'][0])} [{number(entry['p90'][1])}, {number(entry['p90'][2])}]"
    )
    return f"{text}; {entry['unreached']} not" if entry["unreached"] else text


def _others(summary: dict[str, Any]) -> Iterator[str]:
    yield "<details><summary>Further means over seeds</summary>"
    yield ""
    yield "| job | policy | seeds | " + " | ".join(MEANS.values()) + " |"
    yield "|---|---|---|" + "---|" * len(MEANS)
    for row in summary["table"]:
        name = f"{row['job']}, {row['variant']}" if row["variant"] else row["job"]
        cells = [interval(row[key]) if key in row else "–" for key in MEANS]
        yield f"| {name} | {row['policy']} | {row['seeds']} | {' | '.join(cells)} |"
    yield ""
    yield "</details>"


def interval(numbers: Sequence[float | str]) -> str:
    """`2.3 [1.9, 2.8]`; the number alone where its ends are the same or unknown."""
    value, low, high = numbers
    if low == high:
        return number(value)
    return f"{number(value)} [{number(low)}, {number(high)}]"


def number(value: float | str) -> str:
    """Three digits; ∞ for what was not reached, a dash for what is no number.

    >>> number(0.01234), number(1234.5), number("inf"), number("nan")
    ('0.0123', '1234', '∞', '–')
    """
    found = float(value)
    if math.isnan(found):
        return "–"
    if math.isinf(found):
        return "∞" if found > 0 else "−∞"
    return f"{found:.0f}" if math.fabs(found) >= 1000 else f"{found:.3g}"


def as_csv(summary: dict[str, Any]) -> str:
    """The table of an experiment for spreadsheets: one line per job, variant, policy and level."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    ends = ("", "_low", "_high")
    statistics = ("p50", "p90", "ratio_p50", "ratio_p90")
    head = ["job", "variant", "policy", "code", "seeds", "cno", "unreached"]
    writer.writerow([*head, *(f"{s}{e}" for s in statistics for e in ends), "p", *MEANS])
    for row in summary["table"]:
        means = [row[name][0] if name in row else "" for name in MEANS]
        for entry in row["levels"] or [{}]:
            first = [
                row["job"],
                row["variant"],
                row["policy"],
                row["code"],
                row["seeds"],
                entry.get("cno", ""),
                entry.get("unreached", ""),
            ]
            numbers = [value for name in statistics for value in entry.get(name, ("", "", ""))]
            writer.writerow([*first, *numbers, entry.get("p", ""), *means])
    return out.getvalue()
