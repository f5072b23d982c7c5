"""A pattern that cuts numbers: noted before a run, and never a wrong value after it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

BETTER = r"error: ([-+]?\d*\.?\d+(?:[eE][-+]?\d+)?)"
JOB = r"""
version: 1
name: cut
run: [sh, -c, 'echo "error: 0.$LYNCEUS_PARAM_LEVEL"']
space: {level: {int: [1, 3]}}
price: 0.05
metrics: {error: 'error: (\d+)'}
objective: minimize error
budget: {cost: 0.05 USD, max_trials: 3}
trial: {max_duration: 1m}
"""


def noted(lynceus, here: Path, job: str) -> list[str]:
    (here / "cut.yaml").write_text(job)
    code, out, _ = lynceus("check", "cut.yaml", "-o", "json")
    assert code == 0
    return [note for note in json.loads(out)["notes"] if "metrics.error" in note]


@pytest.mark.parametrize(
    ("old", "new", "notes"),
    [
        ("", "", 1),
        (r"error: (\d+)", BETTER, 0),
        (r"error: (\d+)", r"error: (\d+) lines", 0),
        ("minimize error", 'cost\nconstraints: ["error <= 0.5"]', 1),
        ("minimize error", 'cost\nconstraints: ["error <= 500"]', 0),
    ],
)
def test_a_pattern_for_whole_numbers_is_noted_where_decimals_are_likely(
    lynceus, here: Path, old: str, new: str, notes: int
) -> None:
    found = noted(lynceus, here, JOB.replace(old, new))
    assert (
        found
        == [
            f"metrics.error: the pattern takes 0 of 0.93; write '{BETTER}', unless the metric is always a whole number."
        ]
        * notes
    )


def test_a_run_fails_with_the_pattern_to_write_and_succeeds_with_it(lynceus, here: Path) -> None:
    (here / "cut.yaml").write_text(JOB)
    lynceus("run", "-y", "cut.yaml")
    rows = json.loads(lynceus("trials", "cut", "-o", "json")[1])
    assert {row["state"] for row in rows} == {"FAIL"}
    assert all(
        f"error was not read, because its pattern takes 0 of 0.{row['params']['level']}" in row["detail"]
        for row in rows
    )
    assert all(f"write '{BETTER}'" in row["detail"] for row in rows)
    (here / "whole.yaml").write_text(JOB.replace(r"error: (\d+)", BETTER).replace("name: cut", "name: whole"))
    assert lynceus("run", "-y", "whole.yaml")[0] == 0
    rows = json.loads(lynceus("trials", "whole", "-o", "json")[1])
    assert sorted(row["metrics"]["error"] for row in rows) == [0.1, 0.2, 0.3]
