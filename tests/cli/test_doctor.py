"""`lynceus doctor` says what is installed, what is missing and what is wrong; shells complete commands and studies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from lynceus.library import health
from lynceus.storage.sql import file_system
from lynceus.storage.sql.storage import Storage

pytestmark = pytest.mark.usefixtures("here")


def findings(text: str) -> dict[str, dict[str, str]]:
    return {one["subject"]: one for one in json.loads(text)}


def test_a_whole_installation_has_no_problem(lynceus, here: Path) -> None:
    code, out, _ = lynceus("doctor", "-o", "json")
    found = findings(out)
    assert (code, {one["state"] for one in found.values()} <= {"ok", "absent"}) == (0, True)
    assert (found["compiled kernels"]["state"], found["extra web"]["state"]) == ("ok", "ok")
    assert "none yet" in found["storage"]["detail"]
    assert not list(here.glob("*.db")), "looking makes no storage"
    assert "lynceus-opt" in lynceus("doctor")[1]


def test_the_other_project_called_lynceus_is_noticed(here: Path) -> None:
    info = here / "site" / "lynceus-2.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lynceus\nVersion: 2.1.0\n")
    (info / "top_level.txt").write_text("lynceus\n")
    environment = os.environ | {"PYTHONPATH": str(here / "site")}
    done = subprocess.run(
        [sys.executable, "-m", "lynceus.cli", "doctor", "-o", "json"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    one = findings(done.stdout)["Lynceus"]
    assert (done.returncode, one["state"]) == (4, "problem")
    assert "another project" in one["detail"]
    assert one["advice"] == "pip uninstall lynceus lynceus-opt, then: pip install lynceus-opt"


def test_a_storage_of_another_program_is_a_problem(lynceus, here: Path) -> None:
    (here / "lynceus.db").write_text("text")
    code, out, _ = lynceus("doctor", "-o", "json")
    assert (code, "is not a database" in findings(out)["storage"]["detail"]) == (4, True)


def test_a_missing_extra_is_absent_and_has_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_installed", lambda name: name != "uvicorn")
    (web,) = [one for one in health.examine("sqlite:///none.db") if one.subject == "extra web"]
    assert (web.state, web.detail) == ("absent", "dashboard and HTTP API: uvicorn not installed")
    assert web.advice == "pip install 'lynceus-opt[web]'"


def test_programs_that_executors_use_are_looked_for(lynceus, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(here))
    found = findings(lynceus("doctor", "-o", "json")[1])
    skypilot, slurm = found["executor skypilot"], found["executor slurm"]
    assert (skypilot["state"], "SkyPilot was not found: install it in .venv-skypilot" in skypilot["advice"]) == (
        "absent",
        True,
    )
    assert (slurm["state"], slurm["advice"].startswith("sbatch, squeue, scontrol, scancel not found: ")) == (
        "absent",
        True,
    )
    for name in ("sky", "python", "sbatch", "squeue", "scontrol", "scancel"):
        (here / name).write_text("#!/bin/sh\n")
        (here / name).chmod(0o755)
    found = findings(lynceus("doctor", "-o", "json")[1])
    assert {found[f"executor {name}"]["state"] for name in ("skypilot", "slurm")} == {"ok"}


def test_sqlite_on_a_network_file_system_is_warned_of(lynceus, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_system, "network_file_system", lambda file: "nfs4")
    with pytest.warns(UserWarning, match=r"lies on a network file system \(nfs4\), where SQLite's locks may fail"):
        Storage("sqlite:///lynceus.db").close()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, _, err = lynceus("status")
    assert (code, err.count("network file system (nfs4)")) == (0, 1)
    monkeypatch.setattr(health, "network_file_system", lambda file: "nfs4")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, out, _ = lynceus("doctor", "-o", "json")
    assert (code, findings(out)["storage"]["state"]) == (4, "problem")


def complete(words: str, here: Path) -> list[str]:
    """What a shell offers for the last word."""
    environment = os.environ | {
        "_LYNCEUS_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    program = Path(sys.executable).parent / "lynceus"
    done = subprocess.run([program], env=environment, cwd=here, capture_output=True, text=True, check=False)
    return done.stdout.split()


def test_shells_complete_commands_options_and_studies(here: Path) -> None:
    with Storage("sqlite:///lynceus.db") as storage:
        for name in ("nightly", "nightly-2", "weekly"):
            storage.create_study(name, document={"name": name}, fingerprint="f" * 64, policy={"name": "sweep"})
    assert complete("lynceus wh", here) == ["whatif"]
    assert "--deadline" in complete("lynceus whatif --dead", here)
    assert complete("lynceus best ni", here) == ["nightly", "nightly-2"]
    assert complete("lynceus best --storage sqlite:///none.db ni", here) == []
