"""docs/schedulers.md works as written: the line for cron, the units for systemd, and the parts of the examples that it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lynceus
from doc_blocks import blocks
from readers import ROOT

PAGE = ROOT / "docs" / "schedulers.md"
BLOCKS = [block.text for block in blocks(PAGE)]
EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize("tool", ["prefect", "dagster"])
def test_the_page_shows_the_example(tool: str) -> None:
    example = (EXAMPLES / tool / "nightly_report.py").read_text(encoding="utf-8")
    assert [text for text in BLOCKS if f"{tool}/nightly-report" in text and text in example]


def test_the_commands_that_try_the_examples_work(tmp_path: Path) -> None:
    """Those of Lynceus here; those of the schedulers are what the tests of the examples run in the real tools."""
    (text,) = [text for text in BLOCKS if "airflow dags test" in text]
    lines = text.splitlines()
    mine = [line for line in lines if line.startswith(("export", "lynceus"))]
    folder = shutil.copytree(EXAMPLES / "airflow", tmp_path / "airflow")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-ec", "\n".join(mine)],
        cwd=folder,
        env=os.environ | {"HOME": str(tmp_path), "PATH": path, "LYNCEUS_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "version 1: chunks=2" in done.stdout) == (0, True), done.stderr
    for tool, words in {"prefect": "python", "dagster": "dagster asset materialize --select nightly_report"}.items():
        (line,) = [line for line in lines if f"../{tool}/" in line]
        assert line.startswith(words)
        assert (folder / re.search(r"\.\./\S+", line)[0]).resolve().name == "nightly_report.py"  # type: ignore[index]
        assert (EXAMPLES / tool / "nightly_report.py").is_file()


@pytest.fixture
def jobs(tmp_path: Path) -> Path:
    """The folder of the page, with its job in production and the environment of these tests as its own."""
    for name in ("job.yaml", "count.sh"):
        shutil.copy(EXAMPLES / "airflow" / name, tmp_path)
    (tmp_path / "data.csv").write_text("12345")
    (tmp_path / ".venv").symlink_to(sys.prefix, target_is_directory=True)
    storage = f"sqlite:///{tmp_path}/lynceus.db"
    lynceus.adopt_job("nightly-report", source=str(tmp_path / "job.yaml"), params={"chunks": 2}, storage=storage)
    return tmp_path


def test_the_line_for_cron_runs_the_job_once_a_day(jobs: Path) -> None:
    (line,) = [text for text in BLOCKS if text.startswith("5 2 * * *")]
    command = re.split(r"\s+", line.strip(), maxsplit=5)[5].replace("/srv/jobs", str(jobs))
    assert "%" not in command.replace("\\%", ""), "cron takes a bare % for the end of the line"
    (jobs / "bin").mkdir()
    today, date = jobs / "today", jobs / "bin" / "date"  # a clock that stands still, whenever the test runs
    date.write_text(f'#!/bin/sh\nexec /bin/date --date="$(cat {today})" "$@"\n')
    date.chmod(0o755)
    environment = {
        "PATH": f"{jobs}/bin:/usr/bin:/bin",
        "HOME": str(jobs),
        "SHELL": "/bin/sh",
        "LYNCEUS_HOME": str(jobs / "home"),
    }
    for day in ("2026-11-18", "2026-11-18", "2026-11-19"):
        today.write_text(day)
        done = subprocess.run(
            ["/bin/sh", "-c", command.replace("\\%", "%")], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    runs = lynceus.load_job("nightly-report", storage=f"sqlite:///{jobs}/lynceus.db").runs
    assert [(run.size, run.run_id) for run in runs] == [(5.0, "nightly-2026-11-18"), (5.0, "nightly-2026-11-19")]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed here")
def test_systemd_accepts_the_units_and_the_calendar(jobs: Path) -> None:
    units = jobs / "units"
    units.mkdir()
    names = []
    for text in BLOCKS:
        if name := re.match(r"# (\S+\.(?:service|timer))\n", text):
            (units / name[1]).write_text(text.replace("/srv/jobs", str(jobs)))
            names.append(name[1])
    assert sorted(names) == ["nightly-report.service", "nightly-report.timer"]
    checked = subprocess.run(
        ["systemd-analyze", "verify", *(str(units / name) for name in names)],
        env=os.environ | {"SYSTEMD_UNIT_PATH": f"{units}:"},
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in checked.stderr.splitlines() if "nightly-report" in line]
    assert (checked.returncode, ours) == (0, [])
    for text in BLOCKS:
        for moment in re.findall(r'(?:OnCalendar=|--on-calendar=")([^"\n]+)', text):
            subprocess.run(["systemd-analyze", "calendar", moment], capture_output=True, check=True)
    start = re.search(r"ExecStart=(.+)", (units / "nightly-report.service").read_text())
    assert start
    subprocess.run(start[1].split(), cwd=jobs, env=os.environ | {"LYNCEUS_HOME": str(jobs / "home")}, check=True)
