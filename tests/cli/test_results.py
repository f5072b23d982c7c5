"""What the commands show of a study: text, JSON, and the width of the terminal."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from rich.console import Console

from lynceus.analysis.overview import StudyOverview
from lynceus.cli.status import _silence

pytestmark = pytest.mark.usefixtures("here")


def test_results_as_text_and_as_json(lynceus) -> None:
    lynceus("run", "job.yaml", "-y", "--policy", "bo")
    code, out, _ = lynceus("explain", "toy", "-o", "json")
    explained = json.loads(out)
    assert {part["parameter"] for part in explained["importance"]} == {"threads", "level"}
    assert explained["next"]["trial"] is None
    assert explained["next"]["reason"]
    assert {"coverage", "median_factor", "predictions"} <= explained["calibration"].keys()
    code, out, _ = lynceus("explain")
    assert "which parameters matter" in out
    code, out, _ = lynceus("whatif", "--deadline", "1ms,1m", "--price", "price * 2", "-o", "json")
    answers = json.loads(out)["answers"]
    assert [answer["label"] for answer in answers] == ["as it is", "runtime <= 1ms", "runtime <= 1m", "price price * 2"]
    assert answers[1]["measured"] is None
    assert answers[3]["measured"]["cost_usd"] == pytest.approx(2 * answers[0]["measured"]["cost_usd"])
    assert answers[0]["measured"] == answers[2]["measured"]
    code, out, _ = lynceus("whatif", "--deadline", "1m")
    assert "cost against time" in out
    code, out, _ = lynceus("best", "--deadline", "1ms")
    assert code == 3
    assert "is known to meet" in out


def test_a_narrow_terminal_cuts_no_names_states_or_money(lynceus, monkeypatch) -> None:
    lynceus("run", "job.yaml", "-y")
    for command in ("status", "trials"):
        monkeypatch.setattr(f"lynceus.cli.{command}.console", lambda: Console(width=80, highlight=False))
        out = lynceus(command)[1]
        assert "…" not in out
        assert max(len(line) for line in out.splitlines()[:4]) <= 80
    assert "COMPLETE" in out
    assert "why" not in out


def test_a_stopped_study_with_open_trials_needs_a_worker() -> None:
    money = {"spent_usd": 0.0, "reserved_usd": 0.0}
    counts = {"trials": 0, "counted_trials": 0, "running": 2, "stopped_early": 0, "failed": 0}
    seen = {"created_s": 0.0, "worker_seen_s": 1000.0}
    one = StudyOverview(name="s", state="STOPPED", reason=None, policy="sweep", seed=0, **money, **counts, **seen)
    assert "no worker has been running it for 1h" in _silence(one, 4600.0)
    assert _silence(replace(one, running=0), 4600.0) == ""
