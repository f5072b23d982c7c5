"""Documents say what the study says: every number is compared with the journal or with the functions of the command line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import lynceus
from lynceus.analysis.answer import answer
from lynceus.analysis.calibration import calibration
from lynceus.analysis.documents.comparison import comparison_document
from lynceus.analysis.documents.insight import explanation_document, insight_document
from lynceus.analysis.documents.json import to_json
from lynceus.analysis.documents.study import study_document
from lynceus.analysis.documents.trial import trial_document
from lynceus.analysis.explanation import NextStep, explain
from lynceus.analysis.overview import overview
from lynceus.analysis.pareto import cost_time_front
from lynceus.analysis.progress import progress
from lynceus.analysis.study_context import StudyContext
from lynceus.analysis.trial_rows import trial_rows
from lynceus.analysis.whatif import deadline_case, unchanged, whatifs
from lynceus.library.open_study import OpenStudy
from lynceus.library.studies import studies_document
from lynceus.library.study_context import study_context
from lynceus.library.trial_output import trial_output
from lynceus.storage.sql.storage import Storage
from lynceus.trial.order import Purpose
from lynceus.trial.outcome import End
from sample_studies import sample_study


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents")


@pytest.fixture(scope="module")
def one(folder: Path) -> OpenStudy:
    """A study with finished, stopped and failed trials, and one that is open."""
    made = sample_study(folder, "nightly", 18)
    trial = made.study.ask()
    assert trial is not None
    made.study.runs.launched(trial.number, str(folder / "run"))
    return made


@pytest.fixture(scope="module")
def subject(one: OpenStudy) -> StudyContext:
    return study_context(one)


def rows(document: dict[str, Any], parameters: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Columns turned back into trials."""
    columns = document["trials"]
    found = []
    for place, number in enumerate(columns["number"]):
        codes = {each["name"]: (columns["params"][each["name"]][place], each["values"]) for each in parameters}
        found.append(
            {
                "number": number,
                "params": {name: values[code] for name, (code, values) in codes.items() if code >= 0},
                "state": ["COMPLETE", "TIMEOUT", "FAIL"][columns["state"][place]],
                "runtime_s": columns["runtime_s"][place],
                "charged_usd": columns["charged_usd"][place],
                "cost_usd": columns["cost_usd"][place],
                "keeps_constraints": None if columns["keeps"][place] is None else bool(columns["keeps"][place]),
                "why": columns["whys"][columns["why"][place]],
                "detail": columns["details"].get(str(place), ""),
                "reason": columns["reasons"].get(str(place)),
                "metrics": {
                    name: values[place] for name, values in columns["metrics"].items() if values[place] is not None
                },
            }
        )
    return found


def test_columns_have_every_settled_trial(subject: StudyContext) -> None:
    study = subject.study
    document = study_document(subject)
    shown = {row["number"]: row for row in rows(document, document["space"]["parameters"])}
    assert set(End) == {seen.outcome.end for seen in study.observations}, "the study should have all kinds"
    for wanted in to_json(trial_rows(study.problem, study.observations)):
        row = shown.pop(wanted["number"])
        for name in ("params", "state", "keeps_constraints", "why", "detail", "reason"):
            assert row[name] == wanted[name], name
        for name in ("runtime_s", "charged_usd", "cost_usd"):
            exact = wanted[name]
            assert row[name] == (None if exact is None else pytest.approx(exact, rel=1e-8)), name
        assert row["metrics"] == pytest.approx(wanted["metrics"], rel=1e-8)
    assert not shown


@pytest.mark.parametrize("since", [0, 1, 7, 17, 18])
def test_parts_make_the_whole(subject: StudyContext, since: int) -> None:
    whole, part = study_document(subject), study_document(subject, since)
    parameters = whole["space"]["parameters"]
    assert part["trials"]["first"] == since
    assert ("space" in part) == (since == 0)
    assert rows(whole, parameters)[since:] == rows(part, parameters)
    assert {key: part[key] for key in ("head", "open", "settled", "identity")} == {
        key: whole[key] for key in ("head", "open", "settled", "identity")
    }


def test_a_position_beyond_the_end_gets_all_trials(subject: StudyContext) -> None:
    document = study_document(subject, 19)
    assert document["trials"]["first"] == 0
    assert "space" in document


def test_the_head_is_the_overview_of_the_study(subject: StudyContext) -> None:
    study, head = subject.study, study_document(subject)["head"]
    assert head == to_json(overview(subject))
    assert head["spent_usd"] == study.spent_usd
    assert head["reserved_usd"] == study.reserved_usd
    assert head["budget_usd"] == study.budget_usd
    assert head["best_value"] == pytest.approx(study.best_value)
    assert head["best_trial"] == study.best_trial.number
    assert head["state"] == "RUNNING"
    assert head["deadline_s"] == 2700.0
    assert head["stopped_early"] + head["failed"] < head["trials"] == len(study.observations)


