"""Filters of trials: the expression means what Python means by it, and a mistake is one sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lynceus
from lynceus.analysis.trial_filter import select_trials
from lynceus.analysis.trial_rows import TrialRow, trial_rows
from lynceus.errors import InputError
from lynceus.policy.timeouts.by_name import TIMEOUTS
from lynceus.study.study import Study

SWEEP = replace(lynceus.preset("sweep"), timeout=TIMEOUTS["none"])


def a_study() -> Study:
    """Three finished, one stopped, one failed, one open, one imported."""
    space = lynceus.Space.build(
        [lynceus.Categorical("vm", ["small", "large"]), lynceus.Integer("nodes", 1, 4)], price="0.1 * nodes"
    )
    study = lynceus.create_study(space=space, constraints=["runtime <= 10m"], policy=SWEEP)
    study.add_trial({"vm": "large", "nodes": 4}, runtime=20.0, metrics={"rows": 7.0})
    for number in range(3):
        trial = study.ask()
        study.tell(trial, runtime=100.0 + 10 * number, metrics={"rows": 1.5 * number}, charged=0.001 * number)
    study.tell(study.ask(), runtime=50.0, state="TIMEOUT")
    study.tell(study.ask(), runtime=1.0, state="FAIL", reason="oom")
    study.ask()
    return study


STUDY = a_study()
ROWS = trial_rows(STUDY.problem, select_trials(STUDY))


def facts(row: TrialRow) -> dict[str, object]:
    return {
        **dict(row.params),
        "number": row.number,
        "state": row.state,
        "reason": row.reason,
        "runtime": row.runtime_s,
        "cost": row.cost_usd,
        "charged": row.charged_usd,
        "feasible": row.keeps_constraints,
        "price": row.price_usd_per_hour,
        "rows": row.metrics.get("rows"),
    }


def found(where: str) -> list[int]:
    return [one.order.number for one in select_trials(STUDY, where=where)]


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ("state == 'FAIL'", [5]),
        ("state == FAIL or state == TIMEOUT", [4, 5]),
        ("state in ['RUNNING']", [6]),
        ("reason == 'oom'", [5]),
        ("rows > 1 and nodes < 4", [2, 3]),
        ("metrics.rows > 1", [0, 2, 3]),
        ("trial.number >= 5", [5, 6]),
        ("charged > 0.0015 and state == COMPLETE", [3]),
        ("cost is None", [4, 5, 6]),
        ("feasible", [0, 1, 2, 3]),
        ("not feasible", [4, 5, 6]),
        ("runtime <= 50 and state != RUNNING", [0, 4, 5]),
        ("vm == 'large' and price > 0.3 and feasible", [0]),
        ("True", [0, 1, 2, 3, 4, 5, 6]),
        ("False", []),
    ],
)
def test_parameters_states_metrics_and_costs(where: str, numbers: list[int]) -> None:
    assert found(where) == numbers


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("stat == 'FAIL'", "unknown name 'stat'. Did you mean 'state'?"),
        ("state == 'failed'", "no trial has the state 'failed'; use one of RUNNING, COMPLETE, TIMEOUT, FAIL."),
        ("state = FAIL", "Write '==' to compare."),
        ("__import__('os')", "is not allowed"),
        ("nodes.__class__", "not allowed"),
        ("[n for n in nodes]", "a comprehension is not allowed"),
        ("runtime > '5m'", "where"),
        ("", "an expression such as"),
    ],
)
def test_a_mistake_is_one_sentence(where: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        found(where)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_parameter_hides_a_fact_of_the_same_name() -> None:
    space = lynceus.Space.build(
        [lynceus.Categorical("state", ["on", "off"]), lynceus.Integer("cost", 1, 2)], price="1.0"
    )
    study = lynceus.create_study(space=space, policy=SWEEP)
    for _ in range(4):
        study.tell(study.ask(), runtime=3600.0)
    assert [one.order.row for one in select_trials(study, where="cost == 2")] == [1, 3]
    assert len(select_trials(study, where="trial.cost == 1.0 and trial.state == COMPLETE")) == 4


def test_names_are_checked_also_without_trials() -> None:
    space = lynceus.Space.build([lynceus.Integer("nodes", 1, 2)], price="1.0")
    study = lynceus.create_study(space=space, constraints=["rows >= 1"], policy=SWEEP)
    assert select_trials(study, where="rows > 3 and nodes == 1") == []
    with pytest.raises(InputError, match="unknown name"):
        select_trials(study, where="nope > 3")


NUMBERS = ("number", "runtime", "cost", "charged", "price", "rows", "nodes")
comparisons = st.builds(
    "{} {} {}".format,
    st.sampled_from(NUMBERS),
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    st.sampled_from(["0", "0.001", "1.5", "2", "50", "100.0", "110"]),
)
texts = st.builds(
    "{} {} {}".format,
    st.sampled_from(["state", "trial.state"]),
    st.sampled_from(["==", "!="]),
    st.sampled_from(["'FAIL'", "'COMPLETE'", "'TIMEOUT'", "'RUNNING'"]),
)
expressions = st.recursive(
    comparisons | texts | st.just("feasible") | st.just("reason is None"),
    lambda inner: (
        st.builds("({} and {})".format, inner, inner)
        | st.builds("({} or {})".format, inner, inner)
        | st.builds("(not {})".format, inner)
    ),
    max_leaves=6,
)


class _Unknown:
    """What is not known: equal to None alone, and in no order."""

    def __lt__(self, other: object) -> bool:
        return False

    __le__ = __gt__ = __ge__ = __lt__

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


@given(expressions)
def test_it_means_what_python_means(where: str) -> None:
    expected = []
    for row in ROWS:
        names = {
            name: _Unknown() if value is None and name != "reason" else value for name, value in facts(row).items()
        }
        if eval(where.replace("trial.state", "state"), {"__builtins__": {}}, names):
            expected.append(row.number)
    assert found(where) == expected


@given(st.text(max_size=40))
def test_any_text_is_an_answer_or_one_sentence(where: str) -> None:
    said = ""
    try:
        found(where)
    except InputError as error:
        said = str(error)
    assert "\n" not in said
