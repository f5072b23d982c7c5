"""What a study says of its history: weights, suggested trials, and what they saved, by an imagined search."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import lynceus
from lynceus.analysis.documents.insight import explanation_document
from lynceus.analysis.past_jobs import past_jobs
from lynceus.analysis.study_context import StudyContext
from lynceus.problem.job_input import JobInput
from lynceus.study.view import StudyView


def made(name: str, history: tuple[lynceus.Study, ...] = (), **more: object) -> lynceus.Study:
    space = lynceus.Space.build(
        [lynceus.Ordinal("nodes", [1, 2, 4, 8, 16]), lynceus.Ordinal("memory_gib", [4, 8, 16])],
        price="0.1 * nodes * memory_gib / 4",
    )
    return lynceus.create_study(
        space=space, constraints=["runtime <= 20m"], budget="$50", study_name=name, history=list(history), **more
    )  # type: ignore[arg-type]


def run(study: lynceus.Study, size: float, trials: int) -> None:
    def job(trial: lynceus.Trial) -> float:
        nodes, memory = float(trial.params["nodes"]), float(trial.params["memory_gib"])  # type: ignore[arg-type]
        seconds = size * 60 / nodes * (5 if nodes * memory < size else 1)
        return min(seconds, np.inf if trial.timeout is None else trial.timeout)

    study.optimize(job, n_trials=trials)


def test_a_study_says_what_its_history_told() -> None:
    small = made("small")
    run(small, 40.0, 8)
    large = made("large", (small,))
    run(large, 50.0, 5)
    found = past_jobs(StudyContext(large.snapshot()))
    assert found is not None
    (one,) = found.jobs
    assert one.name == "small"
    assert one.runs == len(large.problem.history[0].seconds)
    assert 0.0 < one.weight <= 1.0
    assert one.note is None
    assert found.suggested >= 1
    assert 0 < found.suggested_usd <= large.spent_usd
    assert found.saved_usd is not None
    assert abs(found.saved_usd) < 50
    document = explanation_document(StudyContext(large.snapshot()))
    assert document["history"]["jobs"][0]["name"] == "small"


def test_without_history_there_is_nothing_to_say() -> None:
    plain = made("plain")
    run(plain, 40.0, 3)
    assert past_jobs(StudyContext(plain.snapshot())) is None
    assert explanation_document(StudyContext(plain.snapshot()))["history"] is None


def test_a_policy_that_does_not_learn_is_said() -> None:
    small = made("small")
    run(small, 40.0, 8)
    other = made("other", (small,), policy="cherrypick")
    run(other, 50.0, 4)
    found = past_jobs(StudyContext(other.snapshot()))
    assert found is not None
    assert found.jobs[0].note == "policy cherrypick does not learn from history"
    assert (found.jobs[0].weight, found.suggested, found.saved_usd) == (0.0, 0, None)


def test_runs_on_other_inputs_count_as_history_of_this_one() -> None:
    study = made("grows", input="100 GB")
    run(study, 40.0, 8)
    assert past_jobs(StudyContext(study.snapshot())) is None
    grown = replace(study.problem, input=JobInput.read("200 GB"))
    found = past_jobs(StudyContext(StudyView(grown, study.policy, study.record)))
    assert found is not None
    (one,) = found.jobs
    assert (one.name, one.note, found.suggested) == ("this job on 100 GB", None, 0)
    assert one.weight > 0.25
    assert one.runs == len(study.observations)
