"""The example that trains on samples: real trainings, and an answer for all data that was never trained."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "fraction"


@pytest.mark.slow
def test_samples_are_trained_and_all_data_is_the_answer(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    work = tmp_path / "fraction"
    shutil.copytree(EXAMPLE, work, ignore=shutil.ignore_patterns(".lynceus", "*.db*"))
    environment = {key: value for key, value in os.environ.items() if key != "LYNCEUS_STORAGE"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"

    def lynceus(*arguments: str) -> object:
        command = [sys.executable, "-m", "lynceus.cli", *arguments, "-o", "json"]
        ended = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode in (0, 3), ended.stderr
        return json.loads(ended.stdout)

    found = lynceus("run", "job.yaml", "-y")
    rows = lynceus("trials", "fraction")
    assert isinstance(found, dict)
    assert isinstance(rows, list)
    assert rows
    assert all(row["params"]["share"] < 1 for row in rows), "only samples are trained"
    assert found["best"]["params"]["share"] == 1
    assert found["spent_usd"] <= 0.25
    assert found["best"]["params"] != {"kernel": "rbf", "penalty": 0.1, "gamma": 0.003, "share": 1.0}, (
        "the worst of all"
    )
    explained = lynceus("explain", "fraction")
    assert isinstance(explained, dict)
    assert {one["quantity"] for one in explained["rank_agreement"]} == {"accuracy", "time"}
