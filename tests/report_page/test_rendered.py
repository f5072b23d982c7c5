"""The page in a real browser: its script runs without a network and draws what the study holds."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lynceus.report_page import page

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def trial(number: int, threads: int, state: str, seconds: float, cost: float | None) -> dict[str, Any]:
    return {
        "number": number, "params": {"threads": threads}, "state": state, "reason": None, "runtime_s": seconds, "cost_usd": cost,
        "charged_usd": 0.01, "keeps_limits": None if cost is None else seconds <= 60, "keeps_other_limits": True, "metrics": {},
        "detail": "<b>not bold</b>", "why": "test", "price_usd_per_hour": 1.0, "timeout_s": None, "reserved_usd": 0.1,
    }  # fmt: skip


DATA: dict[str, Any] = {
    "name": "<i>study</i>", "state": "FINISHED", "reason": "done", "objective": "minimize cost", "limits": ["time <= 1m"],
    "spent_usd": 0.03, "budget_usd": 1.0, "configurations": 3, "parameters": ["threads"], "deadline_s": 60.0,
    "trials": [trial(0, 1, "COMPLETE", 50.0, 0.02), trial(1, 2, "COMPLETE", 90.0, 0.01), trial(2, 4, "TIMEOUT", 30.0, None)],
    "steps": [{"number": n, "spent_usd": 0.01 * (n + 1), "best": 0.02, "incumbent": 0} for n in range(3)],
    "front": [{"seconds": 50.0, "cost_usd": 0.02}, {"seconds": 90.0, "cost_usd": 0.01}],
    "importance": [{"parameter": "threads", "share": 0.9, "effect": [[1, 0.02], [2, 0.01], [4, 0.03]]}],
    "calibration": {"coverage": 1.0, "typical_factor": 1.1, "predictions": [
        {"number": 1, "low_s": 40.0, "middle_s": 80.0, "high_s": 160.0, "seen_s": 90.0, "censored": False}]},
    "verdict": {
        "params": {"threads": 1}, "command": "run 1", "cost_basis": "$1.44/h × 50s = $0.02 (measured)", "lines": [["how sure", "sure"]],
    },
    "version": "0", "written": "today",
}  # fmt: skip


@pytest.mark.skipif(BROWSER is None, reason="no browser: apt-get install chromium")
def test_everything_is_drawn_and_nothing_is_markup(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page("x", DATA), encoding="utf-8")
    command = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom",
    ]
    ended = subprocess.run(
        [*command, f"file://{tmp_path}/page.html"], capture_output=True, text=True, check=True, timeout=300
    )
    shown = re.sub(r"<script.*?</script>", "", ended.stdout, flags=re.DOTALL)
    assert shown.count("<svg") == 4
    assert "&lt;i&gt;study&lt;/i&gt;" in shown
    assert "<b>not bold</b>" not in shown
    assert "Best measured: threads=1, $0.02 a run in 50s." in shown
    assert shown.count("<tr>") == 4
    assert "100 % of runs lay in their 80 % interval" in shown
