"""A recurring job: what is adopted, recorded once, tried, returned from, rolled back; each decision carried out as it was made."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import lynceus
from lynceus.errors import InputError
from lynceus.library.recurring import steering
from lynceus.library.recurring.host_state import HostRun
from lynceus.library.recurring.recurring_job import RecurringJob, adopt_job
from lynceus.problem.problem import Problem
from lynceus.recurring.action import Action, ActionKind, Effect
from lynceus.recurring.record import Basis, JobRecord, ProductionRun
from lynceus.recurring.settings import Mode
from lynceus.storage.job_serialization import run_record
from lynceus.storage.sql.storage import Storage
from lynceus.trial.outcome import End, FailureReason
from sample_jobs import search

TWO = {"nodes": 2}
CANARY = Action(
    ActionKind.CANARY,
    "inputs have grown",
    TWO,
    timeout_s=900.0,
    reserved_usd=0.3,
    instead_usd=0.5,
    effect=Effect(800.0, 0.4, 0.01, 700.0, 0.5, 0.02),
    evidence={"triggers": [{"kind": "size"}], "late_chance": math.nan},
    basis=Basis(120e9, {1: 1.2}),
)


@pytest.fixture
def job(storage: Storage) -> RecurringJob:
    search(storage)
    job = adopt_job("nightly", source="search", params={"nodes": 4}, storage=storage, by="ana", reason="as until now")
    job.set(mode=Mode.APPLY, allowance_usd=20.0, by="ana")
    return job


@pytest.fixture
def decides(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Replace the decider by answers to its next questions; then it keeps what there is."""

    def script(*answers: Action) -> None:
        rest = list(answers)

        def next_action(problem: Problem, record: JobRecord, now_s: float, size: float | None = None) -> Action:
            return rest.pop(0) if rest else Action(ActionKind.KEEP, "nothing has changed")

        monkeypatch.setattr(steering, "next_action", next_action)

    return script


def kinds(job: RecurringJob) -> list[tuple[str, int | None]]:
    return [(one.kind, one.version) for one in job.history.changes]


def test_the_answer_of_a_study_is_adopted_with_its_evidence(storage: Storage) -> None:
    study = search(storage)
    job = adopt_job("nightly", source="search", storage=storage, by="ana")
    version = job.history.versions[0]
    assert version.params == study.best_params
    assert (version.by, version.reason, version.evidence["study"]) == ("ana", "the answer of study search", "search")
    assert version.expected["cost_usd"] == pytest.approx(study.best_value)
    assert len(version.basis.usd_per_hour) >= 2, "the prices that a later look is compared with"


def test_a_job_without_a_study_is_adopted_from_its_file(storage: Storage, tmp_path: Any) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: x\nrun: [echo, '${n}']\nspace: {n: [1, 2], m: [5]}\nprice: n\nbudget: 1\n")
    job = adopt_job("nightly", source=str(file), params=["n=2"], storage=storage)
    assert job.config().params == {"n": 2, "m": 5}
    assert job.record("10m", run_id="a")
    assert job.review().action.kind is ActionKind.KEEP
    adopt_job("nightly", params={"n": 1}, storage=storage, reason="smaller")
    assert [dict(one.params) for one in job.history.versions] == [{"n": 2, "m": 5}, {"n": 1, "m": 5}]


def test_parameters_that_are_not_given_stay_as_they_are(storage: Storage, tmp_path: Any) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: x\nrun: [echo, '${n}', '${m}']\nspace: {n: [1, 2], m: [5, 6]}\nprice: n\nbudget: 1\n")
    with pytest.raises(
        InputError, match=r"m is not given, .*: lynceus adopt nightly --from \S+ --param n=2 --param m=VALUE"
    ):
        adopt_job("nightly", source=str(file), params=["n=2"], storage=storage)
    job = adopt_job("nightly", source=str(file), params=["n=2", "m=6"], storage=storage)
    for _ in range(2):
        adopt_job("nightly", params=["n=1"], storage=storage)
    assert [dict(one.params) for one in job.history.versions] == [{"n": 2, "m": 6}, {"n": 1, "m": 6}]
    adopt_job("nightly", source=str(file), params={"n": 2}, storage=storage)
    assert job.config().params == {"n": 2, "m": 6}


