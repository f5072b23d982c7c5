"""Given values, completed by those of a known configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import lynceus
from lynceus.errors import InputError
from lynceus.library.recurring.completed_params import completed_row

SPACE = lynceus.Space.build(
    [
        lynceus.Categorical("vm", ["small", "large"]),
        lynceus.Ordinal("nodes", [1, 2, 4]),
        lynceus.Categorical("codec", ["zstd", "none"]),
        lynceus.Ordinal("level", [1, 2], when="codec == 'zstd'"),
    ],
    price="nodes",
    forbid=["vm == 'large' and nodes == 4"],
)
BASE = {"vm": "small", "nodes": 2, "codec": "zstd", "level": 2}


def completed(given: Mapping[str, Any], base: Mapping[str, Any] | None = BASE) -> dict[str, Any]:
    return SPACE.point(completed_row(SPACE, given, lambda: base, ["lynceus", "adopt", "my job"]))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"nodes": 4}, BASE | {"nodes": 4}),
        ({}, BASE),
        (BASE, BASE),
        ({"codec": "none"}, {"vm": "small", "nodes": 2, "codec": "none"}),
        ({"codec": "none", "level": None}, {"vm": "small", "nodes": 2, "codec": "none"}),
        ({"level": 1, "vm": None}, BASE | {"level": 1}),
    ],
)
def test_values_that_are_not_given_are_the_known_ones(given: dict[str, Any], found: dict[str, Any]) -> None:
    assert completed(given) == found


def test_the_known_configuration_is_asked_for_only_where_it_is_needed() -> None:
    def unknown() -> Mapping[str, Any]:
        raise AssertionError("every value is given")

    assert SPACE.point(completed_row(SPACE, BASE, unknown, ["x"])) == BASE


@pytest.mark.parametrize(
    ("given", "base", "said"),
    [
        (
            {"nodes": 2, "codec": "none"},
            None,
            "vm is not given, and there is no configuration yet to take it from; give every value: "
            "lynceus adopt 'my job' --param nodes=2 --param codec=none --param vm=VALUE (vm may be 'small', 'large').",
        ),
        (
            {"vm": "small"},
            None,
            "nodes and codec and level are not given, and there is no configuration yet to take them from; give every value: "
            "lynceus adopt 'my job' --param vm=small --param nodes=VALUE --param codec=VALUE --param level=VALUE (nodes may be "
            "1, 2, 4; codec may be 'zstd', 'none'; level may be 1, 2).",
        ),
        (
            {"codec": "zstd"},
            {"vm": "small", "nodes": 1, "codec": "none"},
            "level is not given, and the configuration of the other values does not have it; give every value: "
            "lynceus adopt 'my job' --param codec=zstd --param level=VALUE (level may be 1, 2).",
        ),
        ({"nodes": 3}, BASE, "The parameter 'nodes' cannot be 3. The nearest are 2 and 4."),
        ({"nods": 2}, BASE, "The configuration names the unknown parameter 'nods'. Did you mean 'nodes'?"),
        (
            {"vm": "large"},
            BASE | {"nodes": 4},
            "The configuration nodes=4, codec=zstd, level=2, vm=large is not in the space (it is forbidden or was not listed); the nearest "
            "is vm=small, nodes=4, codec=zstd, level=2, which differs in vm.",
        ),
    ],
)
def test_what_is_missing_or_impossible_is_named(given: dict[str, Any], base: Any, said: str) -> None:
    with pytest.raises(InputError) as refused:
        completed(given, base)
    assert str(refused.value) == said
