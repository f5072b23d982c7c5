"""The results page: every claim beside our number and verdict, the peers, and the set-up of every experiment. Made from summaries alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lynceus_lab.claims import FEWEST, HEADLINE, Verdict
from lynceus_lab.experiment_page import title
from lynceus_lab.markdown import header, interval, of_jobs, row
from lynceus_lab.pooled_comparison import pooled

_GOAL = "our goal"
"""The published value of a claim of our own."""

_INTRODUCTION = """\
# Results

`lynceus lab report` writes this page from the summaries in `results/` (JSON and CSV, one pair per experiment); the notes beside claims
are in the files of the experiments. The same command writes one page per experiment with all tables and figures to `.lynceus/results/`.
`make reproduce` runs the quick set again, `make reproduce-full` everything.

How to read it: money is what a search was charged until the cost of its best finished, feasible run was within a factor of the optimum
(CNO), including initial samples and stopped runs. A seed that did not get there counts as infinite (∞), and a dash is no number. A job on
which neither of two policies got there is left out of their ratio. Brackets are 95 % bootstrap intervals over seeds, paired where two
policies are compared. A claim **holds** when our whole interval satisfies the published statement, and **does not hold** when the interval
lies outside; otherwise it is not clear. The file of an experiment has the statement and its bounds.
"""


def results_page(summaries: Sequence[dict[str, Any]]) -> str:
    """The whole page as Markdown."""
    lines = [
        _INTRODUCTION,
        *_made(summaries),
        "",
        *_claims("Claims of the papers", summaries, goals=False),
        *_claims("Our own goals", summaries, goals=True),
        *pooled(summaries),
        "",
        "## Experiments",
    ]
    for summary in summaries:
        lines += ["", *_experiment(summary)]
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


def _claims(heading: str, summaries: Sequence[dict[str, Any]], *, goals: bool) -> Iterator[str]:
    """The claims of the papers, or our own goals, with a count of the verdicts."""
    shown = [(summary, claim) for summary in summaries for claim in summary["claims"] if is_goal(claim) == goals]
    if not shown:
        return
    verdicts = [claim["verdict"] for _, claim in shown]
    counts = "; ".join(f"{name} – {verdicts.count(name)}" for name in Verdict if name in verdicts)
    yield f"## {heading}"
    yield ""
    yield f"{len(shown)} in all: {counts}."
    yield ""
    yield from header(["goal" if goals else "claim", *([] if goals else ["published"]), "ours", "seeds", "verdict"])
    for summary, claim in shown:
        says = f"{claim['says']} ([{summary['source'] or summary['name']}](#{anchor(summary)}))"
        ours = "–" if claim["ours"] is None else interval(claim["ours"]) + _decided(claim)
        of_table = claim["measured"] == "table" and claim["ours"] is not None
        seeds = "table" if of_table else str(claim["seeds"] or "–")
        verdict = " ".join(filter(None, (f"**{claim['verdict']}**{_caution(claim)}", claim["note"])))
        yield row([says, *([] if goals else [claim["published"]]), ours, seeds, verdict])
    yield ""


def _decided(claim: dict[str, Any]) -> str:
    return of_jobs(claim["jobs"], claim["jobs"] + claim["undecided"])


def is_goal(claim: dict[str, Any]) -> bool:
    """Whether a claim is our own rather than published."""
    return bool(claim["published"] == _GOAL)


def _caution(claim: dict[str, Any]) -> str:
    if claim["measured"] == "table" or claim["ours"] is None:
        return ""
    if claim["seeds"] < FEWEST:
        return f" (preliminary: fewer than {FEWEST} seeds)"
    return "" if claim["seeds"] >= HEADLINE else f" ({claim['seeds']} seeds)"


def anchor(summary: dict[str, Any]) -> str:
    """The fragment that GitHub gives to the heading of an experiment."""
    return "".join(sign for sign in summary["name"].lower() if sign.isalnum() or sign in "-_")


def _experiment(summary: dict[str, Any]) -> Iterator[str]:
    yield f"### {summary['name']}"
    yield ""
    yield f"{title(summary)} {_setup(summary)}"


def _setup(summary: dict[str, Any]) -> str:
    """Jobs, policies, variants and seeds in one sentence."""
    jobs = _counted(len(summary["jobs"]), "job", "jobs")
    if not summary["table"]:
        return f"{jobs}: {', '.join(summary['jobs'])}; facts of the tables, no searches."
    seeds = sorted({one["seeds"] for one in summary["table"]})
    shown = f"{seeds[0]} to {seeds[-1]} seeds" if len(seeds) > 1 else _counted(seeds[0], "seed", "seeds")
    variants = [one for one in summary["variants"] if one]
    parts = [
        f"{jobs} × {_counted(len(summary['policies']), 'policy', 'policies')} ({', '.join(summary['policies'])})",
        *([f"× {len(variants)} variants ({', '.join(variants)})"] if variants else []),
        f"× {shown}.",
    ]
    return " ".join(parts)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
