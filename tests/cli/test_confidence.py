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
    code, out, _ = lynceus("whatif", "toy", "--deadline", "30s", "-o", "json")
    answers = json.loads(out)["answers"]
    assert (answers[0]["measured"]["params"], answers[0]["shortfall"]) == (best["params"], best["shortfall"])
    printed = " ".join(lynceus("whatif", "toy", "--deadline", "30s")[1].split())
    assert "none yet; nearest: threads=" in printed
    assert (
        f"as it is: no configuration is known yet that keeps time <= 1m, quality >= 9 @ 0.95: {best['shortfall']}."
        in printed
    )
    assert json.loads(lynceus("explain", "toy", "-o", "json")[1])["shortfall"] == best["shortfall"]
    assert f"no answer yet {best['shortfall']}" in " ".join(lynceus("explain", "toy")[1].split())


@pytest.mark.usefixtures("here")
def test_policies_without_a_model_say_the_same(here: Path, lynceus) -> None:
    (here / "job.yaml").write_text(UNSURE.replace("policy: lynceus", "policy: sweep"))
    assert lynceus("run", "job.yaml", "-y")[0] == 3
    best = json.loads(lynceus("best", "toy", "-o", "json")[1])
    assert best["reaches_confidence"] is False
    assert json.loads(lynceus("status", "toy", "-o", "json")[1])["shortfall"] == best["shortfall"]
    answers = json.loads(lynceus("whatif", "toy", "-o", "json")[1])["answers"]
    assert [one["shortfall"] for one in answers] == [best["shortfall"]]


@pytest.mark.usefixtures("here")
def test_an_answer_with_confidence_is_called_one(here: Path, lynceus) -> None:
    (here / "job.yaml").write_text(JOB.replace("policy: sweep", "policy: lynceus"))
    assert lynceus("run", "job.yaml", "-y")[0] == 0
    assert json.loads(lynceus("whatif", "toy", "-o", "json")[1])["answers"][0]["shortfall"] is None
    assert "none yet" not in lynceus("whatif", "toy")[1]
    assert "no answer yet" not in lynceus("explain", "toy")[1]
