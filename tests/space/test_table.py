"""The space as a value: rows, points, prices, tables, fingerprints."""

import csv
import dataclasses
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from lynceus.cli.check import space_text
from lynceus.errors import InputError
from lynceus.space.derived import Computed, Joined, Mapped
from lynceus.space.parameter import Categorical, Float, Integer, Ordinal
from lynceus.space.table import Space

DATA = Path(os.environ.get("LYNCEUS_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
TABLE = {
    "vm": ["small", "small", "large"],
    "nodes": [2, 4, 2],
    "ram": [4, 8, 16],
    "time_s": [90.0, 50.0, 30.0],
    "usd": [0.36, 0.72, 1.8],
}


def space_of(**changes):
    arguments = {
        "parameters": [Categorical("vm", ["small", "large"]), Integer("nodes", 1, 3)],
        "derived": [Mapped("usd", "vm", {"small": 0.1, "large": 0.3}, feature=False)],
        "forbid": ["vm == 'large' and nodes == 3"],
        "price": "usd * nodes",
    }
    return Space.build(**{**arguments, **changes})


def table_of(changes=None, **arguments):
    defaults = {"parameters": ["vm", "nodes"], "price": "usd"}
    return Space.from_table({**TABLE, **(changes or {})}, **{**defaults, **arguments})


def test_points_prices_and_columns():
    space = space_of()
    assert len(space) == 5
    assert space.point(1) == {"vm": "small", "nodes": 2}
    assert space.price_per_second == pytest.approx(np.array([0.1, 0.2, 0.3, 0.3, 0.6]) / 3600)
    assert space.mask("nodes > 1 and vm == 'small'").tolist() == [False, True, True, False, False]
    assert space.column("nodes").tolist() == [1, 2, 3, 1, 2]
    assert space.feature_names == ("vm", "nodes")
    assert space.notes == ()


def test_points_carry_the_users_own_values():
    space = Space.build([Ordinal("a", [1, 2.5]), Categorical("b", [True, "x"]), Integer("c", 1, 1)], price="1")
    assert [type(value) for value in space.point(0).values()] == [int, bool, int]
    assert space.row({"a": 1.0, "b": True, "c": 1}) == 0


@pytest.mark.parametrize(
    ("point", "words"),
    [
        ({"vm": "small", "node": 1}, "unknown parameter 'node'. Did you mean 'nodes'?"),
        ({"vm": "small"}, "lacks the parameter 'nodes'; give one of 1, 2, 3"),
        ({"vm": "smal", "nodes": 1}, "'vm' cannot be 'smal'. Did you mean 'small'?"),
        ({"vm": "small", "nodes": 7}, "'nodes' cannot be 7. The nearest is 3."),
        ({"vm": "small", "nodes": "2"}, "'nodes' cannot be '2'. Did you mean 2?"),
        ({"vm": "large", "nodes": 3}, "is not in the space"),
        ({"vm": "large", "nodes": 3}, "vm=small, nodes=3, which differs in vm"),
    ],
)
def test_the_error_for_an_unknown_point_names_the_difference(point, words):
    with pytest.raises(InputError) as caught:
        space_of().row(point)
    assert words in str(caught.value)


def test_a_value_for_an_inactive_parameter_is_an_error():
    space = Space.build([Integer("a", 1, 2), Integer("b", 1, 2, when="a == 2")], price=1)
    assert space.row({"a": 1}) == space.row({"a": 1, "b": None}) == 0
    with pytest.raises(InputError, match="differs in b"):
        space.row({"a": 1, "b": 1})


def test_a_parameter_with_a_single_value_need_not_be_named():
    space = Space.build([Categorical("infra", ["aws"]), Integer("b", 1, 2), Integer("c", values=[3])], price=1)
    assert space.row({"b": 2}) == space.row({"infra": "aws", "b": 2, "c": 3}) == 1
    with pytest.raises(InputError, match="'infra' cannot be 'gcp'"):
        space.row({"infra": "gcp", "b": 2})


@pytest.mark.parametrize("row", [-1, 5])
def test_rows_outside_are_errors(row):
    with pytest.raises(InputError, match="rows are 0 to 4"):
        space_of().point(row)


def test_unknown_columns_are_errors():
    with pytest.raises(InputError, match="Did you mean 'nodes'"):
        space_of().column("nodess")
    with pytest.raises(InputError, match="unknown name 'nodess'"):
        space_of().mask("nodess > 1")


def test_an_expression_that_forbids_nothing_is_noted():
    space = space_of(forbid=["nodes > 5"])
    assert space.notes == ("forbid, entry 1: 'nodes > 5' forbids no configuration.",)
    assert "note: forbid, entry 1" in space_text(space)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"forbid": ["nodes > 1", "nodes < 2"]}, "entry 2: 'nodes < 2' removes the last 2 of 6"),
        ({"forbid": "nodes > 1"}, "a list of expressions is needed"),
        ({"forbid": ["nodes > "]}, "forbid, entry 1: 'nodes >' cannot be read"),
        ({"forbid": ["nodes > 'a'"]}, "forbid, entry 1: \"nodes > 'a'\" at character 1: this orders"),
        ({"price": "usd * node"}, "price 'usd * node' uses the unknown name 'node'"),
        ({"price": "usd - 0.1"}, "is 0.0 in rows 1, 2, 3 (vm=small, nodes=1), but dollars per hour above 0"),
        ({"price": "vm"}, "'vm' is 'small' in rows 1, 2, 3 (5 in all)"),
        ({"price": "nodes > 0"}, "is true in rows"),
        ({"price": -1}, "is -1 in rows"),
        ({"price": None}, "price is no value, but an expression"),
    ],
)
def test_errors_in_forbid_and_price(changes, words):
    with pytest.raises(InputError) as caught:
        space_of(**changes)
    assert words in str(caught.value)


