"""Replays of repeated runs: each run takes one of the measured times of its row, and the score goes by the median."""

from __future__ import annotations

from collections import Counter

import pytest

from lynceus.errors import InputError
from lynceus.executors.interface import Request
from lynceus.executors.table import SimulatedClock, TableExecutor
from lynceus.policy.presets import preset
from lynceus.replay.campaign import Campaign, run_campaign
from lynceus.replay.job import load_job
from lynceus.replay.run import replay
from lynceus.replay.shipped import shipped_jobs
from lynceus.replay.tables import data_folder
from lynceus.trial.outcome import End

HEADER = "vm,nodes,time_s,usd,runs,curve"
ROWS = (
    "small,1,1800,0.1,,0.5 1.0",
    "small,2,720,0.2,700 720 850,0.5 1.0",
    "small,4,540,0.4,540,0.5 1.0",
    "large,1,600,0.3,590 600 1000,0.5 1.0",
    "large,2,720,0.6,700 715 725 900,0.5 1.0",
    "large,4,240,1.2,230 240 250,0.5 1.0",
)
SPEC = "table: toy.csv\nparameters: [vm, nodes]\nprice: usd\nrepeats: runs\ndeadline: 15m\n"
REPEATS = [[float(word) for word in row.split(",")[4].split()] or [float(row.split(",")[2])] for row in ROWS]


@pytest.fixture
def noisy(write_job):
    return load_job(write_job(SPEC, ROWS, HEADER))


def executor_of(job, seed, noise="measured"):
    return TableExecutor(job.problem, job.measurements, SimulatedClock(), noise=noise, seed=seed)


def seconds_of(executor, number, row, timeout_s=1e6):
    outcome, _ = executor._outcome(Request("study", number, row, {}, timeout_s, boots=True))
    return outcome


@pytest.mark.parametrize("seed", range(4))
def test_every_measured_run_comes_up_once_before_any_comes_up_again(noisy, seed):
    executor = executor_of(noisy, seed)
    for row, measured in enumerate(REPEATS):
        for turn in range(3):
            numbers = [100 * row + 10 * turn + run for run in range(len(measured))]
            drawn = [seconds_of(executor, number, row).seconds for number in numbers]
            assert Counter(drawn) == Counter(measured)


def test_draws_depend_on_seed_row_and_run_but_not_on_what_ran_in_between(noisy):
    alone, among_others = executor_of(noisy, 7), executor_of(noisy, 7)
    drawn = [seconds_of(alone, number, 4).seconds for number in range(6)]
    mixed = []
    for number in range(6):
        seconds_of(among_others, 50 + number, number % 3)
        mixed.append(seconds_of(among_others, number, 4).seconds)
    assert drawn == mixed
    firsts = {seconds_of(executor_of(noisy, seed), 0, 4).seconds for seed in range(40)}
    assert firsts == set(REPEATS[4])


def test_a_run_that_is_looked_up_again_is_the_same_run(noisy):
    executor = executor_of(noisy, 3)
    full = seconds_of(executor, 0, 4)
    stopped = seconds_of(executor, 0, 4, timeout_s=100.0)
    assert (stopped.end, stopped.seconds, stopped.oracle_s) == (End.TIMEOUT, 100.0, full.seconds)
    assert seconds_of(executor, 0, 4).seconds == full.seconds


def test_progress_is_stretched_to_the_time_of_the_run(write_job):
    job = load_job(write_job(SPEC + "progress: {column: curve, every: 300s}\n", ROWS, HEADER))
    executor = executor_of(job, 1)
    slow = next(one for number in range(3) if (one := seconds_of(executor, number, 3)).seconds == 1000.0)
    assert slow.trace == ((pytest.approx(500.0), 0.5), (pytest.approx(1000.0), 1.0))


def test_a_plain_replay_takes_the_time_of_the_row(noisy, write_job):
    without = load_job(write_job(SPEC.replace("repeats: runs\n", ""), ROWS, HEADER))
    for policy in ("lynceus", "sweep"):
        plain, other = (replay(job, preset(policy), 0, until="end") for job in (noisy, without))
        assert [(step.row, step.seconds) for step in plain.steps] == [(step.row, step.seconds) for step in other.steps]
        assert all(step.seconds <= noisy.measurements.seconds[step.row] for step in plain.steps)


def test_the_score_goes_by_the_median_and_runs_take_measured_times(noisy):
    campaign = Campaign(noisy, (preset("sweep"),), seeds=6, until="end", noise="measured")
    seen = set()
    for done in run_campaign(campaign):
        for step in done.steps:
            assert step.state == "TIMEOUT" or step.seconds in REPEATS[step.row]
            seen.add((step.row, step.seconds))
        assert done.cno_at_stop in (1.0, pytest.approx(1.25), pytest.approx(1.5))
    assert len({seconds for row, seconds in seen if row == 1}) > 1


def test_measured_noise_without_repeats_is_refused(toy):
    with pytest.raises(InputError, match="toy has no repeated runs; name the column with their times under 'repeats'"):
        replay(toy, preset("sweep"), 0, noise="measured")


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("700 fast", r"toy.yaml:4: repeats: column 'runs' of toy.csv holds '700 fast' in row 2; numbers separated by"),
        ("700 0", r"repeats: column 'runs' of toy.csv holds 0 in row 2; every run needs a time above 0 seconds"),
    ],
)
def test_a_cell_that_holds_no_times_is_named(write_job, cell, message):
    rows = (ROWS[0], ROWS[1].replace("700 720 850", cell), *ROWS[2:])
    with pytest.raises(InputError, match=message):
        load_job(write_job(SPEC, rows, HEADER))


def test_an_unknown_column_is_named(write_job):
    with pytest.raises(InputError, match=r"repeats: the table toy.csv has no column 'run'; did you mean 'runs'"):
        load_job(write_job(SPEC.replace("runs", "run"), ROWS, HEADER))


def test_shipped_jobs_with_repeats_have_their_median_in_the_time_column():
    if data_folder() is None:
        pytest.skip("the measured tables are not here: set LYNCEUS_DATA")
    names = [name for name in shipped_jobs() if name.startswith(("c3o_single/", "serverless/"))]
    assert len(names) == 9
    for name in names:
        measured = load_job(name).measurements
        repeated = [
            (times, seconds) for times, seconds in zip(measured.repeats, measured.seconds, strict=True) if times
        ]
        assert len(repeated) > 10
        for times, seconds in repeated:
            ordered = sorted(times)
            middle = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
            assert middle[0] * 0.99 <= seconds <= middle[1] * 1.01
