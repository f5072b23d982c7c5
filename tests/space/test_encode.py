"""The features of a space."""

import numpy as np
import pytest

from lynceus.space.derived import Computed, Mapped
from lynceus.space.parameter import Categorical, Float, Integer, Ordinal
from lynceus.space.table import Space


def features(*parameters, derived=(), forbid=()):
    space = Space.build(parameters, derived=derived, forbid=forbid, price=1)
    return {
        name: (kind, space.features[:, index].tolist())
        for index, (name, kind) in enumerate(zip(space.feature_names, space.feature_kinds, strict=True))
    }


def test_categories_are_codes_in_the_order_of_their_values():
    assert features(Categorical("a", ["z", "b", 3])) == {"a": ("categorical", [0, 1, 2])}


def test_codes_do_not_move_when_values_are_forbidden():
    assert features(Categorical("a", ["z", "b", "c"]), forbid=["a == 'b'"]) == {"a": ("categorical", [0, 2])}


def test_booleans_are_zero_and_one_whatever_their_order():
    assert features(Categorical("a", [True, False])) == {"a": ("categorical", [1, 0])}
    assert features(Ordinal("a", [True, False])) == {"a": ("categorical", [1, 0])}


def test_ordinal_texts_are_positions_and_ordinal_numbers_are_numbers():
    assert features(Ordinal("a", ["low", "mid", "top"])) == {"a": ("numeric", [0, 1, 2])}
    assert features(Ordinal("a", [2, 4, 15])) == {"a": ("numeric", [2, 4, 15])}


def test_log_parameters_are_logarithms_and_others_are_not():
    assert features(Integer("a", 1, 64, log=True, steps=3)) == {"a": ("log", [0, 3, 6])}
    assert features(Float("a", values=[0.25, 8], log=True)) == {"a": ("log", [-2, 3])}
    assert features(Integer("a", values=[1, 64])) == {"a": ("numeric", [1, 64])}


def test_numbers_of_unstated_scale_are_logarithms_when_they_span_a_factor_of_eight():
    assert features(Ordinal("a", [1, 2, 8])) == {"a": ("log", [0, 1, 3])}
    assert features(Ordinal("a", [0, 1, 8])) == {"a": ("numeric", [0, 1, 8])}
    derived = [Mapped("ram", "a", {"s": 2, "l": 16}), Computed("less", "ram - 20")]
    found = features(Categorical("a", ["s", "l"]), derived=derived)
    assert found["ram"] == ("log", [1, 4])
    assert found["less"] == ("numeric", [-18, -4])


def test_constant_features_are_dropped_and_their_columns_stay():
    space = Space.build([Categorical("a", ["x"]), Integer("b", 1, 3)], derived=[Computed("c", "7")], price=1)
    assert space.feature_names == ("b",)
    assert space.column("a").tolist() == ["x"] * 3
    assert space.column("c").tolist() == [7] * 3
    alone = Space.build([Categorical("a", ["x"])], price=1)
    assert alone.features.shape == (1, 0)


@pytest.mark.parametrize(
    ("parameter", "inactive"),
    [
        (Categorical("b", ["x", "y"], when="a > 1"), -1),
        (Ordinal("b", ["x", "y"], when="a > 1"), -1),
        (Categorical("b", [False, True], when="a > 1"), -1),
        (Integer("b", values=[10, 30], when="a > 1"), -10),
        (Integer("b", values=[4, 16], log=True, when="a > 1"), 0),
        (Integer("b", values=[5], when="a > 1"), 4),
    ],
)
def test_inactive_is_one_step_below_the_smallest(parameter, inactive):
    _, values = features(Integer("a", 1, 2), parameter)["b"]
    assert values[0] == inactive
    assert min(values[1:]) > inactive


def test_derived_text_asked_for_is_coded_by_its_sorted_values():
    derived = [Mapped("arch", "a", {1: "x86", 2: "arm", 3: "x86"}, feature=True)]
    assert features(Integer("a", 1, 3), derived=derived)["arch"] == ("categorical", [1, 0, 1])


def test_every_configuration_has_its_own_features():
    space = Space.build([Integer("a", 1, 4), Categorical("b", ["x", "y"], when="a > 2"), Ordinal("c", [1, 9])], price=1)
    assert len(np.unique(space.features, axis=0)) == len(space)
