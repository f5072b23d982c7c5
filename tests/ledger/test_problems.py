"""Studies that were made in Python keep their problem, so that whoever looks at the storage sees them whole."""

import json
from pathlib import Path

import numpy as np
import pytest

from lynceus import Categorical, Computed, Float, Integer, Mapped, Ordinal, Space, create_study
from lynceus.cli.opened import open_study
from lynceus.conduct import Conduct
from lynceus.errors import InputError
from lynceus.ledger.problems import MOST_CELLS, problem_of_record, problem_record
from lynceus.ledger.sql import Storage, fingerprint
from lynceus.problem import Budget, Goal, Limit, Problem, Tariff


def a_problem() -> Problem:
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
        Goal("accuracy", maximise=True),
        (Limit("time", 600.0, confidence=0.95), Limit("loss", 0.3)),
        Budget(25.0, 40, 3600.0),
        Tariff(60.0, 60.0, 90.0, 0.01, ("vm",)),
        testable,
        None,
        2,
        "share",
    )


def test_a_problem_is_the_same_after_json() -> None:
    problem = a_problem()
    again = problem_of_record(json.loads(json.dumps(problem_record(problem), allow_nan=False)))
    assert fingerprint(again) == fingerprint(problem)
    assert again.budget == problem.budget
    assert again.space.parameters == problem.space.parameters
    assert np.array_equal(again.space.features, problem.space.features)
    assert {name: column.dtype for name, column in again.space.columns.items()} == {
        name: column.dtype for name, column in problem.space.columns.items()
    }
    assert [again.space.point(row) for row in range(50)] == [problem.space.point(row) for row in range(50)]
    assert np.array_equal(again.space.mask("total > 1"), problem.space.mask("total > 1"))


def test_a_study_of_a_notebook_can_be_looked_at_and_continued_by_its_name(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    space = Space.build([Categorical("vm", ["small", "large"]), Integer("nodes", 1, 4)], price="nodes")
    conduct = Conduct(retries_infra=7, max_failures=0)
    study = create_study(
        space=space,
        constraints=["runtime <= 10m"],
        budget="$9",
        policy="random",
        storage=url,
        study_name="my study",
        conduct=conduct,
    )
    for _ in range(3):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, runtime=100.0 + trial.number)
    one = open_study("my study", url)
    assert one.study.history == study.history
    assert one.study.budget_usd == 9.0
    assert one.study.best_params == study.best_params
    assert (one.study.conduct.retries_infra, one.study.conduct.max_failures) == (7, 1_000_000)
    theirs, ours = one.study.ask(), study.ask()
    assert theirs is not None
    assert ours is None or ours.params != theirs.params, "they see each other's trials"


def test_spaces_that_are_too_large_are_not_kept_and_a_sentence_says_so(tmp_path: Path) -> None:
    space = Space.build([Integer("n", 1, MOST_CELLS // 2)], price=1.0)
    assert problem_record(Problem(space)) is None
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage:
        storage.create_study("old", document={}, fingerprint="f", policy={"name": "x"})
    with pytest.raises(InputError, match="was made by a program and keeps no problem"):
        open_study("old", f"sqlite:///{tmp_path}/s.db")
