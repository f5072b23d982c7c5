"""What a reader does with README and guide: every block in order, typed into a shell, and what must come out of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from doc_blocks import Step, agrees
from shell_session import shell

ROOT = Path(__file__).parents[1]
README, GUIDE = ROOT / "README.md", ROOT / "docs" / "guide.md"
SMALL = {
    "seq 500000": "seq 50000",
    "bytes <= 1050000": "bytes <= 105000",
    "budget: {cost: 0.05 USD": "budget: {cost: 0.05 USD, max_trials: 4",
    ", max_trials: 4, max_trials: 20}": ", max_trials: 4}",
    "--seeds 5": "--seeds 1",
}
"""The quick form: less data and fewer trials, nothing else."""
EXACT = re.compile(r"lynceus (?:check|plan) ")
"""These print the same on every machine."""
COMMAND_S = 300.0


def user_environment(programs: Path) -> dict[str, str]:
    """The environment of a user with these programs on the PATH, without settings of Lynceus."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LYNCEUS_")}
    return kept | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}


def follow(
    page: Sequence[Step], folder: Path, environment: Mapping[str, str], *, small: bool = False, before: str = ""
) -> int:
    """Do what a page says. Returns how often money was agreed to."""
    with shell(folder, environment) as session:
        if before:
            assert session.run(before, COMMAND_S)[0] == 0
        for step in page:
            if step.file:
                (folder / step.file).write_text(quick(step.text) if small else step.text)
                continue
            command = quick(step.command) if small else step.command
            code, printed = session.run(command, COMMAND_S)
            fails = (step.shown or "").startswith("lynceus: ")
            assert (code != 0) == fails, f"line {step.line}: {command} ended with {code}:\n{printed}"
            assert "Traceback" not in printed, f"line {step.line}: {command}:\n{printed}"
            if step.shown is not None:
                shown = quick(step.shown) if small else step.shown
                exactly = bool(EXACT.match(command)) and not small
                assert agrees(shown, printed, exactly=exactly), f"line {step.line}: {command} prints\n{printed}"
        return session.answered


def quick(text: str) -> str:
    for old, new in SMALL.items():
        text = text.replace(old, new)
    return text


def answer(folder: Path, environment: Mapping[str, str], *arguments: str) -> Any:
    """A command of Lynceus in the folder of a page, as JSON."""
    command = ["lynceus", *arguments, "-o", "json"]
    done = subprocess.run(command, cwd=folder, env=dict(environment), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def check_answer(folder: Path, environment: Mapping[str, str], *, most_bytes: int | None = None) -> None:
    """The search of a page found a configuration that keeps its limits, for less than its budget."""
    best = answer(folder, environment, "best", "pipeline")
    assert best["params"]["threads"] in (1, 2, 4)
    assert 1 <= best["params"]["level"] <= 9
    assert 0 < best["cost_usd"] < 0.05
    trials = answer(folder, environment, "trials", "pipeline")
    assert sum(one["charged_usd"] for one in trials) <= 0.05
    finished = [one for one in trials if one["params"] == best["params"] and one["state"] == "COMPLETE"]
    assert finished
    assert all(one["keeps_constraints"] and one["runtime_s"] <= 30 for one in finished)
    if most_bytes is not None:
        assert all(0 < one["metrics"]["bytes"] <= most_bytes for one in finished)


def check_guide(tmp_path: Path, environment: Mapping[str, str]) -> None:
    """What the commands of the guide leave behind."""
    check_answer(tmp_path, environment, most_bytes=1_050_000)
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert (tmp_path / "trials.csv").read_text().count("\n") > 4
    assert re.search(r"^\w*LEVEL=", (tmp_path / "best.env").read_text(), re.MULTILINE | re.IGNORECASE)
    imported = answer(tmp_path, environment, "trials", "pipeline", "--storage", "sqlite:///next.db")
    assert [(one["params"]["threads"], one["runtime_s"], one["charged_usd"]) for one in imported] == [
        (1, 2.4, 0),
        (2, 1.9, 0),
    ]
