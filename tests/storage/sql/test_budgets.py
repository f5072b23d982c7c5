"""Shared budgets in a real storage: what counts, who is limited, and that workers at the same moment stay within them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text

import lynceus
from lynceus.errors import InputError
from lynceus.library.recurring.steering import begin_run
from lynceus.recurring.record import ProductionRun, Version
from lynceus.recurring.settings import Settings
from lynceus.storage.sql.audit import AuditEntry, note_change
from lynceus.storage.sql.audit_log import audit_log
from lynceus.storage.sql.backup import back_up, restore
from lynceus.storage.sql.budgets import BudgetStore, UnknownBudgetError
from lynceus.storage.sql.jobs import JobStore
from lynceus.storage.sql.storage import Storage
from lynceus.study.study import Study
from lynceus.trial.shared_budget import Account, Payer

FORECASTS, ANA = Account.parse("project:forecasts"), Account.parse("owner:ana")
TESTS = Path(__file__).parents[2]


class Clock:
    """18 November 2026, until it is set."""

    now_s = 1_795_000_000.0

    def __call__(self) -> float:
        return self.now_s


def study(
    storage: Storage, name: str, *, project: str | None = "forecasts", owner: str = "ana", nodes: int = 9
) -> Study:
    space = lynceus.Space.build([lynceus.Integer("nodes", 1, nodes)], price="3.6 * nodes")
    return lynceus.create_study(
        space=space,
        constraints=["runtime <= 1000s"],
        policy="sweep",
        study_name=name,
        storage=storage,
        project=project,
        owner=owner,
    )


def test_what_counts_and_what_does_not(url: str) -> None:
    clock = Clock()
    with Storage(url, now=clock) as storage:
        budgets = BudgetStore(storage)
        budgets.set(FORECASTS, 20.0, by="boss")
        one, other = study(storage, "one"), study(storage, "other", project="else")
        first, second, foreign = one.ask(), one.ask(), other.ask()
        assert first is not None and second is not None and foreign is not None  # noqa: PT018
        one.tell(first, runtime=200.0)
        one.add_trial({"nodes": 9}, runtime=500.0)  # past runs are free
        (found,) = budgets.all()
        assert found.charged_usd == pytest.approx(one.spent_usd)
        assert found.reserved_usd == pytest.approx(second.max_charge_usd)
        budgets.set(ANA, 50.0, by="boss")  # both studies are hers
        owned, _ = budgets.all()
        assert owned.reserved_usd == pytest.approx(second.max_charge_usd + foreign.max_charge_usd)
        assert [record.payer for record in storage.studies()] == [Payer("forecasts", "ana"), Payer("else", "ana")]
        clock.now_s = 1_796_083_200.0  # the first moment of December: what was charged is gone, what is open stays
        owned, found = budgets.all()
        assert (found.charged_usd, str(found.month)) == (0.0, "December 2026")
        assert found.reserved_usd == pytest.approx(second.max_charge_usd)


def test_a_study_pauses_and_goes_on_when_there_is_money(url: str) -> None:
    clock = Clock()
    with Storage(url, now=clock) as storage:
        budgets = BudgetStore(storage)
        budgets.set(FORECASTS, 0.3, by="boss")
        one = study(storage, "one")
        trial = one.ask()
        assert trial is not None
        assert trial.max_charge_usd <= 0.3
        one.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        assert one.ask() is None
        assert storage.load_study("one").state == "PAUSED"
        assert "lynceus budget set project:forecasts" in str(one.reason)
        one.resume()
        assert one.ask() is None  # still November
        clock.now_s = 1_796_083_200.0
        one.resume()
        assert one.ask() is not None
        assert one.stopped is None


def test_deleting_a_study_gives_no_money_back(url: str) -> None:
    with Storage(url, now=Clock()) as storage:
        budgets = BudgetStore(storage)
        budgets.set(FORECASTS, 20.0, by="boss")
        one = study(storage, "one")
        trial = one.ask()
        assert trial is not None
        one.tell(trial, runtime=200.0)
        storage.delete_study("one", only_unstarted=True)
        assert budgets.all()[0].charged_usd == pytest.approx(0.2)
        assert storage.delete_study("one")
        assert budgets.all()[0].charged_usd == pytest.approx(0.2)


def production(storage: Storage, cost_usd: float) -> JobStore:
    """A recurring job of the project with one run."""
    store = JobStore(storage)
    study(storage, "nightly", nodes=4)
    document = storage.load_study("nightly").document
    version = Version(1, {"nodes": 4}, 0.0, by="ana", reason="as until now")
    store.create("nightly", document, version, settings=Settings(mode="apply"), studies=["nightly"])
    run = ProductionRun("r1", 1, 600.0, Clock.now_s - 60.0, cost_usd=cost_usd)
    with store.changing("nightly") as job:
        assert job.add_run(run)
    return store


def test_production_runs_and_canaries_count_and_a_canary_is_refused_before_it_starts(url: str) -> None:
    with Storage(url, now=Clock()) as storage:
        budgets, store = BudgetStore(storage), production(storage, 2.4)
        assert store.load("nightly").payer == Payer("forecasts", "ana")
        assert budgets.set(FORECASTS, 3.0, by="boss").charged_usd == pytest.approx(2.4)
        with store.changing("nightly") as job:
            job.add_version(Version(2, {"nodes": 2}, 0.0, by="lynceus", reason="a test"))
            job.reserve_canary(2, "r2", 0.5)
            (held,) = job.shared_budgets()
        (found,) = budgets.all()
        assert (found.reserved_usd, held.left_usd) == (pytest.approx(0.5), pytest.approx(0.6))
        assert store.delete("nightly")
        assert budgets.all()[0].charged_usd == pytest.approx(2.4)


def test_a_job_without_money_runs_in_production_all_the_same(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The decider wants a canary; the budget does not pay it."""
    from lynceus.library.recurring import steering
    from lynceus.recurring.action import Action, ActionKind

    action = Action(ActionKind.CANARY, "it looks cheaper", params={"nodes": 2}, reserved_usd=1.0)
    monkeypatch.setattr(steering, "_decide", lambda job, size: action)
    with Storage(url, now=Clock()) as storage:
        store = production(storage, 2.4)
        BudgetStore(storage).set(FORECASTS, 3.0, by="boss")
        refused = begin_run(store, "nightly", "r2")
        assert (refused.canary, refused.version) == (False, 1)
        assert "a canary is refused: it may cost $1.00" in refused.reason
        assert store.load("nightly").record.open_canary is None
        BudgetStore(storage).set(FORECASTS, 30.0, by="boss")
        assert begin_run(store, "nightly", "r3").canary


