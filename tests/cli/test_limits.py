"""Limits that fail, and limits that change: what `run`, `best`, `explain`, `whatif`, `resume`, `status` and `trials` say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_jobs import JOB

pytestmark = pytest.mark.usefixtures("here")
IMPOSSIBLE = JOB.replace("quality >= 9", "quality >= 11")


@pytest.fixture
def infeasible(here: Path, lynceus) -> str:
    (here / "job.yaml").write_text(IMPOSSIBLE)
    code, out, _ = lynceus("run", "job.yaml", "-y")
    assert code == 3
    return str(out)


def test_the_end_of_a_run_best_and_explain_say_which_limit_fails(infeasible: str, lynceus) -> None:
    missed = "quality >= 11 fails: the largest of 6 finished runs has 9 ("
    assert missed in infeasible
    assert "2 under it (18.2%)" in infeasible
    assert "lynceus resume toy --constraint 'quality >= 9'" in infeasible
    code, out, _ = lynceus("best", "toy")
    assert code == 3
    assert missed in out
    code, out, err = lynceus("best", "toy", "-o", "json")
    assert (code, out.strip()) == (3, "null")
    assert missed in err
    assert missed in " ".join(lynceus("explain", "toy")[1].split())
    found = json.loads(lynceus("explain", "toy", "-o", "json")[1])["infeasible"]
    assert (found["cause"], found["limits"][0]["measured"]["misses_by"]) == ("limit", 2.0)


def test_whatif_answers_for_another_limit(infeasible: str, lynceus) -> None:
    found = json.loads(lynceus("whatif", "toy", "--constraint", "quality >= 8.5", "-o", "json")[1])["answers"]
    assert [one["label"] for one in found] == ["as it is", "quality >= 8.5"]
    assert found[0]["measured"] is None
    assert found[1]["measured"]["params"]["level"] == 1
    assert found[1]["constraints"] == ["time <= 1m", "quality >= 8.5"]
    both = ("--constraint", "quality >= 8", "--constraint", "runtime <= 30s @ 0.95")
    (_, together) = json.loads(lynceus("whatif", "toy", *both, "-o", "json")[1])["answers"]
    assert together["constraints"] == ["time <= 30s @ 0.95", "quality >= 8"]
    either = ("--constraint", "quality >= 8", "--constraint", "quality >= 9")
    assert len(json.loads(lynceus("whatif", "toy", *either, "-o", "json")[1])["answers"]) == 3


def test_resume_changes_a_limit_and_paid_runs_count_on(here: Path, infeasible: str, lynceus) -> None:
    code, out, err = lynceus("resume", "toy", "--constraint", "quality >= 8.5", "--deadline", "50s")
    assert code == 0, "all paid runs count, so the answer is there without a further trial"
    assert "constraints changed: time <= 1m, quality >= 11 → time <= 50s, quality >= 8.5, before trial 6" in err
    assert "level=1" in out
    facts = json.loads(lynceus("status", "toy", "-o", "json")[1])
    assert (facts["trials"], facts["constraints"]) == (6, ["time <= 50s", "quality >= 8.5"])
    assert len(facts["limit_changes"]) == 1
    assert "quality >= 8.5, before trial 6" in " ".join(lynceus("status", "toy")[1].split())
    assert "quality >= 8.5, before trial 6" in lynceus("trials", "toy")[2]
    assert sum(row["keeps_constraints"] for row in json.loads(lynceus("trials", "toy", "-o", "json")[1])) == 3
    assert lynceus("best", "toy")[0] == 0
    # The file may say what it said, or what holds now, and nothing else.
    assert lynceus("resume", "job.yaml")[0] == 0
    limits = 'constraints: ["runtime <= 1m", "quality >= 11"]'
    (here / "job.yaml").write_text(IMPOSSIBLE.replace(limits, 'constraints: ["runtime <= 50s", "quality >= 8.5"]'))
    assert lynceus("resume", "job.yaml")[0] == 0
    (here / "job.yaml").write_text(IMPOSSIBLE.replace(limits, 'constraints: ["runtime <= 2s"]'))
    code, _, err = lynceus("resume", "job.yaml")
    assert code == 2
    assert "'toy' keeps constraints for its whole life" in err
    assert "can be made with: lynceus resume toy --constraint 'runtime <= 2s'" in err


BAD = {
    "qualty >= 8": "no trial of study 'toy' has reported 'qualty'; limit what trials report. Did you mean 'quality'?",
    "quality": "cannot read 'quality'; write a quantity, <= or >=, a bound",
    "quality >= good": "'good' in 'quality >= good' is neither a number nor an amount of bytes; write for example 'quality >= 0.85', ",
    "runtime <= 45x": "the bound in 'runtime <= 45x'",
    "runtime >= 45m": "'time >= …' is not supported",
    "quality >= 8 @ 2": "confidence 2.0 on quality must lie between 0 and 1",
}


def test_bad_limits_get_one_sentence_and_change_nothing(infeasible: str, lynceus) -> None:
    for command in ("resume", "whatif"):
        for given, message in BAD.items():
            code, _, err = lynceus(command, "toy", "--constraint", given)
            assert code == 2, given
            assert f"lynceus: --constraint: {message}" in err
            assert len(err.strip().splitlines()) == 1
    code, _, err = lynceus("resume", "toy", "--deadline", "0s")
    assert (code, "--deadline: got 0 seconds; give a duration above 0" in err) == (2, True)
    assert json.loads(lynceus("status", "toy", "-o", "json")[1])["limit_changes"] == []


def test_jobs_that_crash_are_not_told_to_relax_a_limit(here: Path, lynceus) -> None:
    (here / "job.yaml").write_text(JOB.replace('echo "quality', 'exit 3; echo "quality'))
    code, out, _ = lynceus("run", "job.yaml", "-y")
    assert code == 4
    assert "failed; the last: exit code 3" in out
    code, out, _ = lynceus("best", "toy")
    assert code == 3
    assert "lynceus logs toy " in out
    assert "--constraint" not in out
