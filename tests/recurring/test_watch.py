"""The watch: changes are told apart from noise, from the size of the input and from failures of the infrastructure."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from lynceus.recurring.watch import size_ahead, size_spread, watch
from lynceus.trial.outcome import End, FailureReason
from recurring_jobs import adopted, noisy, with_run, with_runs


def test_a_step_is_found_and_told_since_when() -> None:
    times = noisy(60, 0.05, 4)
    times[40:] *= 1.3
    (found,) = watch(with_runs(adopted(), times), 100.0).findings
    assert (found.kind, found.key) == ("step", f"step {found.since}")
    assert abs(int(found.since[1:]) - 40) <= 1
    assert int(found.found[1:]) - 40 <= 5
    assert found.factor == pytest.approx(1.3, abs=0.06)
    assert "longer" in found.text
    assert found.sure


def test_a_step_is_told_at_once_but_acted_upon_only_after_five_runs() -> None:
    times = noisy(60, 0.02, 4)
    times[40:] *= 1.4
    found = {runs: watch(with_runs(adopted(), times[: 40 + runs]), 100.0).findings for runs in (4, 5)}
    assert [(one.kind, one.sure) for one in found[4]] == [("step", False)]
    assert [(one.kind, one.sure) for one in found[5]] == [("step", True)]


def test_larger_inputs_are_no_change() -> None:
    sizes = np.linspace(100.0, 300.0, 80)
    seen = watch(with_runs(adopted(), noisy(80, 0.05, 5) * (sizes / 100.0) ** 0.9, sizes), 310.0)
    assert seen.findings == ()
    assert seen.next_run is not None
    assert seen.next_run.seconds == pytest.approx(300.0 * 3.1**0.9, rel=0.06)


def test_one_slow_run_is_no_change() -> None:
    times = noisy(60, 0.05, 6)
    times[30] *= 4
    assert watch(with_runs(adopted(), times), 100.0).findings == ()


def test_failures_of_the_infrastructure_change_nothing() -> None:
    plain = adopted()
    troubled = plain
    for seconds in noisy(30, 0.05, 7):
        plain = with_run(plain, float(seconds))
        troubled = with_run(troubled, 3.0, end=End.FAILED, reason=FailureReason.PREEMPTED)
        troubled = with_run(troubled, float(seconds))
    one, other = watch(plain, 100.0), watch(troubled, 100.0)
    assert one.next_run == other.next_run
    assert other.findings == ()


def test_failures_of_the_job_are_found() -> None:
    record = with_runs(adopted(), noisy(10, 0.05, 8))
    for _ in range(2):
        record = with_run(record, 3.0, end=End.FAILED, reason=FailureReason.OOM)
    (found,) = watch(record, 100.0).findings
    assert (found.kind, found.since) == ("failures", "r10")


def test_rising_variance_is_found() -> None:
    times = np.concatenate([noisy(60, 0.03, 9), noisy(40, 0.15, 10)])
    kinds = {one.kind for one in watch(with_runs(adopted(), times), 100.0).findings}
    assert "variance" in kinds


def test_the_deadline_is_seen_to_be_missed_before_it_is() -> None:
    sizes = np.linspace(100.0, 180.0, 40)
    record = with_runs(adopted(deadline_s=600.0), noisy(40, 0.03, 11) * sizes / 100.0, sizes)
    assert all(run.seconds <= 600.0 for run in record.runs)
    soon = watch(record, 195.0)
    assert [one.kind for one in soon.findings] == ["late"]
    assert soon.late_chance is not None
    assert 0.05 < soon.late_chance < 0.95
    assert watch(record, 120.0).findings == ()


def test_inputs_that_grow_are_followed() -> None:
    grown = with_runs(adopted(), noisy(30, 0.03, 1), np.linspace(100.0, 160.0, 30))
    steady = with_runs(adopted(), noisy(30, 0.03, 1), 100.0 * noisy(30, 0.03, 2, 1.0))
    assert (size_ahead(grown, 162.0) or 0) > 170.0
    assert size_ahead(steady, 101.0) == 101.0


@pytest.mark.parametrize("growth", [1.0, 2.0])
def test_the_spread_of_inputs_is_measured_whether_they_grow_or_not(growth: float) -> None:
    sizes = np.geomspace(100.0, 100.0 * growth, 60) * noisy(60, 0.08, 3, 1.0)
    assert size_spread(with_runs(adopted(), noisy(60, 0.03, 1), sizes)) == pytest.approx(0.08, rel=0.3)


def test_only_new_runs_are_scanned_and_the_findings_are_the_same() -> None:
    times = noisy(50, 0.05, 12)
    times[30:] *= 1.25
    whole = with_runs(adopted(), times)
    part = replace(whole, runs=whole.runs[:37])
    assert watch(whole, 100.0, before=watch(part, 100.0)).record() == watch(whole, 100.0).record()


def test_runs_without_sizes_are_watched_too() -> None:
    record = adopted()
    for place, seconds in enumerate(noisy(50, 0.04, 13)):
        record = with_run(record, float(seconds) * (1.3 if place >= 35 else 1.0), None)
    seen = watch(record)
    assert [one.kind for one in seen.findings] == ["step"]
    assert seen.next_run is not None
    assert seen.next_run.log_s == pytest.approx(math.log(390.0), abs=0.04)
