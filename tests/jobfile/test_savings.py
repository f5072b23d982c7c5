"""The sections `baseline` and `future` of a job file: what becomes of them, and which studies still open."""

from __future__ import annotations

from pathlib import Path

import pytest

import lynceus
from lynceus.jobfile.init_template import Answers, job_template
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from lynceus.jobfile.stored_study import job_and_problem, prepared_of
from lynceus.policy.stopping import GittinsStop
from lynceus.problem.baseline import Baseline
from lynceus.problem.future_use import FutureUse
from lynceus.problem.problem import Problem
from lynceus.storage.problem_record import problem_of_record, problem_record
from lynceus.storage.sql.storage import Storage, fingerprint

HEAD = """\
name: a
run: ['true', '${n}']
space: {n: [1, 2, 4]}
price: 0.1 * n
budget: 1 USD
"""


def problem_of(text: str) -> Problem:
    return prepare(Job.parse(HEAD + text)).problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("baseline:", None),
        ("baseline: {n: 4}", Baseline(2)),
        ("baseline: {config: {n: 4}}", Baseline(2)),
        ("baseline: {config: {n: 4}, runtime: 41m}", Baseline(2, 2460.0)),
        ("baseline: {config: {n: 4}, measure: true}", Baseline(2, measure=True)),
    ],
)
def test_a_baseline_has_a_short_and_a_long_form(text: str, expected: Baseline | None) -> None:
    assert problem_of(text).baseline == expected


def test_a_parameter_called_config_is_no_field() -> None:
    job = HEAD.replace("n: [1, 2, 4]", "n: [1, 2], config: [a, b]")
    short, long = "baseline: {n: 2, config: b}", "baseline: {config: {n: 2, config: b}, runtime: 1m}"
    assert prepare(Job.parse(job + short)).problem.baseline == Baseline(3)
    assert prepare(Job.parse(job + long)).problem.baseline == Baseline(3, 60.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("future:", None),
        ("future: {runs: 100}", FutureUse(runs=100)),
        ("future: {per_month: 30, months: 6}", FutureUse(per_month=30, months=6)),
    ],
)
def test_future_use(text: str, expected: FutureUse | None) -> None:
    assert problem_of(text).future == expected


def test_neither_makes_it_another_problem() -> None:
    plain = problem_of("")
    told = problem_of("baseline: {config: {n: 4}, measure: true}\nfuture: {runs: 7}")
    assert fingerprint(plain) == fingerprint(told)


def test_a_stored_job_has_both() -> None:
    job = Job.parse(HEAD + "baseline: {config: {n: 4}, runtime: 1m}\nfuture: {per_month: 3, months: 2}")
    again = prepare(Job.from_stored(prepare(job).job.stored())).problem
    assert (again.baseline, again.future) == (Baseline(2, 60.0), FutureUse(per_month=3, months=2))


def test_a_study_of_a_program_stores_both_and_one_without_reads_as_before(tmp_path: Path) -> None:
    space = lynceus.Space.build([lynceus.Integer("n", 1, 3)], price="0.1 * n")
    url = f"sqlite:///{tmp_path / 'a.db'}"
    given = {"config": {"n": 3}, "runtime": "10m"}
    told = lynceus.create_study(space=space, study_name="told", storage=url, baseline=given, future={"runs": 7})
    lynceus.create_study(space=space, study_name="plain", storage=url)
    assert (told.problem.baseline, told.problem.future) == (Baseline(2, 600.0), FutureUse(runs=7))
    with Storage(url) as storage:
        for name, expected in {"told": (Baseline(2, 600.0), FutureUse(runs=7)), "plain": (None, None)}.items():
            record = storage.load_study(name)
            for problem in (prepared_of(record).problem, job_and_problem(record)[1]):
                assert (problem.baseline, problem.future) == expected
            assert ("baseline" in record.document["problem"]) == (name == "told")
    stored = problem_record(told.problem)
    assert stored is not None
    assert problem_of_record({name: value for name, value in stored.items() if name != "future"}).future is None


def test_init_writes_the_future_use_of_the_default() -> None:
    job = Job.parse(job_template(Answers()))
    assert job.spec.future is not None
    policy = prepare(job).policy
    assert isinstance(policy.stop, GittinsStop)
    assert job.spec.future.future_use().count == policy.stop.future_runs


def test_a_policy_that_counts_other_uses_is_mentioned() -> None:
    policy = "policy: {choose: {kind: cheap-first, count: 3}, stop: {kind: gittins-stop, future_runs: 40}}\n"
    named = prepare(Job.parse(HEAD + "future: {runs: 7}"))
    assert named.notes == ()
    composed = prepare(Job.parse(HEAD + policy + "future: {runs: 7}"))
    assert composed.notes == ("future says 7 uses and policy.stop 40; those of future count.",)
