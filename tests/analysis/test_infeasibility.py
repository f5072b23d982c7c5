"""Studies without an answer: which limit fails, by how much, and advice that fits the case."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

import lynceus
from lynceus.analysis.documents.insight import explanation_document, insight_document
from lynceus.analysis.infeasibility import Cause, Infeasibility, LimitFacts, LimitValue, infeasibility
from lynceus.analysis.infeasibility_text import advice
from lynceus.analysis.study_context import StudyContext
from lynceus.analysis.whatif import with_deadline
from lynceus.policy.timeouts.at_most import AtMost
from lynceus.policy.timeouts.timeout import Timeout
from lynceus.problem.objective import Constraint
from lynceus.study.study import Study
from lynceus.trial.trial import Trial

SPACE = lynceus.Space.build([lynceus.Integer("level", 1, 9), lynceus.Integer("threads", 1, 4)], price="0.36 * threads")


def result(trial: Trial) -> tuple[float, float]:
    """Seconds and bytes: level 9 with 4 threads takes 25 s and writes 3.99 MB, level 1 takes 15 s at least and writes 4.45 MB."""
    level, threads = (int(str(trial.params[name])) for name in ("level", "threads"))
    return 10 + (20 + 5 * level) / threads, 4_450_000 - 57_500 * (level - 1)


def run(trial: Trial) -> dict[str, float]:
    seconds, size = result(trial)
    return {"runtime": min(seconds, trial.timeout or 1e9), "bytes": size}


def study_of(*constraints: str, budget: str = "$1", policy: str | lynceus.Policy = "lynceus") -> Study:
    return lynceus.create_study(
        space=SPACE, constraints=list(constraints), budget=budget, study_name="gzip", policy=policy
    )


def why(*constraints: str, budget: str = "$1", policy: str | lynceus.Policy = "lynceus") -> tuple[Study, Infeasibility]:
    study = study_of(*constraints, budget=budget, policy=policy)
    study.optimize(run)
    assert study.recommend() is None
    return study, infeasibility(StudyContext(study))


def test_a_metric_that_no_configuration_reaches() -> None:
    study, found = why("runtime <= 1m", "bytes <= 2MB")
    assert found.cause is Cause.LIMIT
    assert found.limits[0].constraint == "bytes <= 2000000"
    assert [one.fails for one in found.limits] == [True, False]
    best = found.limits[0].measured
    assert best is not None
    assert (best.value, best.params["level"], best.misses_by) == (3_990_000.0, 9, 1_990_000.0)
    assert best.misses_by_share == pytest.approx(0.995)
    assert study.trials[best.trial or 0].params["level"] == 9
    assert found.summary.startswith("bytes <= 2000000 fails: the smallest of ")
    assert "1990000 over it (99.5%)" in found.summary
    assert "lynceus resume gzip --constraint 'bytes <= 4000000'" in found.advice


def test_a_deadline_that_no_run_keeps_names_the_fastest_that_is_believed() -> None:
    _, found = why("runtime <= 5s", budget="$20")
    (limit,) = found.limits
    assert found.cause is Cause.LIMIT
    assert (limit.fails, limit.finished, limit.measured) == (True, 0, None)
    assert limit.believed is not None
    assert limit.believed.value >= 5.0, "every configuration was stopped after 5 s"
    assert limit.believed.trial is None
    assert "time <= 5s fails: no run has finished, 36 were stopped; the fastest believed" in found.summary
    assert "--constraint 'runtime <= " in found.advice


def test_nothing_is_said_of_a_metric_that_no_run_reported() -> None:
    study = study_of("runtime <= 5s", "bytes <= 2MB", budget="$20")
    study.optimize(lambda trial: {"runtime": trial.timeout or 1e9})  # stopped before they report anything
    found = infeasibility(StudyContext(study))
    assert [(one.metric, one.fails, one.believed is None) for one in found.limits] == [
        ("time", True, False),
        ("bytes", False, True),
    ]
    assert "bytes" not in found.summary + found.advice


def test_more_trials_are_advised_where_their_number_ended_the_search() -> None:
    budget = lynceus.Budget(usd=20.0, trials=1)
    study = lynceus.create_study(
        space=SPACE, constraints=["runtime <= 60s", "bytes <= 4.1MB"], budget=budget, study_name="gzip"
    )
    study.optimize(run)
    found = infeasibility(StudyContext(study))
    assert found.cause is Cause.BUDGET
    assert found.advice.startswith("allow more trials with: lynceus resume gzip --add-trials 20")
    study.resume(add_trials=20)
    study.optimize(run)
    assert study.recommend() is not None


def test_a_limit_is_advised_that_runs_have_met_where_only_a_prediction_keeps_the_present_one() -> None:
    measured = LimitValue(0.3097, 0.0097, 0.03, 6, {"level": 9}, 6)
    believed = LimitValue(0.296, -0.004, -0.01, 5, {"level": 8}, None)
    limit = LimitFacts("ratio <= 0.3", "ratio", 0.3, False, True, 8, 0, measured, believed, 0.5)
    text = advice(
        Cause.LIMIT, [limit], StudyContext(study_of("ratio <= 0.3")).study, (None, float("nan"), float("nan"))
    )
    assert text == "see what other limits would give: lynceus whatif gzip --constraint 'ratio <= 0.31'"


def test_limits_that_only_contradict_each_other() -> None:
    policy = replace(lynceus.preset("sweep"), timeout=Timeout())  # runs are not stopped, so that all report their bytes
    _, found = why("runtime <= 20s", "bytes <= 4.1MB", budget="$20", policy=policy)
    assert found.cause is Cause.TOGETHER
    assert all(one.kept for one in found.limits)
    assert "but no run meets all of them" in found.summary
    assert "lynceus whatif gzip" in found.advice


def test_of_limits_that_contradict_each_other_the_one_is_advised_that_a_run_misses_least() -> None:
    policy = replace(lynceus.preset("sweep"), timeout=Timeout())
    study, found = why("runtime <= 20s", "bytes <= 4.1MB", budget="$20", policy=policy)
    option, trial = re.findall(r"resume gzip --constraint '([^']+)', which trial (\d+) meets", found.advice)[0]
    wanted = [option if option.partition(" ")[0] in limit else limit for limit in ("runtime <= 20s", "bytes <= 4.1MB")]
    assert sorted(wanted) != ["bytes <= 4.1MB", "runtime <= 20s"]
    study.resume(constraints=wanted)
    answer = study.recommend()
    assert answer is not None
    assert answer.params == study.trials[int(trial)].params


def test_jobs_that_all_crash_do_not_blame_a_limit() -> None:
    study = study_of("runtime <= 1m")
    while (trial := study.ask()) is not None:
        study.tell(trial, state="FAIL", reason="job", runtime=1.0, detail="exit code 1: no such file")
    found = infeasibility(StudyContext(study))
    assert found.cause is Cause.FAILED
    assert found.summary.endswith("failed, so nothing is known of the limits; the last: exit code 1: no such file")
    assert "lynceus logs gzip 4" in found.advice
    assert "--constraint" not in found.advice


def test_a_budget_that_ends_the_search_while_a_configuration_is_likely() -> None:
    study, found = why("runtime <= 25s", "bytes <= 4.05MB", budget="$0.0042")
    assert study.stopped is not None
    assert found.cause is Cause.BUDGET
    assert found.likeliest is not None
    assert found.advice.startswith("add money with: lynceus resume gzip --add-budget '0.01 USD'; level=")
    assert f"with a chance of {found.chance:.0%}, for about " in found.advice


def test_timeouts_that_are_too_tight() -> None:
    policy = lynceus.preset("lynceus")
    tight = Timeout(AtMost(4.0, policy.timeout.rule), policy.timeout.censored)
    _, found = why("runtime <= 10m", policy=replace(policy, timeout=tight))
    assert found.cause is Cause.TIMEOUT
    assert found.advice.startswith("raise trial.max_duration, which stopped trials after 4s, before their limits")


def test_no_trial_yet_and_a_search_that_goes_on() -> None:
    study = study_of("runtime <= 1m")
    assert infeasibility(StudyContext(study)).cause is Cause.NO_TRIALS
    study = study_of("runtime <= 25s", "bytes <= 4.05MB")
    study.optimize(run, n_trials=3)
    found = infeasibility(StudyContext(study))
    assert found.cause in (Cause.OPEN, Cause.LIMIT)


@pytest.mark.parametrize("document", [insight_document, explanation_document])
def test_documents_say_which_limit_fails_and_nothing_when_there_is_an_answer(
    document: Callable[[StudyContext], dict[str, object]],
) -> None:
    study, found = why("runtime <= 1m", "bytes <= 2MB")
    shown = document(StudyContext(study))["infeasible"]
    assert isinstance(shown, dict)
    assert (shown["cause"], shown["summary"]) == ("limit", found.summary)
    study.resume(constraints=["bytes <= 4.3MB"])
    study.optimize(run)
    assert document(StudyContext(study))["infeasible"] is None


def test_advice_about_another_deadline_brings_it_along() -> None:
    study = study_of("runtime <= 60s", "bytes <= 4.1MB", budget="$20")
    study.optimize(run)
    for deadline_s, options in ((11.0, ["--constraint 'runtime <= 1"]), (30.0, ["--constraint 'runtime <= 30s'"])):
        problem = with_deadline(study.problem, deadline_s).with_constraints(
            (Constraint("time", deadline_s), Constraint("bytes", 2e6))
        )
        found = infeasibility(StudyContext(study), problem)
        commands = re.findall(r"lynceus (?:resume|whatif) gzip((?: --[a-z-]+ '[^']+')*)", found.advice)
        assert commands
        for command in commands:
            assert all(option in command for option in [*options, "--constraint 'bytes <= "]), found.advice
            assert command.count("runtime") == command.count("bytes") == 1


def test_amounts_of_a_metric_have_its_unit() -> None:
    study = lynceus.create_study(
        space=SPACE, constraints=["runtime <= 60s"], budget="$20", study_name="gzip", policy="sweep"
    )
    study.optimize(run)
    problem = study.problem.with_constraints((Constraint.parse("bytes <= 2MB", {"bytes": "B"}),))
    found = infeasibility(StudyContext(study), problem)
    assert "bytes <= 2MB fails: the smallest of " in found.summary
    assert "is 3.99 MB (level=9" in found.summary
    assert "1.99 MB over it" in found.summary
    assert "--constraint 'bytes <= 4MB'" in found.advice
