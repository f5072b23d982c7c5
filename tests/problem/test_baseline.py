"""The baseline as programs give it: a configuration, with its time, or to be measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lynceus.errors import InputError
from lynceus.problem.baseline import Baseline
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer, Ordinal
from lynceus.space.table import Space

SPACE = Space.build([Integer("n", 1, 4)], price="0.1 * n")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"n": 3}, Baseline(2)),
        ({"config": {"n": 3}}, Baseline(2)),
        ({"config": {"n": 3}, "runtime": "41m"}, Baseline(2, 2460.0)),
        ({"config": {"n": 3}, "runtime": 60, "measure": False}, Baseline(2, 60.0)),
        ({"config": {"n": 3}, "measure": True}, Baseline(2, measure=True)),
    ],
)
def test_every_form_is_read(given: dict[str, Any], expected: Baseline) -> None:
    assert Baseline.read(SPACE, given) == Baseline.read(SPACE, expected) == expected


def test_parameters_may_be_called_like_the_fields() -> None:
    space = Space.build([Ordinal("config", [1, 2]), Ordinal("runtime", [5, 6])], price=1.0)
    assert Baseline.read(space, {"config": 2, "runtime": 5}) == Baseline(2)
    assert Baseline.read(space, {"config": {"config": 2, "runtime": 5}, "runtime": "1m"}) == Baseline(2, 60.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"n": 9}, "baseline: The parameter 'n' cannot be 9"),
        ({"m": 1}, "baseline: The configuration names the unknown parameter 'm'"),
        ({"config": {"n": 1}, "runtim": "1m"}, "baseline: there is no field 'runtim'; did you mean 'runtime'?"),
        ({"config": 3}, "baseline: config is 3; give a configuration such as {'nodes': 4}."),
        ({"measure": True}, "baseline: config is no value; give a configuration"),
        ({"config": {"n": 1}, "measure": "yes"}, "baseline: measure is 'yes'; give True or False."),
        ({"config": {"n": 1}, "runtime": "soon"}, "baseline: runtime is 'soon'"),
        ({"config": {"n": 1}, "runtime": 0}, "baseline: runtime is 0.0 seconds; give the time of a run"),
        ({"config": {"n": 1}, "runtime": -1}, "baseline: runtime is -1, but a finite amount"),
        ({"config": {"n": 1}, "runtime": "1m", "measure": True}, "baseline: runtime says what measure would find out"),
        (3, "baseline: got 3; give a configuration"),
    ],
)
def test_bad_values_get_one_sentence(given: Any, said: str) -> None:
    with pytest.raises(InputError) as refused:
        Baseline.read(SPACE, given)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_a_problem_refuses_a_baseline_that_it_does_not_have_or_may_not_run() -> None:
    with pytest.raises(InputError, match="baseline: row 4 is not one of the 4 configurations"):
        Problem(SPACE, baseline=Baseline(4))
    some = np.array([True, True, False, True])
    assert Problem(SPACE, testable=some, baseline=Baseline(2)).baseline == Baseline(2)
    with pytest.raises(InputError, match="trials may not run this configuration"):
        Problem(SPACE, testable=some, baseline=Baseline(2, measure=True))
