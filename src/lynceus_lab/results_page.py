"""The results page: every claim beside our number and verdict, the peers, and the set-up of every experiment. Made from summaries alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lynceus_lab.claims import FEWEST, HEADLINE, Verdict
from lynceus_lab.experiment_page import title
from lynceus_lab.markdown import header, interval, number, of_jobs, row
from lynceus_lab.pooled_comparison import pooled

_GOAL = "our goal"
"""The published value of a claim of our own."""

_INTRODUCTION = """\
# Results

`lynceus lab report` writes this page from the summaries in `results/`, and one page per experiment with all tables and figures to
`.lynceus/results/`. Notes are in the files of the experiments. `make reproduce` runs the quick set again, `make reproduce-full` everything.

How to read it: money is what a search was charged until the cost of its best finished, feasible run was within a factor of the optimum
(CNO), including initial samples and stopped runs. A seed that did not get there counts as infinite (∞), and a dash is no number. A job on
which neither of two policies got there is left out of their ratio. Brackets are 95 % bootstrap intervals over seeds, paired where two
policies are compared. A claim **holds** when our whole interval satisfies the published statement, and **does not hold** when the interval
lies outside, the direction of the effect included; **size refuted, direction open**: the published size lies outside the interval, no
effect inside. Otherwise it is not clear. [What changed](results-changes.md) since the last edition, and why, is on a page of its own.
"""


def results_page(summaries: Sequence[dict[str, Any]]) -> str:
    """The whole page as Markdown."""
    published = [one for one in summaries if any(not is_goal(claim) for claim in one["claims"])]
    others = [one for one in summaries if one not in published]
    lines = [_INTRODUCTION, *_made(summaries), "", *_published(published), *_goals(summaries), *pooled(summaries)]
    if others:
        lines += ["", "## Further experiments", "", *header(["experiment", "what it shows"])]
    for summary in others:
        name = f'<a id="{anchor(summary)}"></a>{summary["name"]}'
        lines.append(row([name, f"{title(summary)} {_setup(summary)}"]))
    return "\n".join(lines).rstrip() + "\n"


def _made(summaries: Sequence[dict[str, Any]]) -> Iterator[str]:
    made: dict[str, set[str]] = {}
    for summary in summaries:
        for name, values in summary["made"].items():
            made.setdefault(name, set()).update(values)
    if made:
        dates = sorted(made["date"])
        span = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        known = [name for name in ("lynceus", "commit", "python", "numpy") if made.get(name, set()) - {"unknown"}]
        versions = "; ".join(f"{name} {', '.join(sorted(made[name] - {'unknown'}))}" for name in known)
        yield f"Run {span} with {versions}, on {'; '.join(sorted(made['machine']))}."


def _published(summaries: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The claims of the papers, experiment by experiment, each with the paper's setting beside ours."""
    claims = [claim for summary in summaries for claim in summary["claims"] if not is_goal(claim)]
    if not claims:
        return
    yield from ("## Claims of the papers", "", _counts(claims), "")
    for summary in summaries:
        yield f"### {summary['name']}"
        yield ""
        yield f"{title(summary)} {_setup(summary)}{_settings(summary)}"
        yield ""
        yield from header(["claim", "published", "ours", "seeds", "verdict"])
        for claim in summary["claims"]:
            if not is_goal(claim):
                yield row([claim["says"], claim["published"], _ours(claim), _seeds(claim), _verdict(claim)])
        yield ""


def _settings(summary: dict[str, Any]) -> str:
    """The paper's setting and ours in words, where the file of the experiment says them."""
    paper, here = summary.get("paper", ""), summary.get("here", "")
    parts = [f" **Paper:** {paper.rstrip('.')}." if paper else "", f" **Here:** {here}" if here else ""]
    if readings := summary.get("readings"):
        parts.append(f" Judged with the price *{readings[0]}*; the verdicts name the others.")
    return "".join(parts)


def _goals(summaries: Sequence[dict[str, Any]]) -> Iterator[str]:
    shown = [(summary, claim) for summary in summaries for claim in summary["claims"] if is_goal(claim)]
    if not shown:
        return
    yield from ("## Our own goals", "", _counts([claim for _, claim in shown]), "")
    yield from header(["goal", "ours", "seeds", "verdict"])
    for summary, claim in shown:
        says = f"{claim['says']} ([{summary['source'] or summary['name']}](#{anchor(summary)}))"
        yield row([says, _ours(claim), _seeds(claim), _verdict(claim)])
    yield ""


def _counts(claims: Sequence[dict[str, Any]]) -> str:
    verdicts = [claim["verdict"] for claim in claims]
    counts = "; ".join(f"{name} – {verdicts.count(name)}" for name in Verdict if name in verdicts)
    return f"{len(claims)} in all: {counts}."


def _ours(claim: dict[str, Any]) -> str:
    return _number(claim) + (_decided(claim) if claim["ours"] is not None else "")


def _number(found: dict[str, Any]) -> str:
    """Our number; with both parts of a ratio if one is infinite, and with the share of seeds and the median of a distance."""
    if found["ours"] is None:
        return "–"
    text = interval(found["ours"])
    if "parts" in found:
        above, below = (number(part) for part in found["parts"])
        text += f" ({above} / {below})"
    if "of" in found:
        text += f"; {found['found']} of {found['of']} found, their mean {number(found['mean_of_found'])}"
        text += f", median of all {number(found['median'])}"
    return text


def _seeds(claim: dict[str, Any]) -> str:
    of_table = claim["measured"] == "table" and claim["ours"] is not None
    return "table" if of_table else str(claim["seeds"] or "–")


def _verdict(claim: dict[str, Any]) -> str:
    """The verdict with its caution and note, and the verdicts under other readings."""
    others = "; ".join(
        f"{name}: {_number(found)}, {found['verdict']}"
        for name, found in list(claim.get("readings", {}).items())[1:]
        if found["ours"] is not None
    )
    return " ".join(
        filter(
            None,
            (f"**{claim['verdict']}**{_caution(claim)}", claim["note"], f"Otherwise – {others}." if others else ""),
        )
    )


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
