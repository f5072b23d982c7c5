"""PostgreSQL is gone: a host serves the last version that it saw, tries nothing, keeps its runs, and reconciles later."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lynceus.errors import StorageOutageError
from lynceus.library.recurring import steering
from lynceus.library.recurring.execution import FailedRunError, execute
from lynceus.library.recurring.recurring_job import RecurringJob, adopt_job
from lynceus.recurring.action import Action, ActionKind
from lynceus.storage.sql.storage import Storage
from postgres import Server, server

JOB = "name: x\nrun: [echo, '${n}']\nspace: {n: [1, 2]}\nprice: 3600 * n\nbudget: 1000000\n"


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    with server() as running:
        yield running


@pytest.fixture
def address(database: Server, tmp_path: Path) -> str:
    return database.database(f"jobs-{tmp_path.name[-30:]}")


def adopted(url: str, folder: Path) -> RecurringJob:
    (folder / "job.yaml").write_text(JOB)
    return adopt_job("nightly", source=str(folder / "job.yaml"), params={"n": 1}, storage=url, by="ana")


def test_a_host_goes_on_without_the_storage_and_reconciles(
    database: Server, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = adopted(address, tmp_path)
    job.set(mode="apply", allowance_usd=100.0)
    asked: list[Any] = []
    monkeypatch.setattr(steering, "next_action", lambda *given: asked.append(given) or Action(ActionKind.KEEP, "fine"))
    database.kill()
    try:
        host = RecurringJob("nightly", address)  # a command that starts now
        config = host.config(run_id="a")
        assert (config.stale, config.version, config.params, config.canary) == (True, 1, {"n": 1}, False)
        assert "LYNCEUS_JOB_VERSION=1" in host.config_text("env", config)
        assert asked == [], "nothing is tried without the storage"
        done = execute(host, run_id="a", input="1 GB")
        assert (done.recorded, done.run.version, done.config.stale) == (False, 1, True)
        assert host.record("5m", run_id="b", input="1 GB")
        assert host.record("5m", run_id="b", input="1 GB"), "it cannot know; the storage will"
        assert host.waiting == 2
        with pytest.raises(StorageOutageError):
            host.rollback()
    finally:
        database.start()
    with Storage(address, create=False) as storage:
        adopt_job("nightly", params={"n": 2}, storage=storage, by="bo", reason="meanwhile, elsewhere")
    host = RecurringJob("nightly", address)
    assert host.record("6m", run_id="c", version=2)
    assert [(run.run_id, run.version, run.size) for run in host.runs] == [("a", 1, 1e9), ("b", 1, 1e9), ("c", 2, None)]
    assert host.runs[1].cost_usd == pytest.approx(300.0)
    assert (host.waiting, host.config().version) == (0, 2)


def test_a_task_that_failed_is_tried_again_while_the_storage_is_away(
    database: Server, address: str, tmp_path: Path
) -> None:
    (tmp_path / "job.yaml").write_text(
        JOB.replace("[echo, '${n}']", "[sh, -c, 'echo $1 >> tries; exit 1', job, '${n}']")
    )
    adopt_job("nightly", source=str(tmp_path / "job.yaml"), params={"n": 1}, storage=address, by="ana")
    database.kill()
    try:
        host = RecurringJob("nightly", address)
        for _ in range(2):
            with pytest.raises(FailedRunError, match="exit code 1"):
                host.execute(task="report")
    finally:
        database.start()
    assert (tmp_path / "tries").read_text() == "1\n1\n"
    back = RecurringJob("nightly", address)
    back.deliver()
    assert [run.run_id for run in back.runs] == ["report", "report-2"]


def test_a_kept_run_that_contradicts_the_storage_is_set_aside(
    database: Server, address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    adopted(address, tmp_path)
    database.kill()
    try:
        host = RecurringJob("nightly", address)
        host.record("5m", run_id="a")
    finally:
        database.start()
    with Storage(address, create=False) as storage:
        RecurringJob("nightly", storage).record("9m", run_id="a")
    host = RecurringJob("nightly", address)
    assert host.record("6m", run_id="b")
    assert [(run.run_id, run.seconds) for run in host.runs] == [("a", 540.0), ("b", 360.0)]
    assert host.waiting == 0
    assert "was recorded already with other values" in caplog.text
    assert len(list((tmp_path / "home").rglob("*.refused"))) == 1


def test_a_host_that_never_saw_a_job_cannot_serve_it(database: Server, address: str) -> None:
    Storage(address).close()
    database.kill()
    try:
        with pytest.raises(StorageOutageError):
            RecurringJob("unheard", address).config()
        with pytest.raises(StorageOutageError):
            RecurringJob("unheard", address).record("5m", run_id="a")
    finally:
        database.start()


def test_schedulers_that_start_at_once_try_one_canary(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = adopted(address, tmp_path)
    job.set(mode="apply", allowance_usd=100.0)
    canary = Action(ActionKind.CANARY, "try it", {"n": 2}, timeout_s=60.0, reserved_usd=1.0)

    def decide(problem: Any, record: Any, now_s: float, size: Any = None) -> Action:
        return canary if record.open_canary is None else Action(ActionKind.KEEP, "a canary runs already")

    monkeypatch.setattr(steering, "next_action", decide)
    got: list[Any] = []
    ready = threading.Barrier(6)

    def schedule(number: int) -> None:
        mine = RecurringJob("nightly", address)
        ready.wait()
        got.append(mine.config(run_id=f"r{number}"))

    threads = [threading.Thread(target=schedule, args=(number,)) for number in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(one.canary for one in got) == [False] * 5 + [True]
    record = job.history
    (tried,) = [one for one in got if one.canary]
    assert (len(record.versions), record.current) == (2, 1)
    assert record.open_canary is not None
    assert (record.open_canary.run_id, record.open_canary.version) == (tried.run_id, 2)
