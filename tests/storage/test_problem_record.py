"""Studies created in Python store their problem, so that other processes can open them by name."""

import json
from pathlib import Path

import numpy as np
import pytest

from lynceus import Categorical, Computed, Float, Integer, Mapped, Ordinal, Space, create_study
from lynceus.errors import InputError
from lynceus.library.open_study import open_named
from lynceus.policy.retries import RetryRules
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.storage.problem_record import MOST_CELLS, problem_of_record, problem_record
from lynceus.storage.sql.storage import Storage, fingerprint


def example_problem() -> Problem:
    space = Space.build(
        [
            Categorical("vm", ["small", "läge", 3, True]),
            Ordinal("size", ["s", "m", "l"]),
            Integer("nodes", 2, 8, step=2),
            Integer("batch", 16, 256, log=True, steps=5),
            Float("share", 0.25, 1.0, steps=4),
            Categorical("codec", ["lz4", "zstd"], when="nodes > 4"),
        ],
        derived=[Mapped("usd", "size", {"s": 0.1, "m": 0.2, "l": 0.45}), Computed("total", "usd * nodes")],
        forbid=["size == 's' and nodes > 6"],
        price="total",
    )
    testable = np.arange(len(space)) % 3 > 0
    return Problem(
        space,
        Objective("accuracy", maximise=True),
        (Constraint("time", 600.0, confidence=0.95), Constraint("loss", 0.3)),
        Budget(25.0, 40, 3600.0),
        Billing(60.0, 60.0, 90.0, 0.01, ("vm",)),
        testable,
        None,
        2,
        "share",
    )


def test_problem_round_trip_through_json() -> None:
    problem = example_problem()
    restored = problem_of_record(json.loads(json.dumps(problem_record(problem), allow_nan=False)))
    assert fingerprint(restored) == fingerprint(problem)
    assert restored.budget == problem.budget
    assert restored.space.parameters == problem.space.parameters
    assert np.array_equal(restored.space.features, problem.space.features)
    assert {name: column.dtype for name, column in restored.space.columns.items()} == {
        name: column.dtype for name, column in problem.space.columns.items()
    }
    assert [restored.space.point(row) for row in range(50)] == [problem.space.point(row) for row in range(50)]
    assert np.array_equal(restored.space.mask("total > 1"), problem.space.mask("total > 1"))


def test_a_study_created_in_python_can_be_opened_and_continued_by_name(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    space = Space.build([Categorical("vm", ["small", "large"]), Integer("nodes", 1, 4)], price="nodes")
    retry_rules = RetryRules(retries_infra=7, max_failures=0)
    study = create_study(
        space=space,
        constraints=["runtime <= 10m"],
        budget="$9",
        policy="random",
        storage=url,
        study_name="my study",
        retry_rules=retry_rules,
    )
    for _ in range(3):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, runtime=100.0 + trial.number)
    opened = open_named("my study", url)
    assert opened.study.observations == study.observations
    assert opened.study.budget_usd == 9.0
    assert opened.study.best_params == study.best_params
    assert (opened.study.retry_rules.retries_infra, opened.study.retry_rules.max_failures) == (7, 0)
    other, own = opened.study.ask(), study.ask()
    assert other is not None
    assert own is None or own.params != other.params, "both studies see all open trials"


def test_problems_with_large_spaces_are_not_stored(tmp_path: Path) -> None:
    space = Space.build([Integer("n", 1, MOST_CELLS // 2)], price=1.0)
    assert problem_record(Problem(space)) is None
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage:
        storage.create_study("old", document={}, fingerprint="f", policy={"name": "x"})
    with pytest.raises(InputError, match="was created by a program and its problem is not stored"):
        open_named("old", f"sqlite:///{tmp_path}/s.db")


def test_a_deterministic_problem_stays_one() -> None:
    space = Space.build([Integer("nodes", 1, 3)], price="0.1 * nodes")
    for deterministic in (False, True):
        record = json.loads(json.dumps(problem_record(Problem(space, deterministic=deterministic))))
        assert ("deterministic" in record) == deterministic
        assert problem_of_record(record).deterministic == deterministic
