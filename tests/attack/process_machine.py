"""Real workers, supervisors and hostile jobs, and a real storage, at some steps a second."""

from __future__ import annotations

import contextlib
import itertools
import math
import shutil
import signal
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import currently_in_test_context, note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from attack.commands import Commands
from attack.hostile_jobs import DEEDS, FORGES, executions, job_processes, until
from attack.invariants import ROUNDING, Watch
from attack.ledger import Ledger
from attack.live_study import BUDGET_USD, CAP_S, NAME, PRICE_USD_PER_S, LiveStudy
from attack.readers import check_reader, check_readers
from lynceus.errors import InfrastructureError, InputError
from lynceus.trial.order import Order
from lynceus.trial.trial import Trial

if TYPE_CHECKING:
    from attack.proxy import Proxy

DOCUMENTED = {0, 2, 3, 4, 130}
MOST_WORKERS = 3
_counter = itertools.count()


class ProcessMachine(RuleBasedStateMachine):
    """Subclasses say where studies are stored."""

    readers = 2
    """How many readers have their turn after each step."""
    live: LiveStudy | None = None
    failed = False
    steps = 0

    @abstractmethod
    def place(self, folder: Path) -> LiveStudy:
        """The study to attack, below a folder."""

    @initialize(
        deeds=st.lists(st.sampled_from([*DEEDS, "good", "good", "slow"]), min_size=1, max_size=5),
        policy=st.sampled_from(["random", "sweep", "lynceus-2020"]),
        seed=st.integers(0, 3),
    )
    def create(self, deeds: list[str], policy: str, seed: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="lynceus-attack-"))
        self.commands = Commands(self.folder / "commands.log")
        (self.folder / "study").mkdir()
        live = self.place(self.folder / "study")
        self.deeds, self.watch, self.told = deeds, Watch(BUDGET_USD), dict[int, float]()
        self.asked: list[int] = []
        live.create(deeds, policy, seed)
        self.live, self.failed = live, True
        self.start_worker(2, 0.0)
        assert until(lambda: self.here.ledger() is not None, 90), "the first worker created no study"
        self.client = self.here.opened()
        self.failed = False

    @property
    def here(self) -> LiveStudy:
        assert self.live is not None
        return self.live

    # Workers and supervisors

    @rule(parallel=st.integers(1, 3), clock_s=st.sampled_from([0.0, 0.0, -3600.0, 1200.0, 3e8]))
    def start_worker(self, parallel: int, clock_s: float) -> None:
        if len(self.here.living()) < MOST_WORKERS:
            self.here.start("run", "job.yaml", "-y", "--parallel", str(parallel), clock_s=clock_s)

    @rule(usd=st.sampled_from(["", "1 USD", "5 USD"]), parallel=st.integers(1, 3))
    def resume(self, usd: str, parallel: int) -> None:
        if len(self.here.living()) < MOST_WORKERS:
            money = ["--add-budget", usd] if usd else []
            self.here.start("resume", NAME, "--parallel", str(parallel), *money)

    @rule(
        who=st.sampled_from(["worker", "worker", "supervisor"]),
        which=st.sampled_from([signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT, signal.SIGTERM]),
        place=st.integers(0, 2),
    )
    def send_signal(self, who: str, which: signal.Signals, place: int) -> None:
        found = self.here.living() if who == "worker" else self.here.supervisors()
        if found:
            self.here.send(found[place % len(found)], which)

    @rule()
    def everyone_goes_on(self) -> None:
        self.here.go_on()

    @rule(seconds=st.sampled_from([0.05, 0.3, 1.0]))
    def time_passes(self, seconds: float) -> None:
        time.sleep(seconds)

    @rule(place=st.integers(0, 5))
    def remove_run_directory(self, place: int) -> None:
        self.here.remove_run(place)

    # Users

    @rule(kill=st.booleans())
    def stop(self, kill: bool) -> None:
        self.run_command("stop", NAME, *(["--kill"] if kill else []))

    @rule(options=st.sampled_from([["--yes"], ["--yes", "--outputs"], ["--abandoned", "--yes"]]))
    def gc(self, options: list[str]) -> None:
        self.run_command("gc", NAME, *options)

    @rule(n=st.integers(1, 13), seconds=st.sampled_from(["0.4", "3", "x"]))
    def import_measurements(self, n: int, seconds: str) -> None:
        table = self.folder / "past.csv"
        table.write_text(f"n,mode,runtime,loss\n{n},b,{seconds},{n}\n")
        self.run_command("import", NAME, str(table))

    @rule(n=st.integers(1, 13))
    def enqueue(self, n: int) -> None:
        self.refused(lambda: self.client.study.enqueue_trial({"n": n, "mode": "a"}))

    @rule(place=st.integers(0, 5))
    def cancel_trial(self, place: int) -> None:
        self.client.study.runs.refresh()
        if pending := self.client.study.pending:
            self.refused(lambda: self.client.study.stop_trial(pending[place % len(pending)].number))

    @rule()
    def ask(self) -> None:
        trials: list[Trial | None] = []
        self.refused(lambda: trials.append(self.client.study.ask()))
        for trial in trials:
            if trial is not None:
                assert trial.number not in self.asked
                self.asked.append(trial.number)

    @precondition(lambda self: self.live is not None and self.asked)
    @rule(seconds=st.sampled_from([0.2, 1.0, 60.0]), detail=st.sampled_from(["", "nul\0", "\x1b[2J"]))
    def tell(self, seconds: float, detail: str) -> None:
        number = self.asked.pop()
        if self.refused(lambda: self.client.study.tell(number, runtime=seconds, metrics={"loss": 5.0}, detail=detail)):
            self.asked.append(number)
        else:
            self.told[number] = seconds

    def run_command(self, *arguments: str) -> None:
        code, said = self.here.command(*arguments)
        assert code in DOCUMENTED, f"{arguments} exited with {code}: {said}"
        assert "Traceback" not in said, said

    def refused(self, action: Callable[[], object]) -> bool:
        """Whether Lynceus refuses it; a process that stands still may hold SQLite's lock for longer than anyone waits."""
        try:
            action()
        except InputError:
            return True
        except InfrastructureError as error:
            if not (self.here.stopped and "database is locked" in str(error)):
                raise
            return True
        return False

    # What must hold

    @invariant()
    def holds(self) -> None:
        if self.live is None:
            return
        self.failed = True
        self.steps += 1
        ledger = self.here.ledger()
        assert ledger is not None
        if currently_in_test_context():
            note(f"{len(ledger.entries)} trials, ${ledger.spent_usd:.3f} spent, {self.here.living()} work")
        self.watch.check(ledger)
        self.check_workers()
        self.check_executions(ledger)
        self.check_suggestion()
        self.check_reading()
        self.failed = False

    def check_workers(self) -> None:
        """Workers end with a documented code and without a traceback."""
        for pid, output in list(self.here.workers.items()):
            if self.here.commands.ended(pid):
                code, said = self.here.commands.wait(pid), output.read_text(errors="replace")
                assert code in DOCUMENTED | {-signal.SIGKILL, -signal.SIGTERM}, f"a worker exited with {code}: {said}"
                assert "Traceback" not in said, said
                del self.here.workers[pid]

    def check_executions(self, ledger: Ledger) -> None:
        """Each trial ran once at most, is in the ledger, is charged for its true time, and is over when it has settled."""
        ran = {}
        for one in executions(self.here.log):
            assert one.number not in ran, f"trial {one.number} ran twice"
            ran[one.number] = one
        later = self.here.ledger()  # a trial that started after we read the ledger is in the next one
        assert later is not None
        for number in ran:
            assert number < len(later.entries), f"trial {number} runs and is in no ledger"
        for entry in ledger.entries:
            if not entry.settled or entry.purpose == "import":
                continue
            ran_usd = entry.seconds * PRICE_USD_PER_S
            if entry.end == "capped" or entry.reason in ("user", "infra"):  # stopped: until its last process is gone
                assert entry.charged_usd >= ran_usd - ROUNDING, f"{entry} is not charged for its time"
            else:
                assert math.isclose(entry.charged_usd, ran_usd, abs_tol=ROUNDING), (
                    f"{entry} is not charged for its time"
                )
            deed = self.deeds[entry.number % len(self.deeds)]
            one = ran.get(entry.number)
            if entry.number in self.told:
                assert entry.seconds == self.told[entry.number]
            elif one is None:
                assert entry.charged_usd <= CAP_S, f"{entry} never ran"
            elif one.ended_s is not None and entry.end != "failed" and deed not in FORGES:
                true_s = one.ended_s - one.began_s
                assert entry.seconds >= min(true_s, CAP_S) - 0.05, f"{entry} ran {true_s} s"
                assert entry.end != "finished" or true_s <= CAP_S + 1.0, (
                    f"{entry} ran {true_s} s and counts as finished"
                )
        settled = {one.number for one in ledger.entries if one.settled}
        assert until(lambda: not settled & set(job_processes(self.here.runs).values()), 15), (
            f"{job_processes(self.here.runs)} still run of settled trials"
        )

    def check_suggestion(self) -> None:
        """A study read anew and one that read on suggest the same, when both have read the same."""
        for _ in range(3):
            fresh = self.here.opened()
            self.client.study.runs.refresh()
            both = [one.study.snapshot() for one in (fresh, self.client)]
            if len({_facts(one.record) for one in both}) == 1:
                steps = [one.next_step() for one in both]
                shown = [_shown(one.decision) for one in steps]
                assert shown[0] == shown[1], f"suggestions differ: {shown}"
                return

    def check_reading(self) -> None:
        for turn in range(self.readers):
            check_reader(self.here.url, NAME, self.readers * self.steps + turn)

    def teardown(self) -> None:
        if self.live is None:
            return
        try:
            if not self.failed:
                self.settle_everything()
        finally:
            self.live.end()
            self.commands.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def settle_everything(self) -> None:
        """Everything that stands still goes on, and the study is stopped: soon nothing is open and nothing runs."""
        self.here.go_on()
        for number in self.asked:
            self.refused(lambda number=number: self.client.study.tell(number, state="FAIL", runtime=0.1, reason="user"))  # type: ignore[misc]
            self.told[number] = 0.1
        self.run_command("stop", NAME, "--kill")
        self.run_command("gc", NAME, "--abandoned", "--yes")
        assert until(self.all_settled, 60), f"trials never settle: {self.here.ledger()}"
        assert until(lambda: not job_processes(self.here.runs), 30), "processes are left"
        assert until(lambda: not self.here.supervisors(), 30), "supervisors are left"
        assert until(lambda: not self.here.living(), 60), "workers are left"
        self.holds()
        check_readers(self.here.url, NAME)

    def all_settled(self) -> bool:
        ledger = self.here.ledger()
        return ledger is not None and not ledger.open


