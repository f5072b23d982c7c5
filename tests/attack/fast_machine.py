"""Thousands of steps a minute: a real storage, scripted jobs in virtual time, workers that stop between any two calls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any
from unittest import mock

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from attack.invariants import ROUNDING, Watch
from attack.ledger import Entry, Ledger, charge
from attack.readers import check_reader
from attack.scripted_study import Case, ScriptedStudy, cases
from lynceus.errors import InputError
from lynceus.study.study import Study
from lynceus.trial.order import Order

ODD_TEXT = st.sampled_from(
    ["", "done", "nul\0byte", "\x1b[2J\x1b]0;title\x07", "\ud800", "a\nb\r\nc", "‮", "[/bold]", "x" * 5000]
)
ODD_NAMES = st.sampled_from(
    ["loss", "loss", "constructor", "__proto__", "=HYPERLINK(1)", "p\0q", "\udfff", "[/red]", "€" * 200]
)
RUNTIMES = st.sampled_from([0.1, 1.0, 7.9, 8.0, 60.0, 1e6])
MOST_WORKERS = 3
_names = itertools.count()
READ_EVERY = 10
"""Steps between two readers of the command line or the dashboard, which take longer than all else."""


class FastMachine(RuleBasedStateMachine):
    """Attacks studies in one storage, a new study each time. Subclasses set `url`."""

    url: str | None = None
    """A storage that exists; None: in memory."""
    several_workers = True
    study: ScriptedStudy | None = None
    failed = False

    def __init__(self) -> None:
        super().__init__()
        self.told: dict[int, tuple[float, float | None]] = {}
        """Seconds and charge of trials that a client told."""
        self.asked: list[int] = []
        """Trials that a client holds."""
        self.steps = 0
        self.jumped = False
        """Whether a clock was set."""
        self._client: Study | None = None

    @initialize(case=cases)
    def create(self, case: Case) -> None:
        study = ScriptedStudy(case, self.url, f"attacked-{next(_names)}")
        self._patch = mock.patch("lynceus.storage.sql.leases.lives", study.lives)
        self._patch.start()
        self.watch = Watch(case.usd)
        self.study = study

    @property
    def here(self) -> ScriptedStudy:
        assert self.study is not None
        return self.study

    def worker(self, place: int) -> Any:
        living = [one for one in self.here.puppets if one.alive]
        return living[place % len(living)]

    def has_workers(self) -> bool:
        return self.study is not None and any(one.alive for one in self.study.puppets)

    # Workers

    @rule(host=st.sampled_from("aab"), parallel=st.integers(1, 3))
    def start_worker(self, host: str, parallel: int) -> None:
        living = sum(one.alive for one in self.here.puppets)
        if living < (MOST_WORKERS if self.several_workers else 1):
            if not self.several_workers:
                self.asked.clear()  # in memory there is one worker, and all open trials are its own
            self.here.move(self.here.start_worker(host, parallel))

    @precondition(has_workers)
    @rule(place=st.integers(0, 2), count=st.integers(1, 8))
    def move(self, place: int, count: int) -> None:
        puppet = self.worker(place)
        for _ in range(count):
            self.here.move(puppet)

    @rule(seconds=st.sampled_from([0.3, 1.0, 4.0, 10.0, 70.0, 1000.0]), stalled=st.integers(-1, 2))
    def time_passes(self, seconds: float, stalled: int) -> None:
        """All workers go on but one, which stands still as if it were stopped."""
        for _ in range(3):
            self.here.world.now_s += seconds / 3
            for place, puppet in enumerate([one for one in self.here.puppets if one.alive]):
                if place != stalled:
                    self.here.move(puppet)

    @rule(seconds=st.sampled_from([1.0, 9.0, 100.0]), parallel=st.integers(1, 3))
    def work(self, seconds: float, parallel: int) -> None:
        """What happens most of the time: the study goes on, and a worker works on it."""
        if self.client.record.stopped is not None:
            self.client.resume(0.3)
        if not self.has_workers():
            self.start_worker("a", parallel)
        for _ in range(4):
            self.time_passes(seconds, -1)

    @rule(seconds=st.sampled_from([0.5, 3.0, 30.0]))
    def work_together(self, seconds: float) -> None:
        for host in "ab":
            self.start_worker(host, 2)
        self.work(seconds, 2)

    @precondition(has_workers)
    @rule(place=st.integers(0, 2))
    def kill_worker(self, place: int) -> None:
        self.worker(place).kill()

    @precondition(has_workers)
    @rule(place=st.integers(0, 2), calls=st.integers(1, 12), kills=st.booleans(), after=st.booleans())
    def light_fuse(self, place: int, calls: int, kills: bool, after: bool) -> None:
        """The worker dies, or loses its storage, before or after one of its next calls: also between a write and its answer."""
        if self.several_workers:
            puppet = self.worker(place)
            puppet.fuse, puppet.fuse_kills, puppet.fuse_after = calls, kills, after

    @precondition(has_workers)
    @rule(place=st.integers(0, 2), seconds=st.sampled_from([-86400.0, -600.0, 30.0, 1200.0, 3e8, 0.0]))
    def jump_clock(self, place: int, seconds: float) -> None:
        self.worker(place).clock_offset_s = seconds
        self.jumped = True

    @rule(number=st.integers(0, 9))
    def lose_machine(self, number: int) -> None:
        self.here.world.lose(number)

    # Users

    @rule(kill=st.booleans())
    def stop(self, kill: bool) -> None:
        self.client.stop(kill=kill)

    @rule(usd=st.sampled_from([0.0, 0.0, 0.2, 2.0]))
    def resume(self, usd: float) -> None:
        self.client.resume(usd)

    @rule(place=st.integers(0, 5))
    def cancel_trial(self, place: int) -> None:
        self.client.runs.refresh()
        if self.client.pending:
            self.client.stop_trial(self.client.pending[place % len(self.client.pending)].number)

    @rule(n=st.integers(1, 6), mode=st.sampled_from("ab"))
    def enqueue(self, n: int, mode: str) -> None:
        _refused(lambda: self.client.enqueue_trial({"n": n, "mode": mode}))

    @rule(n=st.integers(1, 5), seconds=st.sampled_from([0.0, 2.0, 30.0]), name=ODD_NAMES)
    def import_measurement(self, n: int, seconds: float, name: str) -> None:
        metrics = {"loss": 1.0, name: 2.0}
        _refused(lambda: self.client.add_trial({"n": n, "mode": "b"}, runtime=seconds, metrics=metrics))

    @precondition(lambda self: self.several_workers or not self.has_workers())
    @rule()
    def ask(self) -> None:
        trial = self.client.ask()
        if trial is not None:
            assert trial.number not in self.asked, f"trial {trial.number} was given out twice"
            self.asked.append(trial.number)

    @precondition(lambda self: self.study is not None and self.asked)
    @rule(
        place=st.integers(0, 3),
        state=st.sampled_from(["COMPLETE", "COMPLETE", "TIMEOUT", "FAIL", "RUNNING"]),
        runtime=RUNTIMES,
        charged=st.sampled_from([None, None, 0.0, 0.01, 50.0]),
        name=ODD_NAMES,
        detail=ODD_TEXT,
    )
    def tell(self, place: int, state: str, runtime: float, charged: float | None, name: str, detail: str) -> None:
        number = self.asked[place % len(self.asked)]
        metrics = {"loss": 0.5, name: 1.5}
        if not _refused(
            lambda: self.client.tell(
                number, state=state, runtime=runtime, charged=charged, metrics=metrics, detail=detail
            )
        ):
            self.told[number] = (runtime, charged)
            self.asked.remove(number)

    @rule()
    def reopen(self) -> None:
        """The program that asks and tells ends, and begins anew; its journal is still the one that looks after its trials."""
        self._client = None

    @property
    def client(self) -> Study:
        if self._client is None:
            self._client = self.here.opened()
        return self._client

    # What must hold

    @invariant()
    def holds(self) -> None:
        if self.study is None:
            return
        self.steps += 1
        self.failed = True
        ledger = self.study.ledger()
        note(f"{len(ledger.entries)} trials, ${ledger.spent_usd:.4f} spent, ${ledger.reserved_usd:.4f} reserved")
        self.watch.check(ledger)
        for entry in ledger.entries:
            self.check_entry(entry)
        self.check_executions(ledger)
        self.check_suggestions(ledger)
        if self.study.url is not None and self.steps % READ_EVERY == 0:
            check_reader(self.study.url, self.study.name, self.steps // READ_EVERY)
        self.failed = False

    def check_entry(self, entry: Entry) -> None:
        """The charge of a settled trial is what it really cost."""
        number, world = entry.number, self.here.world
        if not entry.settled:
            return
        price = float(self.here.problem.price[entry.row])
        if number in self.told:
            seconds, charged = self.told[number]
            expected = charge(self.here.case.billing, seconds, price, boots=entry.boots) if charged is None else charged
            assert entry.seconds == seconds
            assert math.isclose(entry.charged_usd, expected, abs_tol=ROUNDING), (
                f"trial {number}: {entry} cost {expected}"
            )
        elif number not in world.runs:
            assert entry.charged_usd == 0.0, f"trial {number} was charged and never ran"
        elif "lost" in entry.detail:
            true_s = world.runs[number].seconds
            assert entry.charged_usd <= world.cost(number, max(true_s, entry.seconds)) + ROUNDING
            assert self.jumped or entry.seconds <= max(true_s, 1.0) + ROUNDING, (
                f"trial {number} ran {true_s} s: {entry}"
            )
        else:
            run = world.runs[number]
            assert math.isclose(entry.seconds, run.seconds, abs_tol=ROUNDING), f"trial {number}: {entry}, {run}"
            expected = world.cost(number, run.seconds)
            assert math.isclose(entry.charged_usd, expected, abs_tol=ROUNDING), (
                f"trial {number}: {entry} cost {expected}"
            )

    def check_executions(self, ledger: Ledger) -> None:
        """Every execution is in the ledger, and nothing of a settled trial still runs."""
        for number in self.here.world.runs:
            assert number < len(ledger.entries), f"trial {number} runs and is in no ledger"
            if ledger.entries[number].settled:
                assert not self.here.world.runs_now(number), f"trial {number} has settled and still runs"

    def check_suggestions(self, ledger: Ledger) -> None:
        """A study read anew, one that read on, and a snapshot of it suggest the same."""
        watcher, fresh = self.here.watcher, self.here.opened()
        watcher.runs.refresh()
        steps = [one.next_step() for one in (fresh, watcher, watcher.snapshot())]
        shown = [
            (one.decision.row, one.decision.timeout_s, one.decision.reserved_usd, one.decision.number, one.queue)
            if isinstance(one.decision, Order)
            else (one.decision, one.queue)
            for one in steps
        ]
        assert shown[0] == shown[1] == shown[2], f"suggestions differ: {shown}"
        assert math.isclose(fresh.spent_usd, ledger.spent_usd, abs_tol=ROUNDING)
        assert math.isclose(fresh.reserved_usd, ledger.reserved_usd, abs_tol=ROUNDING)

    def teardown(self) -> None:
        if self.study is None:
            return
        try:
            if not self.failed:
                self.settle_everything()
                if self.study.url is not None:
                    check_reader(self.study.url, self.study.name, self.steps)
        finally:
            self.study.close()
            self._patch.stop()

    def settle_everything(self) -> None:
        """One healthy worker finishes what is open; afterwards only trials that a client holds are."""
        for puppet in self.here.puppets:
            puppet.kill()
        self.client.stop()
        worker = self.here.start_worker("a", 3)
        for _ in range(200):
            if not worker.alive:
                break
            self.here.world.now_s += 1000.0
            self.here.move(worker)
            self.holds()
        assert not worker.alive, "the last worker does not come to an end"
        left = {one.number for one in self.here.ledger().open}
        assert left <= set(self.asked), f"trials {left - set(self.asked)} never settle"


class MemoryMachine(FastMachine):
    several_workers = False


def _refused(action: Callable[[], object]) -> bool:
    """Whether an action was refused with a sentence."""
    try:
        action()
    except InputError:
        return True
    return False
