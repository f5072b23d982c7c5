"""Tests for all journals, and tests for journals that several processes share."""

from collections.abc import Callable
from typing import Any

import pytest

from journal_cases import observation, order
from lynceus.errors import InfrastructureError, InputError
from lynceus.problem.objective import Constraint
from lynceus.storage.journal import Journal
from lynceus.storage.sql import reader as sql_reader
from lynceus.storage.sql.leases import LOST_AFTER_S
from lynceus.storage.sql.storage import Storage
from lynceus.trial.limit_change import LimitChange
from lynceus.trial.record import RequestedState
from lynceus.trial.stop import Stopped, StopReason

Journals = Callable[[], Journal]


def test_observations_are_in_the_order_of_settling(journals: Journals) -> None:
    journal = journals()
    for number in range(3):
        journal.ordered(order(number), {"n": number})
    assert [one.number for one in journal.record.pending] == [0, 1, 2]
    for number in (2, 0):
        assert journal.settled(observation(number), {"n": number})
    again = journals()
    assert [one.order.number for one in again.record.observations] == [2, 0]
    assert [one.outcome.seconds for one in again.record.observations] == [12.0, 10.0]
    assert [one.number for one in again.record.pending] == [1]


def test_a_trial_settles_once(journals: Journals) -> None:
    journal = journals()
    journal.ordered(order(0), {})
    assert journal.settled(observation(0), {})
    assert not journal.settled(observation(0, charged_usd=99.0), {})
    assert [one.outcome.charged_usd for one in journals().record.observations] == [0.5]


def test_imported_observations_follow_the_settled_trials(journals: Journals) -> None:
    journal = journals()
    journal.ordered(order(0), {"n": 0})
    journal.settled(observation(0), {"n": 0})
    journal.ordered(order(1), {"n": 1})
    assert journal.record.started == 2
    journal.imported([observation(number) for number in (2, 3, 4)], [{"n": number} for number in (2, 3, 4)])
    journal.imported([], [])
    assert not journal.settled(observation(3, charged_usd=99.0), {})
    for one in (journal, journals()):
        assert [seen.order.number for seen in one.record.observations] == [0, 2, 3, 4]
        assert one.record.observations[1:] == (observation(2), observation(3), observation(4))
        assert (one.record.started, [run.number for run in one.record.pending]) == (5, [1])


def test_cancel_can_be_requested_for_one_open_run(journals: Journals) -> None:
    journal = journals()
    for number in range(2):
        journal.ordered(order(number), {})
    journal.request_cancel(1)
    journal.request_cancel(1)
    journal.request_cancel(7)
    reader = journals()
    assert [run.cancel_requested for run in reader.record.open_runs] == [False, True]
    journal.settled(observation(1), {})
    reader.refresh()
    assert [run.order.number for run in reader.record.open_runs] == [0]


def test_changed_constraints_are_kept_and_every_reader_sees_them(journals: Journals) -> None:
    journal, reader = journals(), journals()
    journal.ordered(order(0), {})
    journal.closed(Stopped(StopReason.CONVERGED, "hopeless"))
    limits = [(Constraint.parse(text),) for text in ("runtime <= 10m", "runtime <= 20m @ 0.95", "bytes <= 4.3MB")]
    first, second = (LimitChange(number, limits[number], limits[number + 1]) for number in range(2))
    journal.resumed(2.0, first)
    assert journal.record.stopped is None
    reader.refresh()
    for one in (journal, reader, journals()):
        assert (one.record.limit_changes, one.record.added_usd) == ((first,), 2.0)
    reader.resumed(limits=second)
    journal.resumed(1.0)
    for one in (journal, journals()):
        assert (one.record.limit_changes, one.record.added_usd) == ((first, second), 3.0)


@pytest.mark.parametrize("journals", ["sqlite", "postgresql"], indirect=True)
def test_a_change_of_constraints_that_fails_halfway_is_not_kept(journals: Journals) -> None:
    journal = journals()
    journal.closed(Stopped(StopReason.CONVERGED, "hopeless"))
    change = LimitChange(0, (), (Constraint.parse("runtime <= 20m"),))

    def interrupted() -> None:
        with journal.exclusive():
            journal.resumed(5.0, change)
            assert journal.record.limit_changes == (change,)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    for one in (journal, journals()):
        assert (one.record.limit_changes, one.record.added_usd) == ((), 0.0)
        assert one.record.stopped is not None


