"""A configuration with one fast and several slow runs: every answer names the configuration with the best median, and its median run."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from dashboards import dashboard
from lynceus.analysis.answer import answer
from lynceus.analysis.documents.insight import insight_document
from lynceus.analysis.documents.json import to_json
from lynceus.analysis.documents.study import study_document
from lynceus.analysis.overview import overview
from lynceus.analysis.progress import progress
from lynceus.analysis.whatif import unchanged, whatifs
from lynceus.cli.app import main
from lynceus.jobfile.prepared_study import prepare_file
from lynceus.library.open_study import OpenStudy, create_or_open
from lynceus.library.studies import studies_document
from lynceus.library.study_context import study_context
from lynceus.problem.units import format_money
from lynceus.reports.page import report_documents
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Outcome

JOB = """\
name: noisy
run: "true"
space: {vm: [lucky, steady, stopped]}
price: 36.0
constraints: ["runtime <= 10m"]
budget: {cost: 100 USD}
policy: sweep
trial: {timeout: none}
baseline: {vm: lucky}
"""
RUNS = [
    (0, End.FINISHED, 10.0),  # the fastest run of all
    (1, End.FINISHED, 40.0),
    (0, End.FINISHED, 80.0),
    (1, End.FINISHED, 30.0),
    (2, End.FINISHED, 15.0),
    (0, End.FINISHED, 90.0),
    (2, End.TIMEOUT, 20.0),  # its median run did not finish
    (1, End.FINISHED, 35.0),  # the median run of the best configuration
]
BEST_TRIAL, BEST_VALUE = 7, 0.35


@pytest.fixture
def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenStudy:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(JOB)
    opened = create_or_open(prepare_file("job.yaml"), f"sqlite:///{tmp_path}/lynceus.db")
    for number, (row, end, seconds) in enumerate(RUNS):
        order = Order(number, row, 600.0, 6.0, Plan(row, why="a test"))
        opened.study.journal.ordered(order, {})
        opened.study.runs.settle(order, Outcome(end, seconds, 0.01 * seconds))
    return opened


def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    monkeypatch.setattr(sys, "argv", ["lynceus", *arguments, "-o", "json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return json.loads(capsys.readouterr().out)


def best_of(line: dict[str, Any]) -> tuple[object, int, float]:
    return line["best_params"]["vm"], line["best_trial"], round(line["best_value"], 9)


def answer_of(document: dict[str, Any]) -> tuple[object, int, float]:
    return document["params"]["vm"], document["trial"], round(document["value"], 9)


def test_every_answer_names_the_same_configuration_and_trial(
    one: OpenStudy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted, subject = ("steady", BEST_TRIAL, BEST_VALUE), study_context(one)
    (status,) = command(monkeypatch, capsys, "status")
    page, report = study_document(subject), report_documents(subject)
    assert best_of(status) == wanted
    assert best_of(command(monkeypatch, capsys, "status", "noisy")) == wanted
    assert best_of(to_json(overview(subject))) == wanted
    assert best_of(page["head"]) == wanted
    assert best_of(report["study"]["head"]) == wanted
    assert best_of(studies_document(one.storage)["studies"][0]) == wanted
    assert page["trials"]["best_trial"][-1] == BEST_TRIAL
    assert page["trials"]["best_value"][-1] == BEST_VALUE
    best = command(monkeypatch, capsys, "best")
    assert answer_of(best) == wanted
    assert best == to_json(answer(subject)) == insight_document(subject)["answer"] == report["insight"]["answer"]
    measured = whatifs(subject, [unchanged(one.study.problem)]).answers[0].measured
    assert measured is not None
    assert (measured.params["vm"], measured.runtime_s) == ("steady", 35.0)
    card = re.sub(r"<[^>]+>", " ", one.study._repr_html_())
    assert f"best: vm=steady · {format_money(BEST_VALUE)}" in card
    assert (one.study.best_params["vm"], one.study.best_trial.number) == ("steady", BEST_TRIAL)


def test_the_api_names_it_too(one: OpenStudy, tmp_path: Path) -> None:
    with dashboard(one.storage.url, tmp_path) as server:
        study, best = server.get("studies/noisy").json, server.get("studies/noisy/best").json
        (line,) = server.get("studies").json["studies"]
    assert best_of(study) == best_of(line) == answer_of(best) == ("steady", BEST_TRIAL, BEST_VALUE)
    assert best == to_json(answer(study_context(one)))


def test_the_saving_is_that_of_the_median_runs(one: OpenStudy) -> None:
    subject = study_context(one)
    found = answer(subject)
    assert found is not None
    assert found.baseline_usd == pytest.approx(0.8)
    assert overview(subject).saving == pytest.approx(found.saving) == pytest.approx(1 - 0.35 / 0.8)


def test_a_repeated_run_can_cost_the_incumbent_its_place(one: OpenStudy) -> None:
    points = progress(one.study.problem, one.study.observations)
    assert [point.best_trial for point in points] == [0, 0, 1, 1, 4, 4, 1, BEST_TRIAL]
