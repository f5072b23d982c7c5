"""What every ledger promises, checked on all of them; and what only a shared one can."""

from collections.abc import Callable
from typing import Any

import pytest

from ledger_cases import order, seen
from lynceus.errors import InfrastructureError, InputError
from lynceus.ledger import Ledger, StillLedger, Wish, sql_ledger
from lynceus.ledger.sql import Storage
from lynceus.ledger.sql_ledger import LOST_AFTER_S
from lynceus.policy import Because, Stopped

Ledgers = Callable[[], Ledger]


def test_orders_become_history_in_the_order_of_settling(ledgers: Ledgers) -> None:
    ledger = ledgers()
    for number in range(3):
        ledger.ordered(order(number), {"n": number})
    assert [one.number for one in ledger.pending] == [0, 1, 2]
    for number in (2, 0):
        assert ledger.settled(seen(number), {"n": number})
    again = ledgers()
    assert [one.order.number for one in again.history] == [2, 0]
    assert [one.outcome.seconds for one in again.history] == [12.0, 10.0]
    assert [one.number for one in again.pending] == [1]


def test_a_trial_settles_once(ledgers: Ledgers) -> None:
    ledger = ledgers()
    ledger.ordered(order(0), {})
    assert ledger.settled(seen(0), {})
    assert not ledger.settled(seen(0, charged_usd=99.0), {})
    assert [one.outcome.charged_usd for one in ledgers().history] == [0.5]


def test_measurements_from_elsewhere_follow_on_what_was_run(ledgers: Ledgers) -> None:
    ledger = ledgers()
    ledger.ordered(order(0), {"n": 0})
    ledger.settled(seen(0), {"n": 0})
    ledger.ordered(order(1), {"n": 1})
    assert ledger.started == 2
    ledger.imported([seen(number) for number in (2, 3, 4)], [{"n": number} for number in (2, 3, 4)])
    ledger.imported([], [])
    assert not ledger.settled(seen(3, charged_usd=99.0), {})
    for one in (ledger, ledgers()):
        assert [known.order.number for known in one.history] == [0, 2, 3, 4]
        assert one.history[1:] == (seen(2), seen(3), seen(4))
        assert (one.started, [run.number for run in one.pending]) == (5, [1])


def test_one_open_run_may_be_unwanted(ledgers: Ledgers) -> None:
    ledger = ledgers()
    for number in range(2):
        ledger.ordered(order(number), {})
    ledger.unwanted(1)
    ledger.unwanted(1)
    ledger.unwanted(7)
    watcher = ledgers()
    assert [run.unwanted for run in watcher.open_runs] == [False, True]
    ledger.settled(seen(1), {})
    watcher.refresh()
    assert [run.order.number for run in watcher.open_runs] == [0]


def test_people_are_told_of_something_once(ledgers: Ledgers) -> None:
    assert ledgers().announced("end 3")
    assert not ledgers().announced("end 3")
    assert ledgers().announced("end 4")


def test_a_still_stays_what_it_was_and_cannot_be_written(ledgers: Ledgers) -> None:
    ledger = ledgers()
    ledger.ordered(order(0), {})
    ledger.settled(seen(0), {})
    ledger.ordered(order(1), {})
    still = StillLedger.of(ledger)
    ledger.settled(seen(1), {})
    still.refresh()
    assert ([one.order.number for one in still.history], [one.number for one in still.pending]) == ([0], [1])
    assert (still.started, still.identity, still.wish) == (2, ledger.identity, Wish.RUN)
    writes: list[Callable[[], object]] = [
        still.exclusive,
        still.release,
        still.adopt,
        still.resumed,
        lambda: still.ordered(order(2), {}),
        lambda: still.launched(1, "there"),
        lambda: still.heartbeat([1]),
        lambda: still.settled(seen(1), {}),
        lambda: still.imported([], []),
        lambda: still.closed(Stopped(Because.USER, "x")),
        lambda: still.wished(Wish.STOP),
        lambda: still.unwanted(1),
        lambda: still.enqueued([1]),
        lambda: still.announced("end"),
    ]
    for write in writes:
        with pytest.raises(TypeError, match="a moment of the past"):
            write()


