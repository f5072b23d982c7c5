"""Memory needs from samples, and what they say of configurations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lynceus.errors import InputError
from lynceus.models.memory_need import MemoryNeed, memory_need, need_as_history, total_memory
from lynceus.space import Categorical, Ordinal, Space

SPACE = Space.build(
    [Ordinal("memory_gib", [8, 16, 32]), Ordinal("nodes", [1, 2, 4, 8])], price="0.01 * memory_gib * nodes"
)
GIB = 2.0**30


def test_a_straight_line_is_read_at_the_whole_input() -> None:
    need = memory_need([0.01, 0.03, 0.05], [1e9 + 100e9 * share for share in (0.01, 0.03, 0.05)], [10, 20, 30])
    assert need.kind == "linear"
    assert need.bytes == pytest.approx(101e9)
    assert need.seconds == pytest.approx(505)
    assert need.std == pytest.approx(0.35)


def test_noise_makes_it_softer_and_then_useless() -> None:
    shares = np.linspace(0.01, 0.05, 5)
    kinds, stds = [], []
    for noise in (0.0, 0.05e9, 3e9):
        peaks = 1e9 + 100e9 * shares + noise * np.array([1, -1, 1, -1, 1])
        found = memory_need(shares.tolist(), peaks.tolist(), [1.0] * 5)
        kinds.append(found.kind)
        stds.append(found.std)
    assert kinds == ["linear", "linear", "unclear"]
    assert stds == sorted(stds)


def test_memory_that_does_not_grow_says_nothing() -> None:
    assert memory_need([0.01, 0.02, 0.05], [2e9, 2e9, 2e9], [1, 2, 3]).kind == "flat"
    assert memory_need([0.01, 0.02, 0.05], [3e9, 2e9, 1e9], [1, 2, 3]).kind == "unclear"  # it shrinks
    with pytest.raises(InputError, match="two different ones"):
        memory_need([0.01], [1e9], [1.0])


def test_memory_is_that_of_all_machines() -> None:
    found = total_memory(SPACE)
    assert found is not None
    assert found[SPACE.row({"memory_gib": 16, "nodes": 4})] == 64 * GIB
    total = Space.from_table(
        {"vm": ["a", "a", "b"], "nodes": [2, 4, 2], "memory_mb": [2000, 4000, 8000], "usd": [1, 2, 2]},
        ["vm", "nodes"], ["nodes", "memory_mb"], "usd",
    )  # fmt: skip
    assert total_memory(total).tolist() == [2e9, 4e9, 8e9]  # type: ignore[union-attr]
    assert total_memory(Space.build([Categorical("memory", ["8g", "16g"])], price="1")) is None


def test_configurations_without_enough_memory_are_expected_to_be_slower() -> None:
    past = need_as_history(SPACE, MemoryNeed("linear", 100 * GIB, 0.3, 1.0, 500.0))
    assert past is not None
    seconds = np.array(past.seconds)
    small, large = (SPACE.row({"memory_gib": 8, "nodes": 1}), SPACE.row({"memory_gib": 32, "nodes": 8}))
    trend = math.sqrt(SPACE.price_per_second[large] / SPACE.price_per_second[small])
    assert seconds[small] / seconds[large] / trend == pytest.approx(1 + 3 * 0.92, rel=0.1)


@pytest.mark.parametrize("need", [1 * GIB, 10 * GIB])
def test_a_need_that_most_configurations_meet_is_not_used(need: float) -> None:
    assert need_as_history(SPACE, MemoryNeed("linear", need, 0.3, 1.0, 500.0)) is None


def test_only_a_straight_line_is_used() -> None:
    assert need_as_history(SPACE, MemoryNeed("unclear", 100 * GIB, 0.3, 0.8, 500.0)) is None


def test_machines_that_are_counted_in_words_tell_no_memory() -> None:
    space = Space.build([Ordinal("memory_gib", [8, 16]), Categorical("workers", ["few", "many"])], price="0.01")
    assert total_memory(space) is None


def test_samples_need_less_memory_and_less_time() -> None:
    space = Space.build(
        [Ordinal("memory_gib", (8, 16, 32)), Ordinal("nodes", (1, 2, 4, 8)), Ordinal("share", (0.1, 1.0))],
        price="0.01 * memory_gib * nodes",
    )
    need = MemoryNeed("linear", 100 * GIB, 0.3, 1.0, 500.0)
    past, whole = need_as_history(space, need, "share"), need_as_history(SPACE, need)
    assert past is not None
    assert whole is not None
    shares, seconds = np.array(past.columns["share"]), np.array(past.seconds)
    assert seconds[shares == 1.0] == pytest.approx(np.array(whole.seconds))
    enough = np.array(past.columns["memory_gib"], dtype=float) * np.array(past.columns["nodes"], dtype=float) * GIB
    little = (shares == 0.1) & (enough > 40 * GIB) & (enough < 100 * GIB)
    same = np.roll(little, 1)  # the same machines with the whole input
    assert (seconds[little] < 0.09 * seconds[same]).all(), "a tenth of the data fits where all of them do not"