def test_a_price_that_depends_on_an_inactive_parameter_is_an_error():
    with pytest.raises(InputError, match=r"has no value in row 1 .*, where b does not exist"):
        Space.build([Integer("a", 1, 2), Integer("b", 1, 2, when="a == 2")], price="b")


def test_the_price_is_not_a_feature_unless_it_is_asked_for():
    usd = Mapped("usd", "vm", {"small": 0.1, "large": 0.3})
    assert space_of(derived=[usd], price="usd").feature_names == ("vm", "nodes")
    assert table_of(features=["nodes", "usd"]).feature_names == ("nodes", "usd")


def test_a_table_keeps_its_order_and_leaves_results_out():
    space = table_of()
    assert [space.point(row) for row in range(3)] == [
        {"vm": "small", "nodes": 2},
        {"vm": "small", "nodes": 4},
        {"vm": "large", "nodes": 2},
    ]
    assert space.parameters == (Categorical("vm", ("small", "large")), Ordinal("nodes", (2, 4)))
    assert list(space.columns) == ["vm", "nodes", "usd"]
    assert space.price_per_second == pytest.approx([0.0001, 0.0002, 0.0005])


def test_a_table_may_have_features_derived_columns_and_forbidden_rows():
    space = table_of(
        features=["nodes", "ram"],
        derived=[Computed("total", "ram * nodes"), Joined("vm", [{"vm": "small", "v": 1}, {"vm": "large", "v": 4}])],
        forbid=["ram > 10"],
    )
    assert len(space) == 2
    assert space.feature_names == ("nodes", "ram", "total")
    assert space.column("v").tolist() == [1, 1]


def test_a_table_may_hold_conditional_parameters():
    columns = {"a": [1, 2, 2], "b": [None, 10, 20], "usd": [1, 1, 1]}
    parameters = [Integer("a", 1, 2), Integer("b", values=[10, 20], when="a == 2")]
    listed = Space.from_table(columns, parameters, price="usd")
    built = Space.build(parameters, price=1)
    assert np.array_equal(listed.codes, built.codes)
    assert np.array_equal(listed.features, built.features)
    for rows, words in (([5, 10, 20], "holds 5"), ([10, 10, 20], "has a value where it is inactive in row 1")):
        with pytest.raises(InputError, match=words):
            Space.from_table({**columns, "b": rows}, parameters, price="usd")
    with pytest.raises(InputError, match="'b' is empty where it is active in row 2: it is active when 'a == 2'"):
        Space.from_table({**columns, "b": [None, None, 20]}, parameters, price="usd")


