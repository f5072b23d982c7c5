"""The results pages are what the summaries in the repository give, and stay readable."""

from __future__ import annotations

import math
import re

import pytest

from lynceus_lab.changes_page import changes_page, read_edition
from lynceus_lab.experiment import load_experiment, shipped_experiments
from lynceus_lab.report import read_summaries
from lynceus_lab.results_page import beyond_page, is_goal, results_page
from readers import ROOT

SUMMARIES = read_summaries(ROOT / "results", list(shipped_experiments()))
EDITION = read_edition(ROOT / "results")
MOST_LINES = 400


def what_changed(summaries) -> str:
    return changes_page(summaries, EDITION)


@pytest.mark.parametrize(
    ("page", "made"),
    [("results.md", results_page), ("results-beyond.md", beyond_page), ("results-changes.md", what_changed)],
)
def test_a_page_is_made_from_the_summaries(page, made) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert text == made(SUMMARIES), "run 'lynceus lab report --page docs/results.md'"
    assert len(text.splitlines()) <= MOST_LINES


def test_every_claim_of_the_last_edition_is_still_there_and_every_change_has_its_reason() -> None:
    claims = {(summary["name"], claim["id"]) for summary in SUMMARIES for claim in summary["claims"]}
    assert set(EDITION) <= claims
    rows = [line for line in what_changed(SUMMARIES).splitlines() if line.startswith("| [")]
    assert len(rows) > len(claims - set(EDITION)) > 0
    assert not [line for line in rows if line.endswith("|  |")]


@pytest.mark.parametrize("summary", SUMMARIES, ids=lambda one: one["name"])
def test_an_experiment_of_a_paper_says_its_set_up(summary) -> None:
    """Experiments of our own have no paper to be compared with."""
    if any(not is_goal(claim) for claim in summary["claims"]):
        aspects = load_experiment(summary["name"]).spec.setup
        needed = {"metric"} if not summary["table"] else {"metric", "seeds"}
        assert needed <= set(aspects)
        assert [aspect for aspect, _, _ in summary["setup"]] == list(aspects), "the summary is older than the file"


FABULINUS = {
    "**Fabulinus**": "Fabulinus",
    "EIc on the full data": "EIc",
    "EI on the full data": "EI",
    "the same without checks": "Fabulinus, no checks",
    "Fabulinus as published": "Fabulinus 2019",
}
"""Rows of docs/subsampling.md that are called something else in the experiment."""


@pytest.mark.parametrize(("name", "rows"), [("mendes19-fig4-5", 6), ("fabulinus-parts", 13)])
def test_the_tables_of_fabulinus_are_those_of_the_summary(name, rows) -> None:
    """First, settled, violations and the spend of all runs, job after job."""
    (summary,) = (one for one in SUMMARIES if one["name"] == name)
    text = (ROOT / "docs" / "subsampling.md").read_text(encoding="utf-8").split(f"`lynceus lab run {name}`")[1]
    table = re.findall(r"^\| (.+) \|$", text.split("\n\n")[1], re.MULTILINE)[1:]
    assert len(table) == rows
    for line in table:
        label, seeds, *cells = line.split(" | ")
        found = [one for one in summary["table"] if one["policy"] == FABULINUS.get(label, label)]
        assert [str(one["seeds"]) for one in found] == [seeds] * len(summary["jobs"])
        for one, (first, settled, broken, spent) in zip(found, zip(*[iter(cells)] * 4, strict=True), strict=True):
            (level,) = (level for level in one["levels"] if level["cno"] == 1.0101)
            assert agrees(first, level["p50"][0])
            reached = one["seeds"] - level["unreached"]
            assert re.findall(r"\((\d+)", first) == ([str(reached)] if level["unreached"] else [])
            assert agrees(settled, bar(summary, "Money from which", one))
            assert broken == "–" or agrees(broken, 100 * bar(summary, "Share of recommendations", one))
            assert agrees(spent, one["spent"][0])


def bar(summary, title: str, row) -> float:
    """What a figure shows of a policy on a job."""
    (figure,) = (one for one in summary["curves"] if one["title"].startswith(title))
    (panel,) = (one for one in figure["panels"] if one["title"] == row["job"])
    (line,) = (one for one in panel["lines"] if one["label"] == row["policy"])
    return float(line["y"][0])


def agrees(cell: str, value: float | str) -> bool:
    """Whether a cell is the value, rounded to its digits."""
    if cell.startswith("not in most seeds"):
        return math.isinf(float(value))
    (number,) = re.findall(r"^\$?([0-9.]+)%?(?: \(|$)", cell)
    digits = len(number.partition(".")[2])
    return abs(float(number) - float(value)) <= 0.501 * 10**-digits
