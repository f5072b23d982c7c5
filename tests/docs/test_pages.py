"""README and guide work as printed: every block, in order, typed into a shell in a fresh folder, and their answers are right."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import yaml

from doc_blocks import steps
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from readers import GUIDE, README, ROOT, SMALL, answer, check_answer, check_guide, follow, user_environment

MAKE = 'make() { command make --dry-run "$@"; }'
"""The tests cannot install their own environment or start themselves: `make` only says what it would do."""


def installed_here() -> dict[str, str]:
    """The environment of a user who has activated the environment of these tests."""
    return user_environment(Path(sys.executable).parent)


def checkout(folder: Path) -> Path:
    """What `make` and `. .venv/bin/activate` need of a checkout, with the environment of these tests."""
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "setup.py", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    (folder / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    return folder


@pytest.mark.parametrize("small", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_every_block_of_the_readme_runs_in_order(tmp_path: Path, small: bool) -> None:
    folder, environment = checkout(tmp_path / "lynceus"), installed_here()
    assert follow(steps(README), folder, environment, small=small, before=MAKE) == 1, "run asks once"
    check_answer(folder, environment)


def test_the_job_of_the_guide_finds_a_configuration(tmp_path: Path) -> None:
    guide, environment = steps(GUIDE), installed_here()
    upto = [step.command for step in guide].index("lynceus run job.yaml")
    assert follow(guide[: upto + 1], tmp_path, environment, small=True) == 1, "run asks once"
    check_answer(tmp_path, environment, most_bytes=105_000)


@pytest.mark.slow
def test_every_block_of_the_guide_runs_in_order(tmp_path: Path) -> None:
    environment = installed_here()
    assert follow(steps(GUIDE), tmp_path, environment) == 1, "run asks once"
    check_guide(tmp_path, environment)


@pytest.mark.slow
def test_every_block_of_the_page_on_serving_runs_in_order(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    follow(steps(ROOT / "docs" / "serving.md"), tmp_path, installed_here())
    deployment, service = yaml.safe_load_all((tmp_path / "chat.yaml").read_text())
    assert (deployment["kind"], service["kind"]) == ("Deployment", "Service")
    assert yaml.safe_load((tmp_path / "service.yaml").read_text())["service"]["readiness_probe"]["path"] == "/health"


def test_every_block_of_the_page_on_training_runs_in_order(tmp_path: Path) -> None:
    environment = installed_here()
    assert follow(steps(ROOT / "docs" / "training.md"), tmp_path, environment) == 1, "run asks once"
    trials = answer(tmp_path, environment, "trials", "classifier")
    best = answer(tmp_path, environment, "best", "classifier")
    finished = [one for one in trials if one["params"] == best["params"] and one["state"] == "COMPLETE"]
    assert all(one["metrics"]["accuracy"] >= 0.83 for one in finished)
    assert "TIMEOUT" in {one["state"] for one in trials}, "some are stopped early"


def test_every_block_of_the_page_on_recurring_jobs_runs_in_order(tmp_path: Path) -> None:
    environment = installed_here() | {"LYNCEUS_HOME": str(tmp_path / "home")}
    follow(steps(ROOT / "docs" / "recurring.md"), tmp_path, environment)
    document = answer(tmp_path, environment, "job", "nightly")
    assert [run["run_id"] for run in document["runs"]][:2] == ["2026-11-18", "2026-11-19"]
    assert len({run["run_id"] for run in document["runs"]}) == len(document["runs"]) >= 4
    kinds = {one["kind"] for one in document["changes"]}
    assert kinds >= {"adopt", "settings", "hold", "retune", "rollback"}


def test_every_block_of_the_page_on_teams_runs_in_order(tmp_path: Path) -> None:
    """Its Python is one conversation, which the doctests of the pages hold."""
    environment = installed_here()
    typed = [step for step in steps(ROOT / "docs" / "teams.md") if "block-" not in step.file + step.command]
    follow(typed, tmp_path, environment)
    assert [one["account"] for one in answer(tmp_path, environment, "budget", "list")] == ["project:forecasts"]
    assert [(one["name"], one["role"]) for one in answer(tmp_path, environment, "token", "list")] == [("ana", "runner")]


def test_the_job_file_of_the_page_on_serving_is_valid() -> None:
    (job,) = [step for step in steps(ROOT / "docs" / "serving.md") if step.file]
    assert len(prepare(Job.parse(job.text)).problem.space) == 20


def test_the_quick_form_changes_what_the_pages_say() -> None:
    text = README.read_text(encoding="utf-8") + GUIDE.read_text(encoding="utf-8")
    assert not [old for old in SMALL if old not in text and not old.startswith(", max_trials: 4,")]


@pytest.mark.parametrize(
    ("text", "message"), [("    lynceus status\n", "'indented'"), ("```toml\na = 1\n```\n", "'toml'")]
)
def test_a_block_that_nobody_runs_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "page.md").write_text(f"Some text.\n\n{text}")
    with pytest.raises(AssertionError, match=message):
        steps(tmp_path / "page.md")
