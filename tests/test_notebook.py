"""A study in a notebook: what it shows is what the study holds, and nothing in it becomes markup."""

from __future__ import annotations

from html.parser import HTMLParser

import lynceus
from lynceus.study import Study
from lynceus.units import format_money


class Texts(HTMLParser):
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


def test_a_study_that_has_not_begun() -> None:
    shown = Texts(study_of()._repr_html_())
    assert "$0 spent of $1.00 · 0 trials, 0 open" in shown.text
    assert "no trial has kept every limit yet" in shown.text
    assert not {"svg", "table"} & set(shown.tags)


def test_money_best_and_trials_are_those_of_the_study() -> None:
    study = study_of()
    for runtime in (500.0, 400.0):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, runtime=runtime)
    assert study.ask() is None
    shown = Texts(study._repr_html_())
    assert shown.open == []
    assert f"best: vm={study.best_params['vm']} · {format_money(study.best_value)}" in shown.text
    assert f"{format_money(study.spent_usd)} spent of $1.00 · 2 trials, 0 open" in shown.text
    assert f"over: {study.reason}" in shown.text
    assert shown.tags.count("tr") == 3
    assert "svg" in shown.tags


def test_names_and_values_stay_text() -> None:
    plain, evil = study_of(), study_of(("<script>alert(1)</script>", "'\"><img src=x>"), "<b>bold</b>")
    for study in (plain, evil):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, runtime=400.0, state="FAIL", detail="<i>late</i>")
    shown = Texts(evil._repr_html_())
    assert shown.tags == Texts(plain._repr_html_()).tags
    assert "<b>bold</b>" in shown.text
    assert "<script>alert(1)</script>" in shown.text
