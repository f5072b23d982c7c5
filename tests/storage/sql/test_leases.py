"""Runs are not stolen: leases, workers that cannot be seen, clocks that differ, and what a worker that was taken for dead may do."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from journal_cases import observation, order
from lease_worker import LoggingExecutor, study_of
from lynceus.executors.interface import WallClock
from lynceus.storage.sql import migrate
from lynceus.storage.sql.address import parse_address
from lynceus.storage.sql.engine import open_engine
from lynceus.storage.sql.storage import Storage, upgrade
from lynceus.study.run_loop import explore
from lynceus.study.runs import TakenOverError
from lynceus.trial.outcome import End, Outcome

SCRIPT = Path(__file__).parents[2] / "lease_worker.py"
PATIENCE_S = 60.0
SEARCH_PATH = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
ENVIRONMENT = {**os.environ, "PYTHONPATH": SEARCH_PATH, "OMP_NUM_THREADS": "1"}


def new_study(storage: Storage) -> None:
    storage.create_study("nightly", document={}, fingerprint="f", policy={}, seed=0)


def run(url: str, *arguments: str, prefix: tuple[str, ...] = (), **environment: str) -> Any:
    """What the script printed."""
    done = subprocess.run(
        [*prefix, sys.executable, str(SCRIPT), url, *arguments],
        env=ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout else None


@contextlib.contextmanager
def waiting_worker(url: str, *prefix: str, **environment: str) -> Iterator[tuple[list[int], str]]:
    """A process that looks after trial 1: what it took over at first, and its name."""
    command = [*prefix, sys.executable, str(SCRIPT), url, "order"]
    with subprocess.Popen(
        command, env=ENVIRONMENT | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield tuple(json.loads(process.stdout.readline()))
        process.stdin.close()


def new_pid_namespace() -> tuple[str, ...]:
    """The command that runs another one in a PID namespace of its own; skips where that is not allowed."""
    command = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    allowed = (
        shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    )
    if not allowed:
        pytest.skip("a new PID namespace needs root and the program unshare (apt-get install util-linux)")
    return command


def test_containers_with_one_host_name_do_not_declare_each_other_dead(storage: Storage, url: str) -> None:
    """Process numbers mean nothing across PID namespaces, though host name and boot are the same."""
    new_study(storage)
    ours = storage.journal("nightly")
    ours.ordered(order(0), {})
    with waiting_worker(url, *new_pid_namespace()) as (adopted, name):
        assert name.split("/")[:2] == ours.worker.split("/")[:2]  # same host, same boot
        assert adopted == []
        assert [run.order.number for run in ours.adopt()] == [0]
    # It has ended, which cannot be seen from here: its lease counts.
    assert [run.order.number for run in ours.adopt()] == [0]


def test_a_host_whose_clock_is_ahead_does_not_take_over(storage: Storage, url: str) -> None:
    new_study(storage)
    journal = storage.journal("nightly")
    journal.worker = _elsewhere(journal.worker)
    journal.ordered(order(0), {})
    assert run(url, "adopt", "--clock=1200") == []


@pytest.mark.slow
@pytest.mark.parametrize("shift", ["+20m", "-20m"])
def test_hosts_whose_clocks_differ_do_not_take_over_from_each_other(storage: Storage, url: str, shift: str) -> None:
    """The same with libfaketime, which changes the clock for everything in the process."""
    if shutil.which("faketime") is None:
        pytest.skip("no libfaketime: apt-get install faketime")
    new_study(storage)
    journal = storage.journal("nightly")
    journal.worker = _elsewhere(journal.worker)
    journal.ordered(order(0), {})
    shifted = (*new_pid_namespace(), "faketime", "-f", shift)
    with waiting_worker(url, *shifted, FAKETIME_DONT_FAKE_MONOTONIC="1") as (adopted, _):
        assert adopted == []
        assert [run.order.number for run in journal.adopt()] == [0]


def test_a_lease_that_was_not_renewed_runs_out_whatever_the_hosts_clock_says(url: str) -> None:
    with Storage(url, lease_s=0.05) as storage:
        new_study(storage)
        journal = storage.journal("nightly")
        journal.worker = _elsewhere(journal.worker)
        journal.ordered(order(0), {})
        time.sleep(0.1)
        assert run(url, "adopt", "--clock=-1200", "--lease=0.05") == [0]


def test_what_a_worker_writes_after_another_took_over_does_not_count(url: str) -> None:
    now = [1000.0]
    with Storage(url, now=lambda: now[0]) as storage:
        new_study(storage)
        one, other = storage.journal("nightly"), storage.journal("nightly")
        one.worker = _elsewhere(one.worker)
        for number in range(2):
            one.ordered(order(number), {})
        one.launched(0, "there")
        now[0] += 901.0
        assert [(run.order.number, run.epoch) for run in other.adopt()] == [(0, 1), (1, 1)]
        before = storage.trials("nightly")

        one.heartbeat([0, 1])
        assert not one.launched(1, "twice")
        assert not one.settled(observation(0, charged_usd=9.0), {})
        assert one.adopt() == ()
        assert storage.trials("nightly") == before
        assert [run.taken_over for run in one.record.open_runs] == [True, True]
        assert [run.taken_over for run in other.record.open_runs] == [False, False]

        assert other.launched(1, "here")
        assert other.settled(observation(0), {})
        assert not one.settled(observation(0, charged_usd=9.0), {})
        assert [seen.outcome.charged_usd for seen in storage.journal("nightly").record.observations] == [0.5]


def test_a_run_that_comes_back_is_ours_again(url: str) -> None:
    now = [1000.0]
    with Storage(url, now=lambda: now[0]) as storage:
        new_study(storage)
        one, other = storage.journal("nightly"), storage.journal("nightly")
        one.worker = _elsewhere(one.worker)
        one.ordered(order(0), {})
        now[0] += 901.0
        assert other.adopt()
        other.release()
        assert [run.epoch for run in one.adopt()] == [2]
        assert one.launched(0, "there")
        assert one.settled(observation(0), {})


def test_heartbeats_renew_a_lease(url: str) -> None:
    now = [1000.0]
    with Storage(url, now=lambda: now[0], lease_s=100.0) as storage:
        new_study(storage)
        one, other = storage.journal("nightly"), storage.journal("nightly")
        one.worker = _elsewhere(one.worker)
        one.ordered(order(0), {})
        for _ in range(5):
            now[0] += 99.0
            assert other.adopt() == ()
            one.heartbeat([0])
        now[0] += 101.0
        assert [run.order.number for run in other.adopt()] == [0]


def test_a_stopped_worker_neither_launches_nor_settles_what_another_took_over(url: str, tmp_path: Path) -> None:
    """A real worker is stopped between its order and the launch, beyond its lease, and then goes on."""
    container = new_pid_namespace()
    log, ordered, go_on = (tmp_path / name for name in ("log", "ordered", "go-on"))
    command = [*container, sys.executable, str(SCRIPT), url, "explore", str(log), "--lease=0.5"]
    with Storage(url, lease_s=0.5) as storage:
        study = study_of(storage)
        with subprocess.Popen(command, env=ENVIRONMENT | {"ORDERED": str(ordered), "GO_ON": str(go_on)}) as process:
            _wait_for(ordered)
            (worker,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            os.kill(int(worker), signal.SIGSTOP)
            study.runs.refresh()
            assert [one.number for one in study.pending] == [0]
            time.sleep(0.6)  # beyond its lease
            explore(study, LoggingExecutor(log), WallClock())
            assert study.over
            go_on.touch()
            os.kill(int(worker), signal.SIGCONT)
            assert process.wait(PATIENCE_S) == 0
        started = sorted(line.split() for line in log.read_text().splitlines())
        assert started == [[str(number), str(os.getpid())] for number in range(3)]
        assert sorted(event.number for event in storage.events("nightly") if event.kind == "settled") == [0, 1, 2]


def test_tell_of_a_trial_that_another_worker_took_over_is_refused(url: str) -> None:
    now = [1000.0]
    with Storage(url, now=lambda: now[0]) as storage:
        study, other = study_of(storage), storage.journal("nightly")
        study.journal.worker = _elsewhere("")  # type: ignore[attr-defined]
        trial = study.ask()
        now[0] += 901.0
        other.adopt()
        with pytest.raises(TakenOverError, match="trial 0 was taken over by another worker"):
            study.tell(trial, runtime=3.0)
        with pytest.raises(TakenOverError):
            study.runs.settle(study.pending[0], Outcome(End.FINISHED, 1.0, 0.0))


def test_a_storage_of_the_earlier_version_is_upgraded_and_judges_by_heartbeats(url: str) -> None:
    engine = open_engine(parse_address(url))
    migrate.upgrade(engine, url, to="0003")
    job = {"job": {"name": "old", "storage": "postgresql://me:hush@db/x?sslpassword=hush2&a=b"}, "folder": "/"}
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(
            text(
                "INSERT INTO studies (id, name, identity, created_s, document, fingerprint, policy, seed, sequence, settled,"
                " wish, resumed_at, added_usd, active_s, seen_s)"
                " VALUES (1, 'old', 'i', 0, :document, 'f', '{}', 0, 2, 0, 'run', 0, 0, 0, 0)"
            ),
            {"document": json.dumps(job)},
        )
        ordered = json.dumps(
            {
                "v": 1,
                "row": 0,
                "cap_s": 1,
                "reserved_usd": 1,
                "boots": True,
                "plan": {"row": 0, "why": "x", "stoppable": True},
            }
        )
        for number, seen in ((0, 1000.0), (1, 1500.0)):
            connection.execute(
                text(
                    "INSERT INTO trials (study_id, number, sequence, params, ordered, worker, ordered_s, heartbeat_s)"
                    " VALUES (1, :number, 1, '{}', :ordered, 'vm/7e876a50/1/1/x', 1000, :seen)"
                ),
                {"number": number, "ordered": ordered.replace('"v": 1', f'"v": 1, "number": {number}'), "seen": seen},
            )
    engine.dispose()
    assert upgrade(url) == ("0003", migrate.HEAD)
    with Storage(url, now=lambda: 2000.0) as storage:
        assert [run.order.number for run in storage.journal("old").adopt()] == [0]
        with storage._engine.connect() as connection:
            stored = str(connection.execute(text("SELECT document FROM studies")).scalar())
    assert "hush" not in stored
    assert "postgresql://me@db/x?a=b" in stored


def _elsewhere(worker: str) -> str:
    """The name of a worker that cannot be seen from here."""
    return "elsewhere/another-boot/1/1/1/" + (worker.rsplit("/", 1)[-1] or "token")


def _wait_for(file: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while not file.exists():
        assert time.monotonic() < until, "the worker ordered nothing"
        time.sleep(0.01)
