"""What models read of a space."""

import numpy as np

from lynceus.space import Categorical, Integer, Mapped, Space
from lynceus.surrogate.inputs import model_inputs, spelled_out


def test_a_machine_whose_sizes_are_columns_needs_no_name() -> None:
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
    assert kinds.count("categorical") == 1, "a codec is nothing but its name"


def test_a_name_stays_while_two_of_its_values_look_alike() -> None:
    space = Space.build(
        [Categorical("vm", ["a", "b", "c"]), Integer("nodes", values=[1, 2])],
        derived=[Mapped("cores", "vm", {"a": 2, "b": 4, "c": 4}, feature=True)],
        price="nodes * cores * 0.1",
    )
    _, kinds = model_inputs(space, "sizes and price")
    assert "categorical" in kinds


def test_of_two_names_for_the_same_thing_one_stays() -> None:
    features = np.array([[0, 5, 1.0], [1, 6, 2.0], [0, 5, 3.0]])
    assert spelled_out(features, ["categorical", "categorical", "numeric"]) == {0}


def test_a_column_that_varies_within_a_name_does_not_spell_it_out() -> None:
    features = np.array([[0, 1.0], [0, 2.0], [1, 3.0]])
    assert not spelled_out(features, ["categorical", "numeric"])
