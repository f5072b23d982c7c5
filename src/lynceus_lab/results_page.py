"""The results pages, made from summaries alone: the papers' claims with set-up, number and verdict; and what goes beyond the papers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lynceus_lab.claims import FEWEST, GOAL, HEADLINE, Verdict
from lynceus_lab.experiment_page import title
from lynceus_lab.markdown import header, interval, number, of_jobs, row
from lynceus_lab.pooled_comparison import pooled

_INTRODUCTION = """\
# Results

`lynceus lab report` writes this page from the summaries in `results/`, and one page per experiment with all tables and figures to
`.lynceus/results/`. Notes are in the files of the experiments. `make reproduce` runs the quick set again, `make reproduce-full` everything.

How to read it: money is what a search was charged until the cost of its best finished, feasible run was within a factor of the optimum
(CNO), including initial samples and stopped runs. A seed that did not get there counts as infinite (∞); a dash is no number. Brackets are
95 % bootstrap intervals over seeds, paired where two policies are compared; [verdicts](lab.md#verdicts) go by the whole interval. Above the
claims of an experiment, the paper's set-up is beside ours (= is the same); the column *set-up* says in which aspects a claim differs.
Pages of their own say [what changed](results-changes.md), and have [our goals, the peers and all other experiments](results-beyond.md).
"""
_BEYOND = """\
# Results beyond the papers

Written by `lynceus lab report`, like the [results](results.md) for the claims of the papers, which say how to read both.
"""


def results_page(summaries: Sequence[dict[str, Any]]) -> str:
    """The claims of the papers as Markdown."""
    return _text([_INTRODUCTION, *_made(summaries), "", *_published(_of_papers(summaries))])


def beyond_page(summaries: Sequence[dict[str, Any]]) -> str:
    """Our own goals, the peers, and the experiments that belong to no paper, as Markdown."""
    papers = _of_papers(summaries)
    others = [one for one in summaries if one not in papers]
    lines = [_BEYOND, *_goals(summaries), *pooled(others)]
    if others:
        lines += ["", "## Experiments", "", *header(["experiment", "what it shows"])]
    for summary in others:
        name = f'<a id="{anchor(summary)}"></a>{summary["name"]}'
        setup = "; ".join(f"{aspect}: {_both(paper, here)}" for aspect, paper, here in summary.get("setup", []))
        lines.append(row([name, " ".join(filter(None, (title(summary), _counts_of(summary), setup)))]))
    return _text(lines)


def _both(paper: str, here: str) -> str:
    return here if paper in (here, "–") else f"{paper} (paper), {here} (here)"


def _of_papers(summaries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Experiments with a claim of a paper."""
    return [one for one in summaries if any(not is_goal(claim) for claim in one["claims"])]


def _text(lines: Sequence[str]) -> str:
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
    yield from _readings([claim for claim in claims if claim.get("readings")])
    for summary in summaries:
        yield f"### {summary['name']}"
        yield f"{title(summary)} {_counts_of(summary)}"
        yield ""
        yield from _setups(summary)
        yield from header(["claim", "published", "ours", "seeds", "set-up", "verdict"])
        for claim in summary["claims"]:
            if not is_goal(claim):
                cells = [claim["says"], claim["published"], _ours(claim), _seeds(claim), _differs(claim)]
                yield row([*cells, _verdict(claim)])
        yield ""


def _readings(claims: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The verdicts of claims about settings that the papers leave open, counted under each reading."""
    if not claims:
        return
    found = [one["verdict"] for claim in claims for one in claim["readings"].values()]
    verdicts = [verdict for verdict in Verdict if verdict in found]
    yield f"Claims about a setting that the paper leaves open, {len(claims)}, under each [reading](lab.md#settings-and-readings):"
    yield ""
    yield from header(["reading", *verdicts])
    for name in dict.fromkeys(name for claim in claims for name in claim["readings"]):
        under = [claim["readings"][name]["verdict"] for claim in claims if name in claim["readings"]]
        yield row([name, *(str(under.count(verdict)) for verdict in verdicts)])
    yield ""


def _setups(summary: dict[str, Any]) -> Iterator[str]:
    """The paper's set-up and ours, one under the other, where the file of the experiment says them."""
    setup = summary.get("setup", [])
    if setup:
        yield from header(["", *(aspect for aspect, _, _ in setup)])
        yield row(["paper", *(paper for _, paper, _ in setup)])
        yield row(["here", *("=" if here == paper else here for _, paper, here in setup)])
        yield ""


def _differs(claim: dict[str, Any]) -> str:
    """The aspects in which a claim's set-up is not the paper's."""
    if claim["ours"] is None:
        return "–"
    return f"other {', '.join(claim['differs'])}" if claim.get("differs") else "the paper's"


def _goals(summaries: Sequence[dict[str, Any]]) -> Iterator[str]:
    papers = _of_papers(summaries)
    shown = [(summary, claim) for summary in summaries for claim in summary["claims"] if is_goal(claim)]
    if not shown:
        return
    yield from ("## Our own goals", "", _counts([claim for _, claim in shown]), "")
    yield from header(["goal", "ours", "seeds", "verdict"])
    for summary, claim in shown:
        page = "results.md" if summary in papers else ""
        says = f"{claim['says']} ([{summary['source'] or summary['name']}]({page}#{anchor(summary)}))"
        yield row([says, _ours(claim), _seeds(claim), _verdict(claim)])
    yield ""


def _counts(claims: Sequence[dict[str, Any]]) -> str:
    verdicts = [claim["verdict"] for claim in claims]
    counts = "; ".join(f"{name} – {verdicts.count(name)}" for name in Verdict if name in verdicts)
    return f"{len(claims)} in all: {counts}."


def _ours(claim: dict[str, Any]) -> str:
    shown = shown_number(claim, percent=in_percent(claim))
    return shown + (_decided(claim) if claim["ours"] is not None else "")


def in_percent(claim: dict[str, Any]) -> bool:
    """Whether our number is shown in percent, as the published one is."""
    return "%" in claim["published"] and claim["measured"] != "ratio"


def shown_number(found: dict[str, Any], *, percent: bool = False) -> str:
    """Our number; with both parts of a ratio if one is infinite; a distance with the share of seeds, their mean and the median of all."""
    if found["ours"] is None:
        return "–"
    text = interval(found["ours"], percent=percent)
    if "parts" in found:
        above, below = (number(part) for part in found["parts"])
        text += f" ({above} / {below})"
    if "of" in found:
        text += f"; {found['found']} of {found['of']} found"
        for name, value in (("their mean", found["mean_of_found"]), ("median of all", found["median"])):
            if value != found["ours"][0]:
                text += f", {name} {number(value, percent=percent)}"
    return text


def _seeds(claim: dict[str, Any]) -> str:
    of_table = claim["measured"] == "table" and claim["ours"] is not None
    return "table" if of_table else str(claim["seeds"] or "–")


def _verdict(claim: dict[str, Any]) -> str:
    """The verdict with its caution and note, and the verdicts under other readings."""
    others = "; ".join(
        f"{name}: {shown_number(found, percent=in_percent(claim))}{_other_seeds(found, claim)}, {found['verdict']}"
        for name, found in list(claim.get("readings", {}).items())[1:]
        if found["ours"] is not None
    )
    return " ".join(
        filter(
            None,
            (f"**{claim['verdict']}**{_caution(claim)}", claim["note"], f"Otherwise – {others}." if others else ""),
        )
    )


def _other_seeds(found: dict[str, Any], claim: dict[str, Any]) -> str:
    """The number of seeds of a reading, where it is not that of the claim."""
    seeds = found.get("seeds", claim["seeds"])
    return "" if seeds == claim["seeds"] else f" ({seeds} seeds)"


def _decided(claim: dict[str, Any]) -> str:
    return of_jobs(claim["jobs"], claim["jobs"] + claim["undecided"])


def is_goal(claim: dict[str, Any]) -> bool:
    """Whether a claim is our own rather than published."""
    return bool(claim["published"] == GOAL)


def _caution(claim: dict[str, Any]) -> str:
    if claim["measured"] == "table" or claim["ours"] is None:
        return ""
    if claim["seeds"] < FEWEST:
        return f" (preliminary: fewer than {FEWEST} seeds)"
    return "" if claim["seeds"] >= HEADLINE else f" ({claim['seeds']} seeds)"


def anchor(summary: dict[str, Any]) -> str:
    """The fragment that GitHub gives to the heading of an experiment."""
    return "".join(sign for sign in summary["name"].lower() if sign.isalnum() or sign in "-_")


def _counts_of(summary: dict[str, Any]) -> str:
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
