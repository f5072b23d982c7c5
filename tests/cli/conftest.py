"""The command line in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli_jobs import JOB
from lynceus.cli.app import main

Lynceus = Callable[..., tuple[int, str, str]]


@pytest.fixture
def lynceus(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lynceus:
    """Run a command: (exit code, stdout, stderr)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["lynceus", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a job file in it and no storage yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LYNCEUS_STORAGE", raising=False)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path
