"""Several worker processes on one study: no trial runs twice, and limits apply to all workers together."""

import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from crash_worker import study_of
from lynceus.storage.sql.storage import Storage

if TYPE_CHECKING:
    from postgres import Server
    from workers import Workers


def check_workers(workers: "Workers", url: str, folder: Path, *, count: int, trials: int, usd: float) -> None:
    task: dict[str, Any] = {
        "url": url,
        "name": "shared",
        "policy": "random+timeouts",
        "parallel": 2,
        "rows": 2000,
        "usd": usd,
        "trials": trials,
        "seed": 0,
        "instant": True,
        "meet": [str(folder), count],
    }
    with Storage(url) as storage:
        study_of(task, storage)
    running = [workers.start(task) for _ in range(count)]
    assert [workers.wait(pid) for pid in running] == [0] * count
    with Storage(url) as storage:
        made, events, record = storage.trials("shared"), storage.events("shared"), storage.load_study("shared")
    assert [trial.number for trial in made] == list(range(len(made)))
    assert sorted(trial.rank for trial in made if trial.rank is not None) == list(range(len(made)))
    assert max(Counter(trial.order.row for trial in made).values()) == 1
    assert record.state == "FINISHED"
    assert len({event.worker for event in events if event.kind == "ordered"}) == count
    by_number = {trial.number: trial for trial in made}
    spent = reserved = 0.0
    for event in events:
        if event.number is None:
            continue
        trial = by_number[event.number]
        assert trial.outcome is not None
        if event.kind == "ordered":
            reserved += trial.order.reserved_usd
        elif event.kind == "settled":
            reserved -= trial.order.reserved_usd
            spent += trial.outcome.charged_usd
        assert spent + reserved <= usd * (1 + 1e-9)
    assert len(made) <= trials
    assert spent > 0.95 * usd or len(made) == trials


def test_two_workers_on_sqlite(tmp_path: Path, workers: "Workers") -> None:
    check_workers(workers, f"sqlite:///{tmp_path}/s.db", tmp_path, count=2, trials=60, usd=1e6)


def test_two_workers_share_a_budget(tmp_path: Path, workers: "Workers", postgres: "Server") -> None:
    check_workers(workers, postgres.database(f"shared-{uuid4().hex}"), tmp_path, count=2, trials=1000, usd=100.0)


@pytest.mark.slow
def test_eight_workers_run_500_trials(tmp_path: Path, workers: "Workers", postgres: "Server") -> None:
    check_workers(workers, postgres.database(f"shared-{uuid4().hex}"), tmp_path, count=8, trials=500, usd=1e6)


@pytest.mark.slow
def test_eight_workers_share_a_budget(tmp_path: Path, workers: "Workers", postgres: "Server") -> None:
    check_workers(workers, postgres.database(f"shared-{uuid4().hex}"), tmp_path, count=8, trials=1000, usd=1000.0)


def test_a_worker_takes_over_from_one_that_was_killed(tmp_path: Path, workers: "Workers") -> None:
    task: dict[str, Any] = {
        "url": f"sqlite:///{tmp_path}/s.db",
        "name": "shared",
        "policy": "random+timeouts",
        "parallel": 1,
        "rows": 40,
        "usd": 100.0,
        "trials": 2,
        "seed": 0,
        "sleep_s": 3.0,
        "folder": str(tmp_path),
    }
    first = workers.start(task)
    until = time.monotonic() + 60
    while not (tmp_path / "log").exists() and time.monotonic() < until:
        time.sleep(0.01)
    second = workers.start({**task, "parallel": 2})
    os.kill(first, signal.SIGKILL)
    assert workers.wait(first) == -signal.SIGKILL
    assert workers.wait(second) == 0
    assert sorted((tmp_path / "log").read_text().split()) == ["0", "1"]
    with Storage(task["url"]) as storage:
        assert storage.load_study("shared").settled == 2
