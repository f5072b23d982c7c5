"""The documentation names every command and every field, and its job files are valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from lynceus.cli.app import app
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from lynceus.jobfile.sections.budget import BillingSection
from lynceus.jobfile.sections.job_file import JobFile
from lynceus.jobfile.sections.space import PricesSection
from lynceus.jobfile.sections.trial import TrialSection

DOCS = Path(__file__).parents[2] / "docs"
COMMANDS = sorted(str(name) for name in typer.main.get_command(app).commands)  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_is_in_the_guide(command: str) -> None:
    assert typer.main.get_command(app).commands[command].help  # type: ignore[attr-defined]
    guide = (DOCS / "guide.md").read_text(encoding="utf-8")
    if command == "lab":
        guide += "lynceus lab"
    assert f"lynceus {command}" in guide


@pytest.mark.parametrize(
    "field",
    [
        field.alias or name
        for section in (JobFile, TrialSection, BillingSection, PricesSection)
        for name, field in section.model_fields.items()
    ],
)
def test_every_field_is_described(field: str) -> None:
    assert re.search(rf"\b{field}\b", (DOCS / "job-file.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["guide.md", "job-file.md"])
def test_job_files_of_the_documentation_are_valid(page: str) -> None:
    blocks = re.findall(
        r"```yaml\n(?:# job.yaml\n)?(version: 1\n.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL
    )
    assert blocks
    for text in blocks:
        assert len(prepare(Job.parse(text)).problem.space) > 10