@pytest.mark.parametrize(
    ("changes", "arguments", "words"),
    [
        ({}, {"parameters": ["vm", "node"]}, "no column 'node'. Did you mean 'nodes'?"),
        ({}, {"parameters": []}, "at least one parameter"),
        ({}, {"parameters": "vm"}, "a list of names is needed: ['vm']"),
        ({}, {"features": "ram"}, "a list of names is needed: ['ram']"),
        ({}, {"price": ["usd"]}, "price is a list, but an expression"),
        ({}, {"parameters": ["vm", "vm"]}, "Two parameters are named 'vm'"),
        ({}, {"features": ["rum"]}, "no column 'rum'. Did you mean 'ram'?"),
        ({}, {"price": "price_usd_per_hour"}, "unknown name 'price_usd_per_hour'"),
        ({"nodes": [2, 2, 2]}, {}, "row 2 equals row 1 in vm, nodes"),
        ({"nodes": [2, 4]}, {}, "Column 'nodes' has 2 rows and column 'vm' has 3"),
        ({"nodes": [2, np.nan, 4]}, {}, "Column 'nodes' holds nan in row 2"),
        ({"nodes": [2, None, 4]}, {}, "Column 'nodes' is empty in row 2"),
        ({"nodes": [2, [1], 4]}, {}, "Column 'nodes', row 2 is a list, but"),
        ({"nodes": "245"}, {}, "a list with one value per configuration"),
        ({"nodes": 3}, {}, "a list with one value per configuration"),
        ({"usd": [0.1, 0, -1]}, {}, "'usd' is 0.0 in rows 2, 3 (vm=small, nodes=4)"),
        ({"usd": ["0.1", "0.2", "x"]}, {}, "'usd' is '0.1' in rows 1, 2, 3"),
        ({"vm": [], "nodes": [], "usd": []}, {}, "has no rows"),
        ({}, {"parameters": [Categorical("vm", ["small", "larg"]), "nodes"]}, "holds 'large' in row 3"),
    ],
)
def test_errors_in_a_table_name_column_and_rows(changes, arguments, words):
    with pytest.raises(InputError) as caught:
        table_of(changes, **arguments)
    assert words in str(caught.value)


def test_a_list_of_rows_is_not_a_table():
    with pytest.raises(InputError, match="columns by name are needed"):
        Space.from_table([{"vm": "small"}], ["vm"])


def test_a_space_prints_in_one_line():
    assert repr(space_of()) == "<Space of 5 configurations: vm, nodes>"


def test_only_columns_that_matter_are_checked():
    assert len(table_of({"time_s": [np.nan, None, -1]})) == 3


def test_arrays_are_read_only_also_after_unpickling():
    for space in (space_of(), pickle.loads(pickle.dumps(space_of()))):
        for array in (space.features, space.codes, space.price_per_second, *space.columns.values()):
            assert not array.flags.writeable
        assert space == space_of()


def test_the_callers_arrays_stay_writable():
    nodes = np.array([2, 4, 2])
    table_of({"nodes": nodes})
    nodes[0] = 9
    assert nodes[0] == 9


def test_the_fingerprint_depends_on_the_content_only():
    assert space_of() == space_of()
    assert hash(space_of()) == hash(space_of())
    assert space_of(forbid=["nodes == 3 and vm == 'large'"]).fingerprint == space_of().fingerprint
    different = [
        space_of(forbid=[]),
        space_of(price="usd * nodes * 2"),
        space_of(parameters=[Categorical("vm", ["small", "large"]), Float("nodes", 1, 3, step=1)]),
        space_of(derived=[Mapped("usd", "vm", {"small": 0.1, "large": 0.3})]),
    ]
    assert len({space_of().fingerprint, *(space.fingerprint for space in different)}) == 5
    assert space_of() != "space"


def test_the_fingerprint_does_not_change_between_releases():
    """Storages hold it: after a change here, earlier studies cannot be resumed."""
    assert space_of().fingerprint == "4d40efdfbf3b7b2af75ca177371bd201bda654e403fd4b9f978bc9f7e6c2da88"


def test_the_description_is_short_and_says_size_parameters_and_prices():
    assert space_text(space_of()).splitlines() == [
        "5 configurations, $0.10 to $0.60 per hour",
        "  vm (categorical): 'small', 'large'",
        "  nodes (integer): 1, 2, 3",
    ]


def test_parts_of_different_lengths_are_an_error():
    whole = space_of()
    with pytest.raises(InputError, match="columns of lengths"):
        dataclasses.replace(whole, features=whole.features[:2])
    with pytest.raises(InputError, match="2 features was given 1 names and 2 kinds"):
        dataclasses.replace(whole, feature_names=("vm",))


@pytest.mark.parametrize(
    ("name", "parameters", "rows"),
    [
        ("tensorflow/cnn", ["vm_type", "vcpus", "learning_rate", "batch_size", "sync"], 384),
        ("scout/lr_huge_spark", ["vm_family", "vm_size", "nodes"], 69),
        ("subsampling/rnn", ["vm_type", "vcpus", "learning_rate", "batch_size", "sync", "data_fraction"], 1440),
    ],
)
def test_measured_tables_are_spaces(name, parameters, rows):
    path = DATA / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not here: set LYNCEUS_DATA to the folder of measured tables")
    with path.open(newline="") as file:
        table = list(csv.DictReader(file))
    columns = {key: [_typed(row[key]) for row in table] for key in table[0]}
    space = Space.from_table(columns, parameters)
    assert len(space) == rows
    assert space.price_per_second * 3600 == pytest.approx(columns["price_usd_per_hour"])
    assert [space.row(space.point(row)) for row in range(0, rows, 7)] == list(range(0, rows, 7))


def _typed(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
