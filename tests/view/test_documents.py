"""Documents say what the study says: every number is compared with the ledger or with the functions that the command line uses."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from lynceus.cli.opened import Opened
from lynceus.history import End
from lynceus.insight import calibration, importance, pareto_front, steps, verdict
from lynceus.insight.records import trial_records
from lynceus.ledger.sql import Storage
from lynceus.view import (
    Subject,
    compare_view,
    insight_view,
    studies_view,
    study_view,
    subject_of,
    trial_output,
    trial_view,
    whatif_view,
)
from made_up import made_up


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("view")


@pytest.fixture(scope="module")
def one(folder: Path) -> Opened:
    """A study with finished, stopped and failed trials, and one that is open."""
    made = made_up(folder, "nightly", 18)
    trial = made.study.ask()
    assert trial is not None
    made.study.launched(trial.number, str(folder / "run"))
    return made


@pytest.fixture(scope="module")
def subject(one: Opened) -> Subject:
    return subject_of(one)


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
                "keeps_limits": None if columns["keeps"][place] is None else bool(columns["keeps"][place]),
                "why": columns["whys"][columns["why"][place]],
                "detail": columns["details"].get(str(place), ""),
                "reason": columns["reasons"].get(str(place)),
                "metrics": {
                    name: values[place] for name, values in columns["metrics"].items() if values[place] is not None
                },
            }
        )
    return found


def test_columns_hold_every_settled_trial(subject: Subject) -> None:
    study = subject.study
    document = study_view(subject)
    shown = {row["number"]: row for row in rows(document, document["space"]["parameters"])}
    assert set(End) == {seen.outcome.end for seen in study.history}, "the study should have all kinds"
    for wanted in trial_records(study.problem, study.history):
        row = shown.pop(wanted["number"])
        for name in ("params", "state", "keeps_limits", "why", "detail", "reason"):
            assert row[name] == wanted[name], name
        for name in ("runtime_s", "charged_usd", "cost_usd"):
            exact = wanted[name]
            assert row[name] == (None if exact is None else pytest.approx(exact, rel=1e-8)), name
        assert row["metrics"] == pytest.approx(wanted["metrics"], rel=1e-8)
    assert not shown


@pytest.mark.parametrize("since", [0, 1, 7, 17, 18])
def test_parts_make_the_whole(subject: Subject, since: int) -> None:
    whole, part = study_view(subject), study_view(subject, since)
    parameters = whole["space"]["parameters"]
    assert part["trials"]["first"] == since
    assert ("space" in part) == (since == 0)
    assert rows(whole, parameters)[since:] == rows(part, parameters)
    assert {key: part[key] for key in ("head", "open", "settled", "identity")} == {
        key: whole[key] for key in ("head", "open", "settled", "identity")
    }


def test_who_knows_more_than_there_is_gets_everything(subject: Subject) -> None:
    document = study_view(subject, 19)
    assert document["trials"]["first"] == 0
    assert "space" in document


def test_the_head_is_the_study(subject: Subject) -> None:
    study, head = subject.study, study_view(subject)["head"]
    assert head["spent_usd"] == study.spent_usd
    assert head["reserved_usd"] == study.reserved_usd
    assert head["budget_usd"] == study.budget_usd
    assert head["best"] == pytest.approx(study.best_value)
    assert head["best_trial"] == steps(study.problem, study.history)[-1].incumbent
    assert head["state"] == "RUNNING"
    assert head["deadline_s"] == 2700.0
    assert head["stopped_early"] + head["failed"] < head["trials"] == len(study.history)


def test_open_trials_tell_when_they_are_stopped(subject: Subject) -> None:
    [run], [shown] = subject.study.open_runs, study_view(subject)["open"]
    assert shown["number"] == run.order.number
    assert shown["params"] == subject.study.problem.space.point(run.order.row)
    assert shown["cap_s"] == run.order.cap_s
    assert shown["launched_s"] == run.launched_s
    assert shown["reserved_usd"] == run.order.reserved_usd
    assert shown["unwanted"] is False
    assert shown["plan"]["low_s"] < shown["plan"]["middle_s"] < shown["plan"]["high_s"]


def test_predictions_are_those_of_the_calibration(subject: Subject) -> None:
    columns = study_view(subject)["trials"]
    judged = calibration(subject.study.problem, subject.study.history).predictions
    assert len(judged) > 3
    places = {number: place for place, number in enumerate(columns["number"])}
    for wanted in judged:
        place = places[wanted.number]
        shown = [columns[name][place] for name in ("low_s", "middle_s", "high_s")]
        assert shown == pytest.approx([wanted.low_s, wanted.middle_s, wanted.high_s], rel=1e-8)
    assert sum(value is not None for value in columns["middle_s"]) == len(judged)


def test_insight_is_what_the_command_line_concludes(one: Opened, subject: Subject) -> None:
    study, document = subject.study, insight_view(subject)
    found = verdict(
        study.problem, study.policy, one.known, all_runs=study.history, baseline=one.baseline, seed=study.seed
    )
    assert found is not None
    assert document["verdict"]["params"] == dict(found.recommendation.params)
    assert document["verdict"]["cost_usd"] == found.recommendation.cost_usd
    assert document["verdict"]["saving"] == found.saving
    assert document["verdict"]["command"].startswith("spark-submit --num-executors")
    matter = importance(study.problem, study.policy, one.known, seed=study.seed)
    assert [each["parameter"] for each in document["importance"]] == [each.parameter for each in matter]
    assert document["next"]["plan"]["why"]
    assert len(document["candidates"]) == 5
    assert document["approximate"] is None


def test_another_deadline_gives_another_answer(subject: Subject) -> None:
    tight, loose = whatif_view(subject, 600.0), whatif_view(subject, 3600.0)
    assert tight["measured"] != loose["measured"]
    assert loose["measured"]["seconds"] <= 3600.0
    assert loose["measured"]["cost_usd"] == pytest.approx(subject.study.best_value)


def test_a_trial_is_what_the_storage_wrote_down(one: Opened, subject: Subject) -> None:
    for number in range(one.study.history[-1].order.number + 1):
        [record] = one.storage.trials(one.name, number)
        shown = trial_view(subject, record, {"stdout": "x" * 300_000, "stderr": ""})
        assert shown["number"] == number
        assert shown["outcome"]["charged_usd"] == record.outcome.charged_usd  # type: ignore[union-attr]
        assert shown["outcome"]["runtime_s"] == record.outcome.seconds  # type: ignore[union-attr]
        assert shown["output"]["stdout"]["left_out"] == 100_000
        if record.told is not None:
            assert shown["told"]["seconds"] == record.told.seconds
    assert trial_output(one, 0) is None, "nothing of a made-up job is on this machine"


def test_an_open_trial_has_no_outcome(one: Opened, subject: Subject) -> None:
    [record] = one.storage.trials(one.name, one.study.pending[0].number)
    shown = trial_view(subject, record)
    assert (shown["state"], shown["outcome"], shown["told"], shown["output"]) == ("RUNNING", None, None, None)


def test_two_studies_side_by_side(folder: Path, one: Opened, subject: Subject) -> None:
    other = subject_of(made_up(folder, "hourly", 12, seed=3))
    document = compare_view(subject, other)
    for side, each in zip(document["sides"], (subject, other), strict=True):
        every = steps(each.study.problem, each.study.history)
        assert side["curve"][-1] == pytest.approx([every[-1].spent_usd, every[-1].best], rel=1e-8)
        assert side["head"]["spent_usd"] == each.study.spent_usd
    assert document["same_goal"]
    assert [row["name"] for row in document["parameters"]] == ["machine", "nodes", "memory", "partitions", "codec"]
    for row in document["parameters"]:
        assert row["differs"] == (row["values"][0] != row["values"][1])


def test_all_studies_in_a_line_each(one: Opened, subject: Subject) -> None:
    listed = studies_view(one.storage)["studies"]
    [line] = [each for each in listed if each["name"] == "nightly"]
    assert line["spent_usd"] == pytest.approx(subject.study.spent_usd)
    assert line["best_cost_usd"] == pytest.approx(subject.study.best_value)
    verdict_saving = insight_view(subject)["verdict"]["saving"]
    assert (line["saving"], line["saving_measured"]) == (pytest.approx(verdict_saving), False)


def test_a_study_without_a_job_file_is_listed_with_what_is_known(tmp_path: Path) -> None:
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage:
        storage.create_study("from-python", document={}, fingerprint="x", policy={"name": "sweep"})
        [line] = studies_view(storage)["studies"]
    assert (line["name"], line["state"], line["trials"], line["best"]) == ("from-python", "RUNNING", 0, None)
    assert line["note"]


def test_every_document_is_json(one: Opened, subject: Subject) -> None:
    [record] = one.storage.trials(one.name, 0)
    for document in (
        study_view(subject),
        insight_view(subject),
        whatif_view(subject, 60.0),
        trial_view(subject, record),
        compare_view(subject, subject),
        studies_view(one.storage),
    ):
        assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_a_study_in_memory_can_be_shown() -> None:
    import lynceus

    space = lynceus.Space.build([lynceus.Integer("n", 1, 4)], price="n * 0.1")
    study = lynceus.create_study(space=space, policy="sweep")
    document = study_view(Subject(study))
    assert document["head"]["budget_usd"] is None
    assert document["head"]["best"] is None
    assert insight_view(Subject(study))["verdict"] is None
    trial = study.ask()
    assert trial is not None
    study.tell(trial, runtime=90.0)
    assert study_view(Subject(study))["head"]["best"] == pytest.approx(study.best_value)
    assert math.isclose(insight_view(Subject(study))["verdict"]["cost_usd"], study.best_value)


def test_the_front_of_the_command_line_is_the_one_of_the_columns(one: Opened, subject: Subject) -> None:
    """The page computes the front from `other`, times and costs; the same three columns must give the same front here."""
    from lynceus.insight import finished_points

    problem = one.study.problem
    free = problem.with_limits([limit for limit in problem.limits if limit.metric != "time"])
    wanted = [point.number for point in pareto_front(p for p in finished_points(free, one.known) if p.keeps_limits)]
    columns = study_view(subject)["trials"]
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
    import lynceus

    url = f"sqlite:///{tmp_path}/s.db"
    space = lynceus.Space.build([lynceus.Integer("n", 1, 4)], price="n * 0.1")
    study = lynceus.create_study(space=space, policy="sweep", storage=url, study_name="from-python")
    trial = study.ask()
    assert trial is not None
    study.tell(trial, runtime=90.0)
    with Storage(url) as storage:
        [line] = studies_view(storage)["studies"]
    assert line["best"] == pytest.approx(study.best_value)
    assert (line["saving"], line["note"]) == (None, None)
