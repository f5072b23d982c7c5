"""Recurring jobs in a storage: what is written once, what two schedulers at once may do, and what a crash leaves."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest
from sqlalchemy import text

from lynceus.errors import InputError
from lynceus.recurring.record import Basis, Change, ProductionRun, Version
from lynceus.recurring.settings import Mode, Settings
from lynceus.storage.sql import migrate
from lynceus.storage.sql.address import parse_address
from lynceus.storage.sql.engine import open_engine
from lynceus.storage.sql.job_writer import JobChangedError, OtherRunError
from lynceus.storage.sql.jobs import JobExistsError, JobStore
from lynceus.storage.sql.rename import rename_study
from lynceus.storage.sql.storage import Storage, upgrade
from lynceus.trial.outcome import End, FailureReason

FIRST = Version(0, {"nodes": 4, "vm": "c5"}, 0.0, by="ana", reason="as until now", expected={"cost_usd": 2.0})
RUN = ProductionRun("r1", 1, 61.5, 1000.0, size=1.2e11, cost_usd=0.5, price_usd_per_hour=29.3, started_s=938.5)


@pytest.fixture
def store(storage: Storage) -> JobStore:
    store = JobStore(storage)
    store.create("nightly", {"job": {"name": "nightly", "é": [1]}}, FIRST, studies=["search"])
    return store


def canary(store: JobStore, run_id: str, sequence: int | None = None) -> int:
    """Reserve a canary, as a scheduler that starts a run does."""
    with store.changing("nightly", sequence) as job:
        version = job.add_version(Version(0, {"nodes": 2, "vm": "c5"}, 0.0, source="canary"))
        job.reserve_canary(version.number, run_id, 0.25)
        return version.number


def test_a_job_reads_as_it_was_written(store: JobStore, url: str) -> None:
    failed = ProductionRun("r2", 1, 3.0, 999.0, end=End.FAILED, reason=FailureReason.OOM, detail="killed")
    tried = replace(RUN, run_id="r3", ended_s=2000.0, canary=True, timeout_s=90.0, instead_usd=0.6, version=2)
    with store.changing("nightly") as job:
        job.add_version(Version(0, {"nodes": 2}, 0.0, source="canary", basis=Basis(5.0, {3: 0.25})))
        assert [job.add_run(one) for one in (tried, failed, RUN)] == [True, True, True]
        job.set_settings(Settings(Mode.APPLY, 600.0, exclude=("sat",), allowance_usd=20.0), "settings", "ana", "try it")
    with Storage(url, create=False) as again:
        found = JobStore(again).load("nightly")
    assert found.record.runs == (failed, RUN, tried), "in the order in which they ended"
    assert found.record.settings == Settings(Mode.APPLY, 600.0, exclude=("sat",), allowance_usd=20.0)
    assert (found.document, found.studies) == ({"job": {"name": "nightly", "é": [1]}}, ("search",))
    first, second = found.record.versions
    assert (first.params, first.by, first.expected) == ({"nodes": 4, "vm": "c5"}, "ana", {"cost_usd": 2.0})
    assert (second.number, second.basis, second.adopted_s) == (2, Basis(5.0, {3: 0.25}), None)
    assert first.adopted_s is not None
    assert [(one.kind, one.by, one.after_runs) for one in found.record.changes] == [
        ("adopt", "ana", 0),
        ("settings", "ana", 3),
    ]
    assert found.record.changes[1].evidence["changed"]["mode"] == ["observe", "apply"]
    assert found.head == JobStore(store.storage).head("nightly")


def test_versions_come_and_go_and_nothing_is_rewritten(store: JobStore) -> None:
    with store.changing("nightly") as job:
        second = job.add_version(Version(0, {"nodes": 8}, 0.0, by="bo"))
        job.set_current(second.number, Change(0.0, "adopt", by="bo", reason="faster"))
    with store.changing("nightly") as job:
        job.set_current(1, Change(0.0, "rollback", by="ana", reason="too expensive"))
    found = store.load("nightly").record
    assert (found.current, len(found.versions)) == (1, 2)
    assert [(one.kind, one.version, one.evidence.get("before")) for one in found.changes[1:]] == [
        ("adopt", 2, 1),
        ("rollback", 1, 2),
    ]
    with (
        pytest.raises(InputError, match=r"has no version 7; its versions are 1 to 2"),
        store.changing("nightly") as job,
    ):
        job.set_current(7, Change(0.0, "rollback"))


def test_a_run_is_recorded_once(store: JobStore) -> None:
    with store.changing("nightly") as job:
        assert job.add_run(RUN)
    before = store.head("nightly").sequence
    with store.changing("nightly") as job:
        assert not job.add_run(replace(RUN, ended_s=1001.0)), (
            "a scheduler that repeats a report may tell another moment"
        )
    assert store.head("nightly").sequence == before
    with (
        pytest.raises(OtherRunError, match=r"'r1' .* recorded already with other values"),
        store.changing("nightly") as job,
    ):
        job.add_run(replace(RUN, seconds=62.0))
    with pytest.raises(InputError, match=r"no version 9"), store.changing("nightly") as job:
        job.add_run(replace(RUN, run_id="r9", version=9))
    assert store.load("nightly").record.runs == (RUN,)


def test_names_and_ids_are_checked(store: JobStore) -> None:
    with pytest.raises(JobExistsError, match="'nightly' exists already"):
        store.create("nightly", {}, FIRST)
    with pytest.raises(
        InputError, match=r"'weekly' is not in .*; known are: nightly; adopt it with: lynceus adopt weekly"
    ):
        store.head("weekly")
    for name in ("", "a/b", "..", "x" * 201, "a\0b"):
        with pytest.raises(InputError, match="job name"):
            store.create(name, {}, FIRST)
    with pytest.raises(InputError, match="run id"), store.changing("nightly") as job:
        job.add_run(replace(RUN, run_id="a\nb"))
    assert store.delete("nightly")
    assert store.heads() == []


def test_one_canary_at_a_time(store: JobStore) -> None:
    assert canary(store, "r1") == 2
    with pytest.raises(JobChangedError):
        canary(store, "r2")
    assert len(store.load("nightly").record.versions) == 2, "the version of the refused one is not kept"
    with store.changing("nightly") as job:
        assert job.renew_canary("r1")
        assert not job.renew_canary("r2")
        job.add_run(replace(RUN, version=2, canary=True))
    assert store.head("nightly").open_canary is None, "the run ends its canary"
    assert canary(store, "r2") == 3


def test_a_canary_whose_scheduler_is_gone_keeps_nobody_from_trying(url: str) -> None:
    time = [1000.0]
    with Storage(url, now=lambda: time[0]) as storage:
        store = JobStore(storage, lease_s=60.0)
        store.create("nightly", {}, FIRST)
        canary(store, "r1")
        time[0] += 50
        with store.changing("nightly") as job:
            assert job.renew_canary("r1")
        time[0] += 50
        with pytest.raises(JobChangedError):
            canary(store, "r2")
        time[0] += 11
        assert canary(store, "r2") == 3
        with store.changing("nightly") as job:
            assert not job.renew_canary("r1"), "it lost its place"
            job.add_run(replace(RUN, version=2, canary=True))
        found = store.load("nightly").record
        assert found.open_canary is not None
        assert (found.open_canary.run_id, len(found.runs)) == ("r2", 1), "its run counts all the same"


def test_of_schedulers_that_decide_at_once_one_decides_again(store: JobStore, url: str) -> None:
    sequence, won, lost = store.head("nightly").sequence, [], []
    ready = threading.Barrier(6)

    def decide(number: int) -> None:
        with Storage(url, create=False) as own:
            mine = JobStore(own)
            ready.wait()
            try:
                canary(mine, f"r{number}", sequence)
                won.append(number)
            except JobChangedError:
                lost.append(number)

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (len(won), len(lost)) == (1, 5)
    record = store.load("nightly").record
    assert record.open_canary is not None
    assert (record.open_canary.run_id, len(record.versions)) == (f"r{won[0]}", 2)


def test_a_change_that_is_cut_short_leaves_nothing(store: JobStore, url: str) -> None:
    script = (
        "import os, signal, sys\n"
        "from lynceus.recurring.record import Change, Version\n"
        "from lynceus.storage.sql.jobs import JobStore\n"
        "from lynceus.storage.sql.storage import Storage\n"
        "with JobStore(Storage(sys.argv[1], create=False)).changing('nightly') as job:\n"
        "    made = job.add_version(Version(0, {'nodes': 8}, 0.0))\n"
        "    job.set_current(made.number, Change(0.0, 'adopt'))\n"
        "    job.reserve_canary(made.number, 'r1', 1.0)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, url], env=os.environ, check=False)
    assert done.returncode == -signal.SIGKILL
    found = store.load("nightly").record
    assert (found.current, len(found.versions), len(found.changes), found.open_canary) == (1, 1, 1, None)
    assert canary(store, "r1") == 2


def test_users_are_told_once(store: JobStore) -> None:
    for expected in (True, False):
        with store.changing("nightly") as job:
            assert job.announced("drift 7") is expected
    assert len(store.load("nightly").record.changes) == 1, "no part of the audit"


def test_a_storage_of_the_last_version_is_upgraded_and_keeps_its_studies(url: str) -> None:
    engine = open_engine(parse_address(url))
    migrate.upgrade(engine, url, to="0005")
    with engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(
            text(
                "INSERT INTO studies (name, identity, created_s, document, fingerprint, policy, seed, sequence, settled,"
                " wish, resumed_at, added_usd, active_s, seen_s, queue, added_trials)"
                " VALUES ('old', 'i', 0, '{}', 'f', '{}', 0, 0, 0, 'run', 0, 0, 0, 0, '[]', 0)"
            )
        )
    engine.dispose()
    assert upgrade(url) == ("0005", migrate.HEAD)
    with Storage(url) as storage:
        assert [one.name for one in storage.studies()] == ["old"]
        assert JobStore(storage).heads() == []


def test_a_job_knows_its_studies_by_their_new_names(store: JobStore) -> None:
    """Otherwise it would forget what they told it, or learn from a study that gets the old name."""
    with store.changing("nightly") as job:
        job.set_document({"job": {"name": "nightly"}}, ["search", "second"])
    store.create("other", {}, FIRST, studies=["second"])
    before = {one.name: one.sequence for one in store.heads()}
    for name in ("search", "search-2"):
        storage_study(store.storage, name)
    rename_study(store.storage, "search", "first")
    assert [store.load(one).studies for one in ("nightly", "other")] == [("first", "second"), ("second",)]
    after = {one.name: one.sequence for one in store.heads()}
    assert (after["nightly"] > before["nightly"], after["other"]) == (True, before["other"])


def storage_study(storage: Storage, name: str) -> None:
    """A study of which only the name matters."""
    storage.create_study(name, document={}, fingerprint="", policy={})