def test_open_trials_have_their_timeout(subject: StudyContext) -> None:
    [run], [shown] = subject.study.record.open_runs, study_document(subject)["open"]
    assert shown["number"] == run.order.number
    assert shown["params"] == subject.study.problem.space.point(run.order.row)
    assert shown["timeout_s"] == run.order.timeout_s
    assert shown["launched_s"] == run.launched_s
    assert shown["reserved_usd"] == run.order.reserved_usd
    assert shown["cancel_requested"] is False
    assert shown["plan"]["low_s"] < shown["plan"]["middle_s"] < shown["plan"]["high_s"]


def test_predictions_are_those_of_the_calibration(subject: StudyContext) -> None:
    columns = study_document(subject)["trials"]
    judged = calibration(subject.study.problem, subject.study.observations).predictions
    assert len(judged) > 3
    places = {number: place for place, number in enumerate(columns["number"])}
    for wanted in judged:
        place = places[wanted.number]
        shown = [columns[name][place] for name in ("low_s", "middle_s", "high_s")]
        assert shown == pytest.approx([wanted.low_s, wanted.middle_s, wanted.high_s], rel=1e-8)
    assert sum(value is not None for value in columns["middle_s"]) == len(judged)


def test_columns_have_the_incumbent_after_each_trial(subject: StudyContext) -> None:
    columns, study = study_document(subject)["trials"], subject.study
    points = progress(study.problem, study.observations)
    assert columns["best_trial"] == [point.best_trial for point in points]
    values = [None if math.isnan(point.best_value) else point.best_value for point in points]
    assert columns["best_value"] == [None if value is None else pytest.approx(value, rel=1e-8) for value in values]


def test_the_insight_is_the_answer_and_the_explanation(subject: StudyContext) -> None:
    document = insight_document(subject)
    assert document["answer"] == to_json(answer(subject))
    params = document["answer"]["params"]
    values = f"LYNCEUS_PARAM_MACHINE={params['machine']} LYNCEUS_PARAM_CODEC={params['codec']}"
    assert document["answer"]["command"].startswith(f"{values} spark-submit --num-executors")
    explanation = to_json(explain(subject))
    assert {name: document[name] for name in explanation} == explanation
    assert explanation_document(subject) == explanation | {
        "calibration": to_json(calibration(subject.study.problem, subject.study.observations))
    }
    assert len(document["candidates"]) == 5
    assert document["approximate"] is None


def test_the_next_trial_is_the_one_that_ask_returns(folder: Path) -> None:
    """Also with a queue, while trials are open, and when the study has ended."""
    made = sample_study(folder, "asked", 9)
    for nodes in (14, 16):
        made.study.enqueue_trial({**made.study.best_params, "nodes": nodes})
    asked: list[Purpose] = []
    for turn in range(6):
        step, trial = explain(study_context(made)).next, made.study.ask()
        if trial is None:
            assert (step.trial, step.reason) == (None, made.study.reason)
        else:
            assert step.trial is not None
            assert (step.trial.number, step.trial.params) == (trial.number, trial.params)
            assert (step.trial.timeout_s, step.trial.plan.why) == (trial.timeout, trial.why)
            asked.append(made.study.pending[-1].plan.purpose)
            if turn != 3:
                made.study.tell(trial, runtime=200.0, accuracy=0.95)
    made.study.stop()
    assert explain(study_context(made)).next == NextStep(None, "stopped by the user")
    assert asked[:2] == [Purpose.QUEUE, Purpose.QUEUE]
    assert Purpose.SEARCH in asked


def test_another_deadline_gives_another_answer(subject: StudyContext) -> None:
    problem = subject.study.problem
    found = whatifs(subject, [unchanged(problem), deadline_case(problem, 600.0), deadline_case(problem, 3600.0)])
    as_it_is, tight, loose = (one.measured for one in found.answers)
    assert loose is not None
    assert tight != loose
    assert loose.runtime_s <= 3600.0
    assert loose.cost_usd == pytest.approx(subject.study.best_value, rel=0.2)
    best = answer(subject)
    assert best is not None
    assert as_it_is is not None
    assert (as_it_is.params, as_it_is.value) == (best.params, best.value)


def test_a_trial_is_what_the_storage_wrote_down(one: OpenStudy, subject: StudyContext) -> None:
    for number in range(one.study.observations[-1].order.number + 1):
        [record] = one.storage.trials(one.name, number)
        shown = trial_document(subject, record, {"stdout": "x" * 300_000, "stderr": ""})
        assert shown["number"] == number
        assert shown["outcome"]["charged_usd"] == record.outcome.charged_usd  # type: ignore[union-attr]
        assert shown["outcome"]["runtime_s"] == record.outcome.seconds  # type: ignore[union-attr]
        assert shown["output"]["stdout"]["left_out"] == 100_000
        if record.target is not None:
            assert shown["training_target"]["seconds"] == record.target.seconds
    assert trial_output(one, 0) is None, "trials of a sample study have no output"


