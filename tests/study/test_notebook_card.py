"""The HTML card of a study in a notebook: it shows the values of the study and escapes all text."""

from __future__ import annotations

from html.parser import HTMLParser

import lynceus
from lynceus.problem.units import format_money
from lynceus.study.study import Study


class ParsedCard(HTMLParser):
    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + " "


def study_of(names: tuple[str, ...] = ("small", "large"), name: str = "nightly") -> Study:
    space = lynceus.Space.build([lynceus.Categorical("vm", names)], price=0.36)
    return lynceus.create_study(
        space=space, constraints=["runtime <= 10m"], budget="$1", policy="sweep", study_name=name
    )


def test_card_of_a_study_without_trials() -> None:
    card = ParsedCard(study_of()._repr_html_())
    assert "$0 spent of $1.00 · 0 trials, 0 open" in card.text
    assert "no trial has kept every constraint yet" in card.text
    assert not {"svg", "table"} & set(card.tags)


def test_card_shows_cost_best_trial_and_trial_table() -> None:
    study = study_of()
    for runtime in (500.0, 400.0):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, runtime=runtime)
    assert study.ask() is None
    card = ParsedCard(study._repr_html_())
    assert card.open == []
    assert f"best: vm={study.best_params['vm']} · {format_money(study.best_value)}" in card.text
    assert f"{format_money(study.spent_usd)} spent of $1.00 · 2 trials, 0 open" in card.text
    assert f"over: {study.reason}" in card.text
    assert card.tags.count("tr") == 3
    assert "svg" in card.tags


def test_names_and_values_are_escaped() -> None:
    plain, hostile = study_of(), study_of(("<script>alert(1)</script>", "'\"><img src=x>"), "<b>bold</b>")
    for study in (plain, hostile):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, runtime=400.0, state="FAIL", detail="<i>late</i>")
    card = ParsedCard(hostile._repr_html_())
    assert card.tags == ParsedCard(plain._repr_html_()).tags
    assert "<b>bold</b>" in card.text
    assert "<script>alert(1)</script>" in card.text