def test_a_budget_is_changed_and_removed_and_the_audit_tells_who_did_it(storage: Storage) -> None:
    budgets = BudgetStore(storage)
    budgets.set(FORECASTS, 20.0, by="boss")
    assert budgets.set(FORECASTS, 5.0, by="ana").usd == 5.0
    budgets.remove(FORECASTS, by="boss")
    assert budgets.all() == ()
    with pytest.raises(UnknownBudgetError, match=r"project:forecasts has none in .*; known are: none"):
        budgets.remove(FORECASTS, by="boss")
    with pytest.raises(InputError, match="give 0 or more"):
        budgets.set(FORECASTS, -1.0, by="boss")


def test_two_people_may_set_the_same_new_budget_at_one_moment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first_wrote, go_on = threading.Event(), threading.Event()

    def note_slowly(connection: Connection, entry: AuditEntry) -> None:
        note_change(connection, entry)
        if entry.author == "ana":
            first_wrote.set()
            assert go_on.wait(30)

    monkeypatch.setattr("lynceus.storage.sql.budgets.note_change", note_slowly)
    with Storage(url) as mine, Storage(url) as yours, ThreadPoolExecutor(2) as pool:
        ana = pool.submit(BudgetStore(mine).set, FORECASTS, 20.0, by="ana")
        assert first_wrote.wait(30)
        boss = pool.submit(BudgetStore(yours).set, FORECASTS, 30.0, by="boss")
        try:
            if url.startswith("postgresql"):
                wait_for_a_lock(url)
        finally:
            go_on.set()
        assert (ana.result(60).usd, boss.result(60).usd) == (20.0, 30.0)
        assert [one.usd for one in BudgetStore(mine).all()] == [30.0]
        changes = [(one.author, one.detail) for one in audit_log(mine) if one.kind == "budget"]
        assert sorted(changes, key=str) == [
            ("ana", {"before_usd": None, "usd": 20.0}),
            ("boss", {"before_usd": 20.0, "usd": 30.0}),
        ]


def wait_for_a_lock(url: str) -> None:
    """Return when a session of this database waits for a row of another one."""
    engine = create_engine(url)
    waits = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    until = time.monotonic() + 30
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while not connection.execute(waits).scalar():
            assert time.monotonic() < until, "nobody waits"
            time.sleep(0.01)
    engine.dispose()


@pytest.mark.parametrize("studies", [4])
def test_workers_at_the_same_moment_do_not_together_exceed_a_budget(url: str, tmp_path: Path, studies: int) -> None:
    """Four processes, each with its own study: every reservation stays open, so that their sum is what was ever promised."""
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    names = [f"study-{number}" for number in range(studies)]
    with Storage(url) as storage:
        BudgetStore(storage).set(FORECASTS, 20.0, by="boss")
        for name in names:
            study(storage, name, owner=name, nodes=40)
    command = [sys.executable, str(TESTS / "budget_worker.py"), url]
    running = [subprocess.Popen([*command, name, str(meeting), str(studies)]) for name in names]
    assert [process.wait(120) for process in running] == [0] * studies
    with Storage(url) as storage:
        reserved = {name: [one.order.reserved_usd for one in storage.trials(name)] for name in names}
        (budget,) = BudgetStore(storage).all()
    total = sum(map(sum, reserved.values()))
    assert total <= 20.0 * (1 + 1e-9)
    assert total == pytest.approx(20.0)  # the last order gets what is left
    assert budget.reserved_usd == pytest.approx(total)


def test_a_backup_brings_budgets_back(url: str, tmp_path: Path) -> None:
    with Storage(url, now=Clock()) as storage:
        BudgetStore(storage).set(FORECASTS, 20.0, by="boss")
        study(storage, "one").ask()
    back_up(url, tmp_path / "copy.db")
    restore(tmp_path / "copy.db", f"sqlite:///{tmp_path}/again.db")
    with Storage(f"sqlite:///{tmp_path}/again.db", now=Clock()) as storage:
        (found,) = BudgetStore(storage).all()
        assert (found.account, found.usd, found.reserved_usd > 0) == (FORECASTS, 20.0, True)


def test_a_damaged_trial_of_one_study_does_not_stop_the_others(tmp_path: Path) -> None:
    import sqlite3

    url = f"sqlite:///{tmp_path}/studies.db"
    with Storage(url) as storage:
        BudgetStore(storage).set(FORECASTS, 20.0, by="boss")
        study(storage, "broken").ask()
        healthy = study(storage, "healthy")
        with sqlite3.connect(tmp_path / "studies.db") as database:
            database.execute("UPDATE trials SET ordered = '{oops'")
        database.close()
        assert healthy.ask() is not None
