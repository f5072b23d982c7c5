"""A confidence that no configuration reaches: `run`, `best` and `status` name the nearest one, and that it is no answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_jobs import JOB

# Only the first run of all meets the limit.
UNSURE = (
    JOB.replace("$((10 - level))", "$((LYNCEUS_TRIAL ? 8 : 9))")
    .replace("quality >= 9", "quality >= 9 @ 0.95")
    .replace("max_trials: 6", "max_trials: 10")
    .replace("policy: sweep", "policy: lynceus")
)


@pytest.mark.usefixtures("here")
def test_the_nearest_configuration_is_no_plain_answer(here: Path, lynceus) -> None:
    (here / "job.yaml").write_text(UNSURE)
    code, out, _ = lynceus("run", "job.yaml", "-y")
    assert code == 3
    assert "; new best: " not in out
    assert "no configuration is sure enough of the constraints, the nearest is threads=" in out
    assert "Not an answer to time <= 1m, quality >= 9 @ 0.95: none reaches 95 %; the nearest is threads=" in out
    code, out, _ = lynceus("best", "toy")
    assert code == 3
    assert "none reaches 95 %; the nearest is threads=" in out
    assert "nearest" in out.splitlines()[1]
    code, out, _ = lynceus("best", "toy", "-o", "json")
    best = json.loads(out)
    assert (code, best["reaches_confidence"]) == (3, False)
    assert best["probability"] < 0.95
    facts = json.loads(lynceus("status", "toy", "-o", "json")[1])
    assert (facts["best_params"], facts["best_reaches_confidence"]) == (best["params"], False)
    assert facts["shortfall"] == best["shortfall"]
    shown = lynceus("status", "toy")[1]
    assert best["shortfall"] in " ".join(shown.split())
    assert "nearest: threads=" in " ".join(shown.split())
