"""`lynceus exec` on an executor, whichever it is: what must hold of a recurring job that runs elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_runs import eventually
from lynceus.cli.app import main

Lynceus = Callable[..., tuple[int, str, str]]

_JOB = """\
name: search
run:
- sh
- -c
- echo "$LYNCEUS_RUN_ID $LYNCEUS_JOB_VERSION $LYNCEUS_INPUT_SIZE $*" | tee -a "$FOLDER/log"; until [ -e "$FOLDER/go" ]; do sleep 0.05; done
- job
- n=${n}
envs: {FOLDER: HERE}
space: {n: [1, 2]}
price: 3600 * n
constraints: ["runtime <= 10m"]
budget: 1000000
trial: {grace: 1s}
executor: EXECUTOR
"""


def adopted_job(folder: Path, executor: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Lynceus:
    """Put the job `nightly` into production with n=2, and return the command line in this process: (exit code, stdout, stderr)."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("LYNCEUS_STORAGE", raising=False)
    monkeypatch.setenv("LYNCEUS_HOME", str(folder / "home"))
    (folder / "job.yaml").write_text(_JOB.replace("HERE", str(folder)).replace("EXECUTOR", executor))

    def lynceus(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["lynceus", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    code, out, err = lynceus("adopt", "nightly", "--from", "job.yaml", "-p", "n=2")
    assert code == 0, out + err
    return lynceus


def check_recorded_once(lynceus: Lynceus, folder: Path) -> None:
    """A run has the version in production and what was appended, and is recorded once with its input, time and cost."""
    (folder / "go").touch()
    command = ("exec", "nightly", "--input", "120GB", "--run-id", "a")
    code, out, err = lynceus(*command, "--", "--date=today")
    assert (code, out) == (0, "a 1 120000000000 n=2 --date=today\n"), err
    (run,) = _runs(lynceus)
    assert (run["run_id"], run["version"], run["size"], run["state"]) == ("a", 1, 1.2e11, "COMPLETE")
    assert run["runtime_s"] > 0
    assert run["cost_usd"] == pytest.approx(2 * run["runtime_s"])
    code, out, err = lynceus(*command, "--", "--date=today")
    assert code == 0, out + err
    assert _runs(lynceus) == [run], "the same id is the same run"
    assert _began(folder) == ["a"]


def check_collected_after_a_kill(lynceus: Lynceus, folder: Path) -> None:
    """A run goes on whose command is killed; the next command records it, and nothing runs twice."""
    words = ["exec", "nightly", "--input", "120GB", "--run-id", "a"]
    command = subprocess.Popen([sys.executable, "-m", "lynceus.cli", *words], cwd=folder, stdout=subprocess.DEVNULL)
    eventually((folder / "log").exists)
    eventually(lambda: '"ticket": "' in _kept(folder))
    command.kill()
    command.wait()
    assert _runs(lynceus) == []
    (folder / "go").touch()
    numbers = iter(range(1, 100))

    def collected() -> bool:
        code, out, err = lynceus("exec", "nightly", "--run-id", f"next-{next(numbers)}")
        assert code == 0, out + err
        return "a" in [run["run_id"] for run in _runs(lynceus)]

    eventually(collected)
    (run,) = [run for run in _runs(lynceus) if run["run_id"] == "a"]
    assert (run["version"], run["size"], run["state"]) == (1, 1.2e11, "COMPLETE")
    assert run["cost_usd"] == pytest.approx(2 * run["runtime_s"])
    began = _began(folder)
    assert sorted(began) == sorted(set(began)), "every run began once"
    assert len(began) == len(_runs(lynceus))


def _runs(lynceus: Lynceus) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(lynceus("job", "nightly", "-o", "json")[1])["runs"]
    return found


def _began(folder: Path) -> list[str]:
    return [line.split()[0] for line in (folder / "log").read_text().splitlines()]


def _kept(folder: Path) -> str:
    """What the host wrote down of its runs."""
    return "".join(path.read_text() for path in (folder / "home").glob("jobs/*/*/runs/*.json"))
