"""A study of scripted jobs in a real storage, and the objects of this process that work on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from attack.ledger import Billing as Rates
from attack.ledger import Ledger, ledger_of, read_ledger
from attack.puppets import MortalExecutor, MortalJournal, Puppet
from attack.virtual_world import Script, World, WorldClock, scripts
from lynceus.policy.presets import preset
from lynceus.policy.retries import RetryRules
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space
from lynceus.storage.memory import MemoryJournal
from lynceus.storage.sql.storage import Storage
from lynceus.study.run_loop import explore
from lynceus.study.stored import open_study
from lynceus.study.study import Study

POLICIES = ("random", "sweep", "lynceus-2020", "bo")
BILLINGS: tuple[Rates, ...] = (
    {},
    {"granularity_s": 60.0, "minimum_s": 60.0},
    {"boot_s": 5.0, "fee_usd": 0.01},
    {"granularity_s": 1.0, "boot_s": 2.0},
)


@dataclass(frozen=True)
class Case:
    """A study, before anything happens."""

    policy: str
    seed: int
    billing: Rates
    usd: float
    trials: int | None
    deadline_s: float | None
    rules: RetryRules
    deck: tuple[Script, ...]

    @property
    def problem(self) -> Problem:
        space = Space.build([Integer("n", 1, 5), Categorical("mode", ("a", "b"))], price="3.6 * n")
        constraints = () if self.deadline_s is None else (Constraint.parse(f"runtime <= {self.deadline_s}s"),)
        budget = Budget(usd=self.usd, trials=self.trials)
        return Problem(space, Objective.parse("minimize loss"), constraints, budget, Billing(**self.billing))


cases = st.builds(
    Case,
    policy=st.sampled_from(POLICIES),
    seed=st.integers(0, 3),
    billing=st.sampled_from(BILLINGS),
    usd=st.sampled_from([0.05, 0.5, 5.0]),
    trials=st.sampled_from([None, None, 6]),
    deadline_s=st.sampled_from([None, 8.0, 8.0]),
    rules=st.builds(
        RetryRules,
        retries_infra=st.integers(0, 2),
        max_failures=st.sampled_from([0, 3, 5]),
        confirm_best=st.sampled_from([0, 0, 1]),
        parallel=st.integers(1, 3),
    ),
    deck=st.lists(scripts, min_size=1, max_size=6).map(tuple),
)


class WrongClock:
    """The clock of a worker's storage: wrong by as much as the worker's own."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.puppet: Puppet | None = None

    def __call__(self) -> float:
        return self._world.now_s + (0.0 if self.puppet is None else self.puppet.clock_offset_s)


class ScriptedStudy:
    """One study, its world, its storage and its workers."""

    def __init__(self, case: Case, url: str | None, name: str) -> None:
        """Without `url`, the study lives in memory."""
        self.case, self.url, self.name, self.problem = case, url, name, case.problem
        models = case.policy.startswith(("lynceus", "bo"))
        self._policy = preset(case.policy, lookahead=0 if models else None)
        self.world = World(list(case.deck), [float(price) for price in self.problem.price], case.billing)
        self.puppets: list[Puppet] = []
        self._names: dict[str, Puppet] = {}
        self._moving: Puppet | None = None
        self._storages: list[Storage] = []
        self._memory = MemoryJournal() if url is None else None
        self._free: list[tuple[Storage, WrongClock]] = []
        if url is not None:
            open_study(
                self._storage()[0],
                self.name,
                self.problem,
                self._policy,
                seed=case.seed,
                load_if_exists=False,
                retry_rules=case.rules,
            )
        self.watcher = self.opened()
        """Reads on and on; the product's dashboard does, too."""

    def lives(self, worker: str) -> bool | None:
        """Whether a worker is alive, as another one can tell; None: it is on another host."""
        puppet = self._names.get(worker)
        if puppet is None:
            return True  # an object of the test itself
        mine = "a" if self._moving is None else self._moving.host
        return None if puppet.host != mine else puppet.alive

    def opened(self) -> Study:
        """The study, read anew."""
        journal: Any = self._memory
        if self.url is not None:
            journal = self._storages[0].journal(self.name)
        return self._study(journal)

    def start_worker(self, host: str, parallel: int) -> Puppet:
        journal: Any = self._memory
        pair: tuple[Storage, WrongClock] | None = None
        if self.url is not None:
            pair = self._free.pop() if self._free else self._storage()
            journal = pair[0].journal(self.name)

        def work(puppet: Puppet) -> None:
            try:
                study = self._study(MortalJournal(journal, puppet))
                clock = WorldClock(self.world, puppet)
                explore(study, MortalExecutor(self.world, puppet), clock, parallel=parallel)
            finally:
                if pair is not None:
                    self._free.append(pair)

        puppet = Puppet(host, work)
        if pair is not None:
            pair[1].puppet = puppet
            self._names[journal.worker] = puppet
        self.puppets.append(puppet)
        return puppet

    def move(self, puppet: Puppet) -> None:
        self._moving = puppet
        try:
            puppet.move()
        finally:
            self._moving = None
        if puppet.error is not None:
            raise puppet.error

    def ledger(self) -> Ledger:
        if self._memory is not None:
            return ledger_of(self._memory.record)
        assert self.url is not None
        found = read_ledger(self.url, self.name)
        assert found is not None
        return found

    def close(self) -> None:
        for puppet in self.puppets:
            puppet.kill()
        for storage in self._storages:
            storage.close()

    def _study(self, journal: Any) -> Study:
        return Study(
            self.problem,
            self._policy,
            seed=self.case.seed,
            name=self.name,
            journal=journal,
            retry_rules=self.case.rules,
        )

    def _storage(self) -> tuple[Storage, WrongClock]:
        assert self.url is not None
        clock = WrongClock(self.world)
        storage = Storage(self.url, now=clock)
        self._storages.append(storage)
        return storage, clock