def test_an_open_trial_has_no_outcome(one: OpenStudy, subject: StudyContext) -> None:
    [record] = one.storage.trials(one.name, one.study.pending[0].number)
    shown = trial_document(subject, record)
    assert (shown["state"], shown["outcome"], shown["training_target"], shown["output"]) == (
        "RUNNING",
        None,
        None,
        None,
    )


def test_two_studies_side_by_side(folder: Path, one: OpenStudy, subject: StudyContext) -> None:
    other = study_context(sample_study(folder, "hourly", 12, seed=3))
    document = comparison_document(subject, other)
    for side, each in zip(document["sides"], (subject, other), strict=True):
        every = progress(each.study.problem, each.study.observations)
        last = every[-1]
        assert side["curve"][-1] == pytest.approx([last.spent_usd, last.best_value, last.best_trial], rel=1e-8)
        assert side["head"]["spent_usd"] == each.study.spent_usd
    assert document["same_objective"]
    assert [row["name"] for row in document["parameters"]] == ["machine", "nodes", "memory", "partitions", "codec"]
    for row in document["parameters"]:
        assert row["differs"] == (row["values"][0] != row["values"][1])


def test_all_studies_in_a_line_each(one: OpenStudy, subject: StudyContext) -> None:
    listed = studies_document(one.storage)["studies"]
    [line] = [each for each in listed if each["name"] == "nightly"]
    assert line["spent_usd"] == pytest.approx(subject.study.spent_usd)
    assert line["best_cost_usd"] == pytest.approx(subject.study.best_value)
    saving = insight_document(subject)["answer"]["saving"]
    assert (line["saving"], line["saving_measured"]) == (pytest.approx(saving), False)


def test_a_study_without_a_job_file_is_listed_with_what_is_known(tmp_path: Path) -> None:
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage:
        storage.create_study("from-python", document={}, fingerprint="x", policy={"name": "sweep"})
        [line] = studies_document(storage)["studies"]
    assert (line["name"], line["state"], line["trials"], line["best_value"]) == ("from-python", "RUNNING", 0, None)
    assert line["note"]


def test_every_document_is_json(one: OpenStudy, subject: StudyContext) -> None:
    [record] = one.storage.trials(one.name, 0)
    for document in (
        study_document(subject),
        insight_document(subject),
        to_json(whatifs(subject, [unchanged(subject.study.problem)])),
        explanation_document(subject),
        trial_document(subject, record),
        comparison_document(subject, subject),
        studies_document(one.storage),
    ):
        assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_a_study_in_memory_can_be_shown() -> None:
    space = lynceus.Space.build([lynceus.Integer("n", 1, 4)], price="n * 0.1")
    study = lynceus.create_study(space=space, policy="sweep")
    document = study_document(StudyContext(study))
    assert document["head"]["budget_usd"] is None
    assert document["head"]["best_value"] is None
    assert insight_document(StudyContext(study))["answer"] is None
    trial = study.ask()
    assert trial is not None
    study.tell(trial, runtime=90.0)
    assert study_document(StudyContext(study))["head"]["best_value"] == pytest.approx(study.best_value)
    assert math.isclose(insight_document(StudyContext(study))["answer"]["cost_usd"], study.best_value)


def test_the_front_of_the_command_line_is_the_one_of_the_columns(one: OpenStudy, subject: StudyContext) -> None:
    """The page computes the front from `other`, times and costs; these columns must give the same front here."""
    wanted = [point.number for point in cost_time_front(one.study.problem, subject.known)]
    columns = study_document(subject)["trials"]
    runs = sorted(
        (columns["runtime_s"][place], columns["cost_usd"][place], number)
        for place, number in enumerate(columns["number"])
        if columns["other"][place]
    )
    front: list[tuple[float, float, int]] = []
    for run in runs:
        if not front or run[1] < front[-1][1]:
            front.append(run)
    assert [number for _, _, number in front] == wanted


def test_a_study_from_python_is_listed_with_its_best(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    space = lynceus.Space.build([lynceus.Integer("n", 1, 4)], price="n * 0.1")
    study = lynceus.create_study(space=space, policy="sweep", storage=url, study_name="from-python")
    trial = study.ask()
    assert trial is not None
    study.tell(trial, runtime=90.0)
    with Storage(url) as storage:
        [line] = studies_document(storage)["studies"]
    assert line["best_value"] == pytest.approx(study.best_value)
    assert (line["saving"], line["note"]) == (None, None)


def test_further_rows_of_a_trial_do_not_count_against_the_trials_of_the_budget() -> None:
    space = lynceus.Space.build([lynceus.Ordinal("clients", [1, 2, 4])], price=1.0)
    study = lynceus.create_study(
        space=space, objective="maximize throughput", budget=lynceus.Budget(trials=2), policy="sweep"
    )
    trial = study.ask()
    assert trial is not None
    further = {f"throughput@clients={value}": 5.0 for value in (1, 2, 4) if value != trial.params["clients"]}
    study.tell(trial, runtime=10.0, metrics={"throughput": 4.0, **further})
    head = study_document(StudyContext(study))["head"]
    assert (head["trials"], head["counted_trials"], head["budget_trials"]) == (3, 1, 2)
