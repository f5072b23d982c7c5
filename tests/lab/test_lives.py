"""Lives of recurring jobs: the same for every policy, lived with the product's own decider; changes are found in time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from lynceus.trial.outcome import FailureReason
from lynceus_lab.cli import lab
from lynceus_lab.life_detection import alarms, delay
from lynceus_lab.life_policies import Guarded, NeverTouch, search
from lynceus_lab.life_results import best_fixed, live, oracle
from lynceus_lab.life_tables import SYNTHETIC, life_table
from lynceus_lab.lives import KINDS, LATE_CHANCE, life


def test_a_life_is_the_same_every_time() -> None:
    for kind in KINDS:
        one, other = life("synthetic-0", kind, 3, 60), life("synthetic-0", kind, 3, 60)
        assert np.array_equal(one.typical_s(59), other.typical_s(59))
        assert np.array_equal(one.usd_per_hour(59), other.usd_per_hour(59))
        assert one.interruptions == other.interruptions
        assert one.deadline_s == other.deadline_s


def test_tables_are_interpolated_between_their_sizes() -> None:
    table = life_table(SYNTHETIC[0])
    assert np.allclose(table.seconds_at(float(table.sizes[2])), table.seconds[2])
    between = table.seconds_at(float(np.sqrt(table.sizes[1] * table.sizes[2])))
    assert np.allclose(between, np.sqrt(table.seconds[1] * table.seconds[2]))


def test_the_oracle_is_cheapest_among_what_is_on_time() -> None:
    one = life("synthetic-3", "growth", 1, 80)
    best, fixed = oracle(one), best_fixed(one)
    assert np.mean(best.late) <= LATE_CHANCE + 0.02
    assert sum(best.usd) <= 1.02 * sum(fixed.usd)


def test_nothing_is_changed_in_a_quiet_life() -> None:
    one = life("synthetic-3", "quiet", 0, 100)
    first = search(one, 0, 0)
    ours, never = Guarded(one, first), NeverTouch(one, first)
    assert live(one, "ours", ours).usd == live(one, "never", never).usd
    assert sum(run.reason is FailureReason.INFRA for run in ours.record.runs) > 0
    assert ours.changes == 0


def test_a_growing_input_is_followed() -> None:
    one = life("synthetic-5", "growth", 0)
    first = search(one, 0, 0)
    ours, never = Guarded(one, first), NeverTouch(one, first)
    lived, kept = live(one, "ours", ours), live(one, "never", never)
    assert ours.changes > 0
    assert sum(lived.late) < 0.2 * sum(kept.late)
    assert sum(lived.usd) < sum(kept.usd)


@pytest.mark.parametrize(("variation", "limit"), [(0.05, 5), (0.1, 12)])
def test_a_change_of_a_fifth_is_found_in_time(variation: float, limit: int) -> None:
    delays = [delay(0.2, variation, 50, "step", "heavy tails", seed) for seed in range(20)]
    assert np.quantile(delays, 0.8) <= limit


def test_noise_is_hardly_ever_taken_for_a_change() -> None:
    found = [alarms(200, 0.05, "heavy tails", seed) for seed in range(8)]
    assert sum(one for one, _ in found) <= 2
    assert sum(sure for _, sure in found) == 0


def test_the_command_keeps_what_it_lived(tmp_path: Path) -> None:
    store = tmp_path / "lives.jsonl"
    arguments = [
        "lives",
        "run",
        "--tables",
        "synthetic-5",
        "--kinds",
        "quiet",
        "--seeds",
        "1",
        "--runs",
        "40",
        "--store",
        str(store),
    ]
    first = CliRunner().invoke(lab, arguments)
    assert first.exit_code == 0, first.output
    assert "| quiet | 1 |" in first.output
    kept = store.read_text(encoding="utf-8")
    assert CliRunner().invoke(lab, arguments).exit_code == 0
    assert store.read_text(encoding="utf-8") == kept