def test_parameters_that_are_not_given_are_those_of_the_named_study(storage: Storage) -> None:
    space = lynceus.Space.build([lynceus.Ordinal("n", [1, 2]), lynceus.Ordinal("m", [5, 6])], price="n + m")
    study = lynceus.create_study(space=space, budget=9, study_name="grid", storage=storage)
    with pytest.raises(InputError, match="study 'grid': m is not given, and there is no configuration yet"):
        adopt_job("nightly", source="grid", params={"n": 2}, storage=storage)
    study.add_trials([({"n": n, "m": m}, 100 if m == 6 else 900, {}) for n in (1, 2) for m in (5, 6)])
    job = adopt_job("nightly", source="grid", params={"n": 2}, storage=storage)
    assert (study.best_params["m"], job.config().params) == (6, {"n": 2, "m": 6})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"source": "nosuch"},
            r"there is no study 'nosuch' .*known are: search, empty\); name a study or a job file with --from",
        ),
        ({"source": "search", "params": {"nodes": 3}}, r"study 'search': .*nodes"),
        (
            {"source": "search", "params": ["nodes"]},
            r"--param is 'nodes', but NAME=VALUE with one of the parameters nodes",
        ),
        ({"source": "empty"}, r"study 'empty' knows no configuration that meets its constraints"),
    ],
)
def test_what_cannot_be_adopted_is_refused(storage: Storage, given: dict[str, Any], message: str) -> None:
    search(storage)
    space = lynceus.Space.build([lynceus.Integer("n", 1, 2)], price="n")
    lynceus.create_study(space=space, budget=1, study_name="empty", storage=storage)
    with pytest.raises(InputError, match=message):
        adopt_job("nightly", storage=storage, **given)
    with pytest.raises(InputError, match="'nightly' is not in"):
        RecurringJob("nightly", storage).config()


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"runtime": None}, "running time is missing"),
        ({"runtime": "-3m"}, "runtime is '-3m', but an amount of at least 0"),
        ({"runtime": 0}, "runtime is 0, but a finished run takes time"),
        ({"runtime": "soon"}, "runtime is 'soon'"),
        ({"runtime": math.nan}, "runtime is nan"),
        ({"runtime": 1e-300}, "runtime is 1e-300, but a finished run takes time"),
        ({"runtime": 60, "input": 1e-320}, "input: size is '1e-320'; give an amount such as 120 GB"),
        ({"runtime": 60, "input": 10**400}, "input: size is '10*'; give an amount such as 120 GB"),
        ({"runtime": 60, "ended_s": 1e11}, "ended is 100000000000.0, which is more than a day ahead"),
        ({"runtime": 60, "cost": "-1"}, "cost is '-1', but an amount of at least 0"),
        ({"runtime": 60, "input": "-1 GB"}, "input: size is '-1 GB'; give an amount such as 120 GB"),
        ({"runtime": 60, "input": "many"}, "input: size is 'many'; give an amount such as 120 GB"),
        ({"runtime": 60, "state": "great"}, "state is 'great', but one of COMPLETE, TIMEOUT, FAIL"),
        ({"runtime": 60, "reason": "oom"}, "only a run with state FAIL has one"),
        ({"runtime": 60, "state": "FAIL", "reason": "luck"}, "reason is 'luck', but one of infra"),
        ({"runtime": 60, "version": 9}, "has no version 9; its versions are 1 to 1"),
    ],
)
def test_a_run_that_makes_no_sense_gets_one_sentence_and_is_not_stored(
    job: RecurringJob, told: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        job.record(told.pop("runtime"), run_id="a", **told)
    assert job.runs == ()


def test_a_run_is_priced_when_it_is_recorded(job: RecurringJob) -> None:
    job.record("30m", input="120 GB", run_id="a")
    job.record("30m", run_id="b", cost="$2.50", state="fail", reason="infra")
    first, second = job.runs
    assert (first.cost_usd, first.price_usd_per_hour, first.size) == (pytest.approx(1.2), pytest.approx(2.4), 120e9)
    assert (second.cost_usd, second.end, second.reason) == (2.5, End.FAILED, FailureReason.INFRA)


def test_a_canary_is_one_run_and_production_goes_on_without_it(job: RecurringJob, decides: Any) -> None:
    decides(CANARY, CANARY)
    tried = job.config(run_id="a", input="150 GB")
    assert (tried.canary, tried.version, tried.params, tried.timeout_s) == (True, 2, TWO, 900.0)
    assert job.config(run_id="a") == tried, "a scheduler that asks again gets the same answer"
    assert (job.config().version, job.config(run_id="b").version) == (1, 1), "others run what is in production"
    assert job.record(820.0, run_id="a", input="150 GB")
    run, change = job.runs[0], job.history.changes[-1]
    assert (run.canary, run.version, run.timeout_s, run.instead_usd) == (True, 2, 900.0, 0.5)
    assert job.history.open_canary is None
    assert (change.kind, change.reason, change.by) == ("canary", "inputs have grown", "lynceus")
    assert change.expected["saving_usd"] == pytest.approx(0.1)
    assert job.history.version(2).basis == CANARY.basis


def test_what_proves_itself_is_adopted_and_what_fails_is_returned_from(job: RecurringJob, decides: Any) -> None:
    decides(CANARY, Action(ActionKind.ADOPT, "its canary proved itself", TWO, 2))
    job.config(run_id="a")
    job.record(500.0, run_id="a")
    assert [action.kind for action in job.review().done] == [ActionKind.ADOPT]
    assert job.config().version == 2
    decides(Action(ActionKind.RETURN, "run b of version 2 was late", {"nodes": 4}, 1, evidence={"from": 2}))
    job.record(5000.0, run_id="b")
    assert [action.kind for action in job.review().done] == [ActionKind.RETURN]
    assert job.config().version == 1
    assert kinds(job)[2:] == [("canary", 2), ("adopt", 2), ("return", 1)]
    assert job.history.changes[-1].evidence == {"from": 2, "before": 2, "params": {"nodes": 4}}


def test_a_canary_that_is_given_up_changes_nothing_in_production(job: RecurringJob, decides: Any) -> None:
    decides(CANARY, Action(ActionKind.RETURN, "the canary was stopped", None, 1, evidence={"canary": 2}))
    job.config(run_id="a")
    job.record(900.0, run_id="a", state="TIMEOUT")
    job.review()
    assert (job.config().version, kinds(job)[-1]) == (1, ("return", 1))
    assert job.history.changes[-1].after_runs == 1, "by which the decider knows that the canary was dealt with"


def test_other_prices_change_production_without_a_run(job: RecurringJob, decides: Any) -> None:
    decides(Action(ActionKind.REPRICE, "prices changed", TWO, basis=Basis(None, {1: 0.3})))
    assert job.config(run_id="a").params == TWO
    assert [(one.source, one.basis.usd_per_hour) for one in job.history.versions[1:]] == [("reprice", {1: 0.3})]


def test_a_suggestion_is_noted_once_and_changes_nothing(job: RecurringJob, decides: Any) -> None:
    suggestion = replace(CANARY, kind=ActionKind.SUGGEST)
    decides(suggestion, suggestion)
    assert job.review().action == suggestion
    job.review()
    assert kinds(job)[2:] == [("suggest", None)]
    assert (job.config().version, len(job.history.versions)) == (1, 1)


@pytest.mark.parametrize("settings", [{"mode": "observe"}, {"mode": "suggest"}, {"held": True}])
def test_nothing_is_tried_unless_the_mode_allows_it(job: RecurringJob, settings: dict[str, Any], decides: Any) -> None:
    job.set(**settings)
    decides(CANARY)
    assert not job.config(run_id="a").canary


def test_a_model_that_fails_does_not_keep_a_job_from_running(
    job: RecurringJob, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*given: object) -> Action:
        raise ZeroDivisionError

    monkeypatch.setattr(steering, "next_action", broken)
    assert job.config(run_id="a").version == 1
    assert "no decision could be made" in caplog.text


def test_versions_can_be_rolled_back(job: RecurringJob) -> None:
    with pytest.raises(InputError, match="has had no other version in production yet"):
        job.rollback()
    adopt_job("nightly", params={"nodes": 8}, storage=job.store.storage)
    assert job.rollback(by="bo", reason="too expensive") == 1
    assert (job.config().params, kinds(job)[-1]) == ({"nodes": 4}, ("rollback", 1))
    with pytest.raises(InputError, match="has version 1 in production already"):
        job.rollback(1)
    assert job.rollback() == 2, "back and forth"


def test_runs_wait_while_the_storage_cannot_be_opened(
    job: RecurringJob, url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that is not mounted, or tables of another version, refuse no run: nothing is set aside."""
    host = RecurringJob("nightly", url)
    host.config()
    assert host.host is not None
    run = ProductionRun("a", 1, 300.0, 1_795_000_000.0)
    host.host.keep_run("nightly", HostRun("a", run_record(run), ended=True))
    job.store.storage.close()
    (tmp_path / "lynceus.db").rename(tmp_path / "elsewhere.db")
    with pytest.raises(InputError, match="there is no such file"):
        RecurringJob("nightly", url).record("5m", run_id="b")
    assert (host.waiting, caplog.text) == (1, "")
    (tmp_path / "elsewhere.db").rename(tmp_path / "lynceus.db")
    back = RecurringJob("nightly", url)
    assert back.record("5m", run_id="b")
    assert ([one.run_id for one in back.runs], back.waiting) == (["a", "b"], 0)


def test_a_canary_lives_until_its_timeout_without_a_sign_of_life(tmp_path: Path, decides: Any) -> None:
    """A scheduler that runs the job itself says nothing until it reports. Its run is the canary's, however late the report is."""
    time_s = [1_795_000_000.0]
    with Storage(f"sqlite:///{tmp_path}/s.db", now=lambda: time_s[0]) as storage:
        search(storage)
        job = adopt_job("nightly", source="search", params={"nodes": 4}, storage=storage)
        job.set(mode=Mode.APPLY, allowance_usd=20.0)
        decides(replace(CANARY, timeout_s=7200.0))
        assert job.config(run_id="a").canary
        time_s[0] += 7200.0 + 600.0
        assert not job.config(run_id="b").canary
        assert job.history.open_canary is not None
        time_s[0] += 600.0
        job.config(run_id="c")
        assert (job.history.open_canary, job.history.changes[-1].kind) == (None, "lost")
        assert job.record("2h", run_id="a")
        (run,) = job.runs
        assert (run.version, run.canary, run.instead_usd, run.timeout_s) == (2, True, 0.5, 7200.0)
        assert run.cost_usd == pytest.approx(2 * 0.6 * 2)


def test_a_recorded_run_starts_no_canary(job: RecurringJob, decides: Any) -> None:
    job.record("20m", run_id="a")
    decides(CANARY)
    assert not job.config(run_id="a").canary
    assert job.config(run_id="b").canary
