"""The inputs of models."""

import numpy as np

from lynceus.models.described import redundant_names
from lynceus.models.features import model_inputs
from lynceus.space.derived import Mapped
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space


def test_a_machine_whose_sizes_are_columns_needs_no_name_column() -> None:
    space = Space.build(
        [Categorical("vm", ["a", "b", "c"]), Categorical("codec", ["zip", "lz4"]), Integer("nodes", values=[1, 2, 4])],
        derived=[
            Mapped("cores", "vm", {"a": 2, "b": 4, "c": 4}, feature=True),
            Mapped("memory", "vm", {"a": 4, "b": 8, "c": 16}, feature=True),
        ],
        price="nodes * cores * 0.1",
    )
    features, kinds = model_inputs(space, "sizes and price")
    named = [name for name in space.feature_names if name != "vm"]
    assert features.shape[1] == len(kinds) == len(named) + 1, "all but the machine's name, and the price"
    assert kinds.count("categorical") == 1, "a codec has no other columns than its name"


def test_a_name_stays_if_two_of_its_values_have_equal_columns() -> None:
    space = Space.build(
        [Categorical("vm", ["a", "b", "c"]), Integer("nodes", values=[1, 2])],
        derived=[Mapped("cores", "vm", {"a": 2, "b": 4, "c": 4}, feature=True)],
        price="nodes * cores * 0.1",
    )
    _, kinds = model_inputs(space, "sizes and price")
    assert "categorical" in kinds


def test_of_two_equivalent_names_one_stays() -> None:
    features = np.array([[0, 5, 1.0], [1, 6, 2.0], [0, 5, 3.0]])
    assert redundant_names(features, ["categorical", "categorical", "numeric"]) == {0}


def test_a_column_that_varies_within_a_name_does_not_make_it_redundant() -> None:
    features = np.array([[0, 1.0], [0, 2.0], [1, 3.0]])
    assert not redundant_names(features, ["categorical", "numeric"])