def test_everything_that_a_page_shows_moves_the_cursor(storage: Storage) -> None:
    _new(storage)
    ledger = storage.ledger("nightly")
    steps: list[Callable[[], object]] = [
        lambda: ledger.ordered(order(0), {}),
        lambda: ledger.launched(0, "there"),
        lambda: ledger.unwanted(0),
        lambda: ledger.settled(seen(0), {}),
        lambda: ledger.enqueued([3]),
        lambda: ledger.wished(Wish.STOP),
        lambda: ledger.closed(Stopped(Because.USER, "x")),
        lambda: ledger.resumed(1.0),
    ]
    for step in steps:
        (before,) = storage.cursors()
        step()
        (after,) = storage.cursors()
        assert after.sequence > before.sequence
    assert (after.study, after.settled, after.identity) == ("nightly", 1, ledger.identity)
    ledger.heartbeat([])
    assert storage.cursors() == [after]


def test_a_new_study_with_the_number_of_a_deleted_one_is_not_taken_for_it(storage: Storage) -> None:
    _new(storage)
    ledger = storage.ledger("nightly")
    storage.delete_study("nightly")
    _new(storage)
    with pytest.raises(InputError, match="it was deleted"):
        ledger.ordered(order(0), {})


def test_an_import_that_is_interrupted_leaves_nothing(storage: Storage) -> None:
    _new(storage)
    ledger = storage.ledger("nightly")

    def interrupted() -> None:
        with ledger.exclusive():
            ledger.imported([seen(0), seen(1)], [{}, {}])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert ledger.history == storage.ledger("nightly").history == ()
    ledger.imported([seen(0)], [{"n": 0}])  # the number is free again
    assert storage.trials("nightly")[0].params == {"n": 0}
    assert [event.detail for event in storage.events("nightly") if event.kind == "imported"] == [{"trials": 1}]


def test_a_ticket_is_kept(ledgers: Ledgers) -> None:
    ledger = ledgers()
    ledger.ordered(order(0), {})
    assert ledger.open_runs[0].ticket is None
    ledger.launched(0, "somewhere")
    assert ledgers().open_runs[0].ticket == "somewhere"


def test_a_study_is_closed_and_goes_on_with_more_money(ledgers: Ledgers) -> None:
    ledger = ledgers()
    ledger.ordered(order(0), {})
    ledger.settled(seen(0), {})
    ledger.closed(Stopped(Because.BUDGET, "the money is spent"))
    ledger.wished(Wish.KILL)
    again = ledgers()
    assert (again.stopped, again.wish) == (Stopped(Because.BUDGET, "the money is spent"), Wish.KILL)
    again.resumed(add_usd=2.5)
    last = ledgers()
    assert (last.stopped, last.wish, last.added_usd, last.resumed_at) == (None, Wish.RUN, 2.5, 1)


def test_the_queue_is_kept(ledgers: Ledgers) -> None:
    ledgers().enqueued([4, 2])
    assert ledgers().queue == (4, 2)


def test_what_an_interrupted_step_wrote_is_gone(storage: Storage) -> None:
    _new(storage)
    ledger = storage.ledger("nightly")
    ledger.ordered(order(0), {})

    def interrupted() -> None:
        with ledger.exclusive():
            ledger.settled(seen(0), {})
            ledger.ordered(order(1), {})
            assert len(ledger.history) == 1
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    for one in (ledger, storage.ledger("nightly")):
        assert (len(one.history), [run.number for run in one.pending]) == (0, [0])
    assert ledger.settled(seen(0), {})  # and the ledger is still of use


def test_a_ledger_sees_what_another_has_written(storage: Storage) -> None:
    _new(storage)
    one, other = storage.ledger("nightly"), storage.ledger("nightly")
    for number in range(5):
        writer, reader = (one, other) if number % 2 else (other, one)
        with writer.exclusive():
            assert len(writer.history) == number  # the lock shows the present
            writer.ordered(order(number), {})
            writer.settled(seen(number), {})
        reader.refresh()
        assert len(reader.history) == number + 1
    assert one.history == other.history


