"""The columns of a space as facts: however often and in whatever form a table holds a fact, models read it once."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynceus.models.described import ordered_labels
from lynceus.models.features import model_inputs
from lynceus.models.mixture import Mixture
from lynceus.models.state import State
from lynceus.policy.default import SMOOTH, TIME
from lynceus.policy.next_step import observe
from lynceus.policy.presets import preset
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical, Ordinal
from lynceus.space.table import Space
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Outcome

MACHINES = {
    # name: cores, GB, GHz, dollars per hour
    "c4.large": (2, 3.75, 2.9, 0.10),
    "c4.xlarge": (4, 7.5, 2.9, 0.199),
    "c4.2xlarge": (8, 15.0, 2.9, 0.398),
    "m4.large": (2, 8.0, 2.4, 0.11),
    "m4.xlarge": (4, 16.0, 2.4, 0.215),
    "m4.2xlarge": (8, 32.0, 2.4, 0.431),
}
ROWS = [(name, nodes) for name in MACHINES for nodes in (2, 4, 8)]
TABLE = {
    "vm": [name for name, _ in ROWS],
    "nodes": [nodes for _, nodes in ROWS],
    "cores": [MACHINES[name][0] for name, _ in ROWS],
    "memory": [MACHINES[name][1] for name, _ in ROWS],
    "ghz": [MACHINES[name][2] for name, _ in ROWS],
    "codec": [("zip", "lz4", "none")[place % 3] for place in range(len(ROWS))],
    "usd": [nodes * MACHINES[name][3] for name, nodes in ROWS],
}
FEATURES = ("vm", "nodes", "cores", "memory", "ghz", "codec")


def space_of(features=FEATURES, parameters=("vm", "nodes"), **columns):
    return Space.from_table({**TABLE, **columns}, list(parameters), [*features, *columns], "usd")


def facts(space):
    features, kinds = model_inputs(space, "facts and price")
    return features, kinds


def assert_same_facts(left, right):
    (one, kinds), (other, other_kinds) = facts(left), facts(right)
    assert kinds == other_kinds
    for place, kind in enumerate(kinds):
        if kind == "categorical":  # only equality of codes counts
            np.testing.assert_array_equal(*(col[:, None] == col for col in (one[:, place], other[:, place])))
        else:
            np.testing.assert_array_equal(one[:, place], other[:, place])


def prediction_of(space):
    """What the default's model, given facts, predicts after six runs."""
    problem = Problem(space, constraints=(Constraint("time", 900.0),))
    model = Mixture(
        tuple(replace(one, surrogate=replace(one.surrogate, inputs="facts and price")) for one in (TIME, SMOOTH))
    )
    policy, seen = preset("lynceus"), ()
    for number, row in enumerate((0, 4, 7, 9, 13, 17)):
        order = Order(number, row, 1e6, 1.0, Plan(row, why="a test"))
        outcome = Outcome(End.FINISHED, 100.0 + 37.0 * row % 400, 0.1)
        seen = (*seen, observe(problem, policy, seen, order, outcome))
    prediction = model(State.present(problem, seen), 3)
    return prediction.mean, prediction.std


def test_a_constant_column_a_copy_and_a_recoding_change_no_prediction():
    base = prediction_of(space_of())
    copies = {
        "constant": ["eu-west-1"] * len(ROWS),
        "one": [1.0] * len(ROWS),
        "cpus": TABLE["cores"],
        "memory_mb": [1024 * gb for gb in TABLE["memory"]],
        "slowness": [1 / ghz for ghz in TABLE["ghz"]],
        "codec_id": [{"zip": "z", "lz4": "a", "none": "q"}[codec] for codec in TABLE["codec"]],
        "log_usd": [math.log(usd) for usd in TABLE["usd"]],
        "ec2_name": [name.upper() for name in TABLE["vm"]],
    }
    np.testing.assert_array_equal(prediction_of(space_of(**copies)), base)


@settings(deadline=None, max_examples=60)
@given(
    source=st.sampled_from(["nodes", "cores", "memory", "ghz", "usd"]),
    slope=st.floats(0.01, 100.0),
    power=st.sampled_from([-2.0, -1.0, 0.5, 1.0, 2.0]),
)
def test_a_monotone_function_of_a_number_is_no_further_fact(source, slope, power):
    assert_same_facts(space_of(), space_of(again=[slope * value**power for value in TABLE[source]]))