def test_an_event_is_announced_once(journals: Journals) -> None:
    assert journals().announced("end 3")
    assert not journals().announced("end 3")
    assert journals().announced("end 4")


def test_a_record_is_an_immutable_snapshot(journals: Journals) -> None:
    journal = journals()
    journal.ordered(order(0), {})
    journal.settled(observation(0), {})
    journal.ordered(order(1), {})
    record = journal.record
    journal.settled(observation(1), {})
    journal.closed(Stopped(StopReason.USER, "x"), RequestedState.STOP)
    assert ([one.order.number for one in record.observations], [one.number for one in record.pending]) == ([0], [1])
    assert (record.started, record.stopped, record.requested_state) == (2, None, RequestedState.RUN)
    newer = journals().record
    assert (newer.identity, newer.started, newer.requested_state) == (record.identity, 2, RequestedState.STOP)


def test_every_visible_change_advances_the_cursor(storage: Storage) -> None:
    _create_study(storage)
    journal = storage.journal("nightly")
    steps: list[Callable[[], object]] = [
        lambda: journal.ordered(order(0), {}),
        lambda: journal.launched(0, "there"),
        lambda: journal.request_cancel(0),
        lambda: journal.settled(observation(0), {}),
        lambda: journal.enqueued([3]),
        lambda: journal.closed(Stopped(StopReason.USER, "x")),
        lambda: journal.closed(Stopped(StopReason.USER, "x"), RequestedState.STOP),
        lambda: journal.resumed(1.0),
    ]
    for step in steps:
        (before,) = storage.cursors()
        step()
        (after,) = storage.cursors()
        assert after.sequence > before.sequence
    assert (after.study, after.settled, after.identity) == ("nightly", 1, journal.record.identity)
    journal.heartbeat([])
    assert storage.cursors() == [after]


def test_the_journal_of_a_deleted_study_does_not_write_to_a_new_one(storage: Storage) -> None:
    _create_study(storage)
    journal = storage.journal("nightly")
    storage.delete_study("nightly")
    _create_study(storage)
    with pytest.raises(InputError, match="it was deleted"):
        journal.ordered(order(0), {})


def test_an_interrupted_import_is_rolled_back(storage: Storage) -> None:
    _create_study(storage)
    journal = storage.journal("nightly")

    def interrupted() -> None:
        with journal.exclusive():
            journal.imported([observation(0), observation(1)], [{}, {}])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert journal.record.observations == storage.journal("nightly").record.observations == ()
    journal.imported([observation(0)], [{"n": 0}])  # the trial number is available again
    assert storage.trials("nightly")[0].params == {"n": 0}
    assert [event.detail for event in storage.events("nightly") if event.kind == "imported"] == [{"trials": 1}]


def test_the_ticket_of_a_launched_run_is_stored(journals: Journals) -> None:
    journal = journals()
    journal.ordered(order(0), {})
    assert journal.record.open_runs[0].ticket is None
    journal.launched(0, "somewhere")
    assert journals().record.open_runs[0].ticket == "somewhere"


def test_a_closed_study_resumes_with_a_larger_budget(journals: Journals) -> None:
    journal = journals()
    journal.ordered(order(0), {})
    journal.settled(observation(0), {})
    journal.closed(Stopped(StopReason.BUDGET, "the budget is spent"), RequestedState.KILL)
    again = journals()
    assert (again.record.stopped, again.record.requested_state) == (
        Stopped(StopReason.BUDGET, "the budget is spent"),
        RequestedState.KILL,
    )
    again.resumed(add_usd=2.5)
    last = journals().record
    assert (last.stopped, last.requested_state, last.added_usd, last.resumed_at) == (None, RequestedState.RUN, 2.5, 1)


def test_the_queue_is_stored(journals: Journals) -> None:
    journals().enqueued([4, 2])
    assert journals().record.queue == (4, 2)


def test_an_interrupted_transaction_is_rolled_back(storage: Storage) -> None:
    _create_study(storage)
    journal = storage.journal("nightly")
    journal.ordered(order(0), {})

    def interrupted() -> None:
        with journal.exclusive():
            journal.settled(observation(0), {})
            journal.ordered(order(1), {})
            assert len(journal.record.observations) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    for one in (journal, storage.journal("nightly")):
        assert (len(one.record.observations), [run.number for run in one.record.pending]) == (0, [0])
    assert journal.settled(observation(0), {})  # the journal remains usable