def _facts(record: Any) -> tuple[Any, ...]:
    """What a suggestion depends on, as far as two readers can differ in it."""
    settled = tuple(seen.order.number for seen in record.observations)
    return (
        settled,
        tuple(order.number for order in record.pending),
        record.queue,
        record.requested_state,
        record.stopped,
    )


def _shown(decision: Any) -> object:
    if isinstance(decision, Order):
        return decision.number, decision.row, decision.timeout_s, decision.reserved_usd
    return decision


class SqliteProcesses(ProcessMachine):
    def place(self, folder: Path) -> LiveStudy:
        return LiveStudy(folder, self.commands, f"sqlite:///{self.folder}/s.db")


class PostgresProcesses(ProcessMachine):
    """Workers reach the server through a network of ours."""

    server: Any
    """A running server, see `postgres.py`."""
    proxy: Proxy

    def place(self, folder: Path) -> LiveStudy:
        from attack.proxy import Proxy

        name = f"attack_{next(_counter)}"
        url = self.server.database(name)
        self.proxy = Proxy(self.server.folder / ".s.PGSQL.5432")
        return LiveStudy(folder, self.commands, url, f"postgresql+psycopg://lynceus@127.0.0.1:{self.proxy.port}/{name}")

    @rule(
        fault=st.sampled_from(["drop", "delay", "truncate", "refuse"]),
        seconds=st.sampled_from([0.0, 0.2, 1.0]),
        size=st.sampled_from([1, 50, 700, 5000]),
    )
    def cut_network(self, fault: str, seconds: float, size: int) -> None:
        if fault == "delay":
            self.proxy.delay_s = 0.05
        elif fault == "truncate":
            self.proxy.truncate_after = size
        elif fault == "refuse":
            self.proxy.refuses = True
        if fault != "delay":
            self.proxy.drop()
        time.sleep(seconds)
        self.proxy.heal()

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            if self.live is not None:
                self.proxy.close()


class FullDisks(SqliteProcesses):
    """The run directories lie on a small disk that fills up and is emptied again."""

    def place(self, folder: Path) -> LiveStudy:
        from attack.small_disk import small_disk

        self._stack = contextlib.ExitStack()
        self._stack.enter_context(small_disk(folder, 8))
        return super().place(folder)

    @rule()
    def fill_disk(self) -> None:
        from attack.small_disk import fill

        fill(self.here.folder)

    @rule()
    def free_disk(self) -> None:
        (self.here.folder / "ballast").unlink(missing_ok=True)

    def settle_everything(self) -> None:
        self.free_disk()
        super().settle_everything()

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            if self.live is not None:
                self._stack.close()
                shutil.rmtree(self.folder, ignore_errors=True)
