"""What commands say of the baseline, the future use and the pay-back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_jobs import JOB
from lynceus.jobfile.job import Job
from lynceus.storage.sql.storage import Storage

pytestmark = pytest.mark.usefixtures("here")

OLD = "baseline: {threads: 4, level: 1}\n"
QUICK = JOB.replace("[1, 2, 4]", "[2, 4]").replace("0.2 /", "0.04 /")


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_plan_names_baseline_and_future_use(lynceus, here: Path) -> None:
    (here / "job.yaml").write_text(JOB.replace("policy: sweep\n", ""))
    out = words(lynceus("plan", "job.yaml")[1])
    assert "baseline threads=4 level=1: predicted as a range, since it is not run: give its runtime, or measure" in out
    assert "future use 100 runs (assumed, as no 'future' was given); the expected cost pays for itself if each" in out
    told = "baseline: {config: {threads: 4, level: 1}, runtime: 50s}\nfuture: {per_month: 30, months: 6}\n"
    (here / "job.yaml").write_text(JOB.replace(OLD, told))
    out = words(lynceus("plan", "job.yaml")[1])
    assert "baseline threads=4 level=1: 50s and $2.00 a run (given)" in out
    assert "future use 180 runs (30 a month for 6 months); the expected cost" in out
    assert "the policy does not stop by it" in out
    found = json.loads(lynceus("plan", "job.yaml", "-o", "json")[1])["forecast"]
    assert found["future"] == {"count": 180.0, "unit": "runs", "per_month": 30.0, "months": 6.0, "assumed": False}
    assert (found["baseline"]["runtime_s"], found["baseline"]["cost_usd"]) == (50.0, pytest.approx(2.0))
    assert found["break_even_usd"] == pytest.approx(found["expected_spend_usd"] / 180)


def test_a_given_baseline_and_its_pay_back(lynceus, here: Path) -> None:
    told = "baseline: {config: {threads: 4, level: 2}, runtime: 50s}\nfuture: {runs: 3}\n"
    (here / "job.yaml").write_text(QUICK.replace(OLD, told).replace("max_trials: 6", "max_trials: 2"))
    code, out, _ = lynceus("run", "job.yaml", "-y")
    assert code == 0
    assert "of the baseline's $2.00 (given); the search pays for itself after 1 of 3 future runs" in words(out)
    assert "future use 3 runs save $" in words(out)
    best = json.loads(lynceus("best", "-o", "json")[1])
    assert (best["baseline_basis"], best["baseline_measured"], best["baseline_usd"]) == ("given", True, 2.0)
    assert best["future_saving_usd"] == pytest.approx(3 * best["saved_usd"])
    listed = json.loads(lynceus("status", "-o", "json")[1])
    assert '"saving_measured": true' in json.dumps(listed)


def test_an_answer_that_costs_more_than_the_baseline_is_said_to_cost_more(lynceus, here: Path) -> None:
    told = "baseline: {config: {threads: 4, level: 2}, runtime: 1ms}\nfuture: {runs: 3}\n"
    (here / "job.yaml").write_text(QUICK.replace(OLD, told).replace("max_trials: 6", "max_trials: 1"))
    out = words(lynceus("run", "job.yaml", "-y")[1])
    assert "none against the baseline's" in out
    assert "future use 3 runs cost $" in out
    assert "more in all than with the baseline" in out


def test_a_measured_baseline_is_the_first_trial(lynceus, here: Path) -> None:
    told = "baseline: {config: {threads: 2, level: 2}, measure: true}\n"
    (here / "job.yaml").write_text(QUICK.replace(OLD, told))
    code, out, _ = lynceus("run", "job.yaml", "-y")
    assert code == 0
    assert "trial 0 starts: threads=2 level=2" in words(out)
    assert "(measures the baseline)" in words(out)
    assert "(measured); the search pays for itself" in words(out) or "none against the baseline's" in words(out)
    with Storage("sqlite:///lynceus.db") as storage:
        purposes = [str(seen.order.plan.purpose) for seen in storage.journal("toy").record.observations]
    assert purposes[0] == "baseline"
    assert purposes.count("baseline") == 1


def test_a_predicted_baseline_is_shown_as_a_range(lynceus, here: Path) -> None:
    (here / "job.yaml").write_text(JOB.replace("max_trials: 6", "max_trials: 4"))
    lynceus("run", "job.yaml", "-y")
    best = json.loads(lynceus("best", "-o", "json")[1])
    assert (best["baseline_basis"], best["baseline_measured"]) == ("predicted", False)
    low, high = best["baseline_interval_usd"]
    assert 0 < low < high
    out = words(lynceus("best")[1])
    assert "(predicted, with a probability of 80 %; it was not run)" in out
    assert " to $" in out.split("the baseline's ")[1].split(" (predicted")[0]


def test_future_use_can_be_corrected_later(lynceus, here: Path) -> None:
    (here / "job.yaml").write_text(QUICK + "future: {runs: 5}\n")
    lynceus("run", "job.yaml", "-y")
    (here / "job.yaml").write_text(QUICK + "future: {per_month: 5, months: 4}\n")
    code, _, err = lynceus("run", "job.yaml", "-y")
    assert code == 0, err
    assert "trials from now on follow the changed file (future.runs, future.per_month, future.months)" in err
    assert json.loads(lynceus("best", "-o", "json")[1])["future"]["count"] == 20.0


def test_other_spellings_of_a_baseline_are_no_edit(lynceus, here: Path) -> None:
    (here / "job.yaml").write_text(QUICK)
    lynceus("run", "job.yaml", "-y")
    (here / "job.yaml").write_text(QUICK.replace(OLD, "baseline: {config: {threads: 4, level: 1}}\n"))
    assert "has changed" not in lynceus("best", "job.yaml")[2]


def test_init_writes_a_future_use_that_is_valid(lynceus, here: Path) -> None:
    (here / "job.yaml").unlink()
    lynceus("init", "--yes")
    written = next(here.glob("*.yaml"))
    job = Job.read(written)
    assert job.spec.future is not None
    assert job.spec.future.runs == 100