def test_a_journal_sees_the_writes_of_another(storage: Storage) -> None:
    _create_study(storage)
    one, other = storage.journal("nightly"), storage.journal("nightly")
    for number in range(5):
        writer, reader = (one, other) if number % 2 else (other, one)
        with writer.exclusive():
            assert len(writer.record.observations) == number  # taking the lock refreshes the record
            writer.ordered(order(number), {})
            writer.settled(observation(number), {})
        reader.refresh()
        assert len(reader.record.observations) == number + 1
    assert one.record.observations == other.record.observations


def test_a_write_during_a_read_is_seen_by_the_next_read(
    storage: Storage, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer settles a trial after the reader has read the study row and before it reads the trials."""
    _create_study(storage)
    writer, reader = storage.journal("nightly"), storage.journal("nightly")
    writer.settled(observation(0), {})
    writes = [lambda: writer.settled(observation(1), {})]
    original_select = sql_reader.select

    def select(*columns: Any) -> Any:
        if len(columns) == len(sql_reader._TRIAL_COLUMNS) and writes:
            writes.pop()()
        return original_select(*columns)

    monkeypatch.setattr(sql_reader, "select", select)
    reader.refresh()
    assert not writes
    reader.refresh()
    assert reader.record.observations == writer.record.observations


def test_refresh_reads_only_changed_trials(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    _create_study(storage)
    journal = storage.journal("nightly")
    with journal.exclusive():
        for number in range(20):
            journal.settled(observation(number), {})
    reader = storage.journal("nightly")
    read_numbers: list[int] = []
    monkeypatch.setattr(sql_reader.Reader, "_add", lambda self, trial: read_numbers.append(trial.number))
    reader.refresh()
    assert read_numbers == []
    journal.ordered(order(20), {})
    reader.refresh()
    assert read_numbers == [20]


def test_runs_of_a_live_worker_are_not_adopted(storage: Storage) -> None:
    _create_study(storage)
    one, other = storage.journal("nightly"), storage.journal("nightly")
    one.ordered(order(0), {})
    assert other.adopt() == ()
    one.release()
    assert [run.order.number for run in other.adopt()] == [0]
    assert one.adopt() == ()


def test_runs_of_a_dead_process_are_adopted(storage: Storage) -> None:
    _create_study(storage)
    one, other = storage.journal("nightly"), storage.journal("nightly")
    host, boot, namespace, _, _, token = one.worker.split("/")
    one.worker = f"{host}/{boot}/{namespace}/4194304/1/{token}"  # above the kernel's highest process id
    one.ordered(order(0), {})
    assert [run.worker for run in other.adopt()] == [other.worker]


def test_runs_of_another_host_are_adopted_after_missing_heartbeats(url: str) -> None:
    now = [1000.0]
    with Storage(url, now=lambda: now[0]) as storage:
        _create_study(storage)
        one, other = storage.journal("nightly"), storage.journal("nightly")
        one.worker = "elsewhere/boot/1/1/token"
        one.ordered(order(0), {})
        one.launched(0, "ticket")
        now[0] += LOST_AFTER_S - 1
        one.heartbeat([0])
        now[0] += LOST_AFTER_S - 1
        assert other.adopt() == ()
        now[0] += 2
        assert [run.ticket for run in other.adopt()] == ["ticket"]


def test_pauses_do_not_count_as_active_time(url: str) -> None:
    now = [1000.0]
    with Storage(url, now=lambda: now[0]) as storage:
        _create_study(storage)
        journal = storage.journal("nightly")
        for _ in range(3):
            now[0] += 10
            journal.heartbeat([])
        now[0] += 86_400
        journal.heartbeat([])
        now[0] += 5
        journal.heartbeat([])
        assert journal.record.active_s == 35.0


def test_writing_to_a_deleted_study_fails(storage: Storage) -> None:
    _create_study(storage)
    journal = storage.journal("nightly")
    storage.delete_study("nightly")
    with pytest.raises(Exception, match=r"no longer in storage .* it was deleted"):
        journal.ordered(order(0), {})


def test_inconsistent_ranks_are_detected(storage: Storage) -> None:
    from sqlalchemy import update

    from lynceus.storage.sql.tables import trials

    _create_study(storage)
    journal = storage.journal("nightly")
    journal.settled(observation(0), {})
    with storage._engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(update(trials).values(rank=3))
    with pytest.raises(InfrastructureError, match="rank 3 where 0 was expected"):
        storage.journal("nightly")


def _create_study(storage: Storage) -> None:
    storage.create_study("nightly", document={}, fingerprint="f", policy={}, seed=0)