def test_what_is_written_while_another_reads_is_read_later(
    storage: Storage, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader has seen the study's row; before it reads the trials, a writer settles one more."""
    _new(storage)
    writer, reader = storage.ledger("nightly"), storage.ledger("nightly")
    writer.settled(seen(0), {})
    between = [lambda: writer.settled(seen(1), {})]
    plain = sql_ledger.select

    def select(*columns: Any) -> Any:
        if len(columns) == len(sql_ledger._FACTS) and between:
            between.pop()()
        return plain(*columns)

    monkeypatch.setattr(sql_ledger, "select", select)
    reader.refresh()
    assert not between
    reader.refresh()
    assert reader.history == writer.history


def test_only_changes_are_read(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    _new(storage)
    ledger = storage.ledger("nightly")
    with ledger.exclusive():
        for number in range(20):
            ledger.settled(seen(number), {})
    reader = storage.ledger("nightly")
    learnt: list[int] = []
    monkeypatch.setattr(type(reader), "_learn", lambda self, trial: learnt.append(trial.number))
    reader.refresh()
    assert learnt == []
    ledger.ordered(order(20), {})
    reader.refresh()
    assert learnt == [20]


def test_runs_of_the_living_are_left_to_them(storage: Storage) -> None:
    _new(storage)
    one, other = storage.ledger("nightly"), storage.ledger("nightly")
    one.ordered(order(0), {})
    assert other.adopt() == ()
    one.release()
    assert [run.order.number for run in other.adopt()] == [0]
    assert one.adopt() == ()


def test_runs_of_a_dead_process_are_taken_over(storage: Storage) -> None:
    _new(storage)
    one, other = storage.ledger("nightly"), storage.ledger("nightly")
    host, boot, _, _, token = one.worker.split("/")
    one.worker = f"{host}/{boot}/4194304/1/{token}"  # above the kernel's highest process number
    one.ordered(order(0), {})
    assert [run.worker for run in other.adopt()] == [other.worker]


def test_runs_of_another_host_are_taken_over_after_a_long_silence(url: str) -> None:
    now = [1000.0]
    with Storage(url, now=lambda: now[0]) as storage:
        _new(storage)
        one, other = storage.ledger("nightly"), storage.ledger("nightly")
        one.worker = "elsewhere/boot/1/1/token"
        one.ordered(order(0), {})
        one.launched(0, "ticket")
        now[0] += LOST_AFTER_S - 1
        one.heartbeat([0])
        now[0] += LOST_AFTER_S - 1
        assert other.adopt() == ()
        now[0] += 2
        assert [run.ticket for run in other.adopt()] == ["ticket"]


def test_pauses_do_not_count_as_time_worked(url: str) -> None:
    now = [1000.0]
    with Storage(url, now=lambda: now[0]) as storage:
        _new(storage)
        ledger = storage.ledger("nightly")
        for _ in range(3):
            now[0] += 10
            ledger.heartbeat([])
        now[0] += 86_400
        ledger.heartbeat([])
        now[0] += 5
        ledger.heartbeat([])
        assert ledger.active_s == 35.0


def test_a_deleted_study_says_so(storage: Storage) -> None:
    _new(storage)
    ledger = storage.ledger("nightly")
    storage.delete_study("nightly")
    with pytest.raises(Exception, match=r"no longer in storage .* it was deleted"):
        ledger.ordered(order(0), {})


def test_foreign_hands_are_noticed(storage: Storage) -> None:
    from sqlalchemy import update

    from lynceus.ledger.schema import trials

    _new(storage)
    ledger = storage.ledger("nightly")
    ledger.settled(seen(0), {})
    with storage._engine.connect().execution_options(writing=True) as connection, connection.begin():
        connection.execute(update(trials).values(rank=3))
    with pytest.raises(InfrastructureError, match="rank 3 where 0 was expected"):
        storage.ledger("nightly")


def _new(storage: Storage) -> None:
    storage.create_study("nightly", document={}, fingerprint="f", policy={}, seed=0)