@settings(deadline=None, max_examples=60)
@given(source=st.sampled_from(["vm", "codec"]), codes=st.permutations(["u", "v", "w", "x", "y", "z"]))
def test_other_names_of_a_category_are_no_further_fact(source, codes):
    name_of = dict(zip(dict.fromkeys(TABLE[source]), codes, strict=False))
    assert_same_facts(space_of(), space_of(again=[name_of[value] for value in TABLE[source]]))


@settings(deadline=None, max_examples=60)
@given(order=st.permutations(FEATURES))
def test_the_order_of_the_columns_decides_the_order_of_the_facts_only(order):
    (one, kinds), (other, other_kinds) = facts(space_of()), facts(space_of(order))
    assert sorted(kinds) == sorted(other_kinds)
    assert {tuple(column) for column in one.T} == {tuple(column) for column in other.T}


def test_two_numbers_that_are_not_functions_of_each_other_both_count():
    cores = sum(kind != "categorical" for kind in facts(space_of())[1])
    further = [cores * gb for cores, gb in zip(TABLE["cores"], TABLE["memory"], strict=True)]
    assert sum(kind != "categorical" for kind in facts(space_of(further=further))[1]) == cores + 1


def test_sizes_given_as_texts_are_the_sizes():
    texts = {"cores": [str(cores) for cores in TABLE["cores"]], "memory": [f"{gb} GB" for gb in TABLE["memory"]]}
    as_texts = Space.from_table({**TABLE, **texts}, ["vm", "nodes"], FEATURES, "usd")
    assert_same_facts(space_of(), as_texts)


def test_an_ordinal_parameter_that_is_given_as_a_category_is_read_in_its_order():
    sizes = [name.split(".")[1] for name in TABLE["vm"]]
    families = [name.split(".")[0] for name in TABLE["vm"]]
    order = ("large", "xlarge", "2xlarge")
    table = {**TABLE, "size": sizes, "family": families}
    given_so, given_right = (
        Space.from_table(table, ["family", size, "nodes"], ["family", "size", "nodes"], "usd")
        for size in (Categorical("size", order), Ordinal("size", order))
    )
    assert facts(given_so)[1].count("categorical") == 1
    np.testing.assert_array_equal(facts(given_so)[0], facts(given_right)[0])


def test_numbers_that_the_user_calls_categories_stay_categories():
    space = Space.from_table(TABLE, [Categorical("nodes", (2, 4, 8)), "vm"], ["nodes"], "usd")
    assert facts(space)[1] == ("categorical", "log")


def test_a_name_has_parts_where_no_sizes_are_given():
    features, kinds = facts(space_of(("vm", "nodes")))
    assert kinds == ("categorical", "log", "numeric", "log")
    assert len(np.unique(features[:, 0])) == 2, "two families"
    np.testing.assert_array_equal(features[:, 1], np.log2(TABLE["cores"]) - 1)


def test_a_name_has_no_parts_where_sizes_tell_its_values_apart():
    assert facts(space_of(("vm", "nodes", "cores", "memory")))[1].count("categorical") == 0


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (["n1", "e2"], None),
        (["8", "16", "128"], [3.0, 4.0, 7.0]),
        (["small", "medium", "2xlarge"], [-2.0, -1.0, 2.0]),
        (["S", "M", "XL", "4XL"], [-2.0, -1.0, 1.0, 3.0]),
        (["0.5x", "1x"], [0.5, 1.0]),
        (["1 GB", "512 MB"], None),
        (["1", "1.0"], None),
        (["large", "metal"], None),
        ([1, 2], None),
        (["zip", "8"], None),
    ],
)
def test_labels_with_an_order(labels, found):
    ordered = ordered_labels(labels)
    assert (ordered is None) == (found is None)
    if ordered is not None:
        assert ordered[0].tolist() == found


def test_a_missing_size_is_the_mean_of_the_others_with_a_mark():
    memory = [None if name == "m4.large" else MACHINES[name][1] for name, _ in ROWS]
    space = Space.from_table({**TABLE, "memory": memory}, ["vm", "nodes"], ["nodes", "cores", "memory"], "usd")
    features, kinds = facts(space)
    assert kinds == ("numeric", "numeric", "log", "categorical", "log")
    unknown = np.array([cell is None for cell in memory])
    known = np.log2([cell for cell in memory if cell is not None])
    np.testing.assert_allclose(features[unknown, 2], known.mean())
    np.testing.assert_array_equal(features[:, 3] > 0, unknown)
    assert np.isfinite(prediction_of(space)[0]).all()
