"""What may be done with a recurring job: nothing, a new search every month, a bandit, or the product's own decider."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

import lynceus
from lynceus.models.seeds import generator
from lynceus.problem.budget import Budget
from lynceus.problem.problem import Problem
from lynceus.recurring.action import Action, ActionKind
from lynceus.recurring.alternatives import adoption_basis
from lynceus.recurring.forecast import Prior, study_prior
from lynceus.recurring.next_action import next_action
from lynceus.recurring.record import Change, JobRecord, ProductionRun, StudyRun, Version
from lynceus.recurring.settings import Mode, Settings
from lynceus.recurring.watch import Watch, watch
from lynceus.trial.outcome import End, FailureReason
from lynceus_lab.lives import LATE_CHANCE, Life

_MONTH = 30
"""Runs between two searches of `RetuneMonthly`."""
_ALLOWANCE = 5.0
"""Of `Guarded`: the month's allowance, in runs of the first configuration."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What runs next."""

    row: int
    timeout_s: float = math.inf
    canary: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """How an attempt ended."""

    run: int
    row: int
    seconds: float
    usd: float
    end: End
    reason: FailureReason | None = None
    canary: bool = False


@dataclass(frozen=True, eq=False)
class Search:
    """A study of the job at the input and prices of one run."""

    row: int | None
    spent_usd: float
    trials: tuple[StudyRun, ...]


class LifePolicy(Protocol):
    """A policy in the middle of one life."""

    changes: int
    """How often the production configuration was changed."""
    search_usd: float
    """Spent on searches beside production runs."""

    def choose(self, run: int) -> Choice:
        """What to run; called again if an attempt did not finish."""

    def observe(self, seen: Seen) -> None:
        """Learn how an attempt ended."""


def search(life: Life, run: int, seed: int, budget_usd: float = math.inf, known: Sequence[StudyRun] = ()) -> Search:
    """Search with the default policy, at the input and the prices of a run."""
    problem = replace(life.problem(run), budget=Budget(usd=budget_usd))
    study = lynceus.Study(problem, lynceus.preset("lynceus"), seed=seed)
    if known:
        study.add_trials((one.params, one.seconds, {}) for one in known if one.end is End.FINISHED)
    luck = generator(seed, f"search {life.name} {run}")
    trials: list[StudyRun] = []
    while (trial := study.ask()) is not None:
        row = problem.space.row(trial.params)
        seconds = life.seconds(run, row, float(luck.random()))
        timeout_s = math.inf if trial.timeout is None else trial.timeout
        stopped, ran = seconds >= timeout_s, min(seconds, timeout_s)
        study.tell(trial, runtime=ran, state="TIMEOUT" if stopped else "COMPLETE")
        end = End.TIMEOUT if stopped else End.FINISHED
        params = problem.space.point(row)
        trials.append(StudyRun(params, ran, end, size=float(life.sizes[run]), cost_usd=problem.cost(row, ran)))
    best = study.recommend()
    return Search(None if best is None else best.row, study.spent_usd, tuple(trials))


class NeverTouch:
    """The first answer, for ever."""

    def __init__(self, life: Life, first: Search) -> None:
        self.row = _first_row(life, first)
        self.changes, self.search_usd = 0, 0.0

    def choose(self, run: int) -> Choice:
        """The same as ever."""
        return Choice(self.row)

    def observe(self, seen: Seen) -> None:
        """Nothing is learnt."""


class RetuneMonthly:
    """A new study every 30 runs; its answer is adopted."""

    def __init__(self, life: Life, first: Search) -> None:
        self.life, self.row = life, _first_row(life, first)
        self.changes, self.search_usd, self._searched = 0, 0.0, 0

    def choose(self, run: int) -> Choice:
        """The answer of the last study."""
        if run and run % _MONTH == 0 and self._searched != run:
            self._searched = run
            found = search(self.life, run, self.life.seed + run)
            self.search_usd += found.spent_usd
            if found.row is not None and found.row != self.row:
                self.row, self.changes = found.row, self.changes + 1
        return Choice(self.row)

    def observe(self, seen: Seen) -> None:
        """Nothing is learnt between two studies."""


class Thompson:
    """A bandit over configurations, as Zeus (You et al., NSDI'23): every arm once with early stopping, then Thompson sampling.

    The reward is minus the cost per unit of input. Arms that were late or cost more than twice the best are pruned. Costs have a normal
    belief of unknown mean over the last runs of each arm.
    """

    def __init__(self, life: Life, first: Search) -> None:
        self.life, self.row = life, _first_row(life, first)
        self.changes, self.search_usd = 0, 0.0
        self._costs: dict[int, list[float]] = {}
        self._pruned: set[int] = set()
        self._luck = generator(life.seed, f"thompson {life.name}")
        tried = {life.problem(0).space.row(one.params) for one in first.trials}
        self._open = [row for row in sorted(tried) if row != self.row]
        self._failed_at = -1

    def choose(self, run: int) -> Choice:
        """An arm that was not tried yet, or the one with the smallest sampled cost."""
        if self._failed_at == run or not self._costs:
            return Choice(self.row)
        best = min(float(np.mean(found)) for found in self._costs.values())
        price = self.life.usd_per_hour(run)
        if self._open:
            row = self._open.pop(0)
            cap_s = 2 * best * float(self.life.sizes[run]) / float(price[row]) * 3600
            return Choice(row, min(cap_s, self.life.deadline_s), canary=True)
        arms = [row for row in self._costs if row not in self._pruned] or [self.row]
        samples = [self._sample(row) for row in arms]
        row = arms[int(np.argmin(samples))]
        self.changes += row != self.row
        self.row = row
        return Choice(row)

    def observe(self, seen: Seen) -> None:
        """Remember the cost per unit of input; prune arms that were stopped or late."""
        if seen.end is End.FINISHED:
            found = self._costs.setdefault(seen.row, [])
            found.append(seen.usd / float(self.life.sizes[seen.run]))
            del found[:-20]
            if seen.seconds > self.life.deadline_s:
                self._pruned.add(seen.row)
        elif seen.end is End.TIMEOUT:
            self._pruned.add(seen.row)
            self._failed_at = seen.run

    def _sample(self, row: int) -> float:
        found = self._costs.get(row, [1.0])
        spread = float(np.std(found)) if len(found) > 2 else 0.1 * float(np.mean(found))
        return float(self._luck.normal(np.mean(found), max(spread, 1e-9) / math.sqrt(len(found))))


class Guarded:
    """The product's decider in mode `apply`: the same function, on a record that grows run by run."""

    def __init__(self, life: Life, first: Search) -> None:
        self.life, row = life, _first_row(life, first)
        self.changes, self.search_usd = 0, 0.0
        self.actions: list[tuple[int, Action]] = []
        problem = life.problem(0)
        settings = Settings(
            Mode.APPLY, life.deadline_s, LATE_CHANCE, _ALLOWANCE * problem.cost(row, life.seconds(0, row, 0.5))
        )
        record = JobRecord(life.name, settings, trials=first.trials)
        size = float(np.median([one.size for one in first.trials if one.size is not None] or [life.sizes[0]]))
        basis = adoption_basis(problem, record, row, size)
        version = Version(1, problem.space.point(row), life.now_s(0) - 1, basis=basis, adopted_s=life.now_s(0) - 1)
        self.record = replace(record, versions=(version,), current=1)
        self.prior: Prior = study_prior(problem, record.trials)
        self._watched: Watch | None = None
        self._instead_usd: float | None = None
        self._version = 1

    def choose(self, run: int) -> Choice:
        """What `next_action` says, after everything that it wants to be written down was."""
        problem, now_s, size = self.life.problem(run), self.life.now_s(run), float(self.life.sizes[run])
        while True:
            self._watched = watch(self.record, size, deadline_s=self.life.deadline_s, before=self._watched)
            action = next_action(problem, self.record, now_s, size, prior=self.prior, watched=self._watched)
            if action.kind is not ActionKind.KEEP:
                self.actions.append((run, action))
            if action.kind is ActionKind.CANARY:
                assert action.params is not None
                self._version, self._instead_usd = self._with_version(action, now_s, "canary"), action.instead_usd
                return Choice(problem.space.row(action.params), action.timeout_s, canary=True)
            if action.kind is ActionKind.KEEP:
                assert self.record.adopted is not None
                assert self.record.current is not None
                self._version, self._instead_usd = self.record.current, None
                return Choice(problem.space.row(self.record.adopted.params))
            self._apply(action, problem, run, now_s)

    def observe(self, seen: Seen) -> None:
        """Write the run down."""
        made = ProductionRun(
            f"r{len(self.record.runs)}", self._version, seen.seconds, self.life.now_s(seen.run) + seen.seconds,
            size=float(self.life.sizes[seen.run]), cost_usd=seen.usd,
            price_usd_per_hour=float(self.life.usd_per_hour(seen.run)[seen.row]),
            end=seen.end, reason=seen.reason, canary=seen.canary, instead_usd=self._instead_usd,
        )  # fmt: skip
        self.record = replace(self.record, runs=(*self.record.runs, made))

    def _apply(self, action: Action, problem: Problem, run: int, now_s: float) -> None:
        number, cost_usd = action.version, 0.0
        if action.kind is ActionKind.RETUNE:
            found = search(self.life, run, self.life.seed + run, action.budget_usd, self._recent())
            cost_usd = found.spent_usd
            self.search_usd += cost_usd
            self.record = replace(self.record, trials=(*self.record.trials, *found.trials))
            self.prior = study_prior(problem, self.record.trials)
            number = None
            if found.row is not None:
                size = float(self.life.sizes[run])
                basis = adoption_basis(problem, self.record, found.row, size)
                answer = Action(action.kind, action.reason, problem.space.point(found.row), basis=basis)
                number = self._with_version(answer, now_s, "retune")
        elif action.kind is ActionKind.REPRICE:
            number = self._with_version(action, now_s, "reprice")
        elif action.kind is ActionKind.ADOPT and number is not None:
            versions = tuple(
                replace(one, basis=action.basis) if one.number == number else one for one in self.record.versions
            )
            self.record = replace(self.record, versions=versions)
        if number is not None and number != self.record.current:
            self.changes += 1
        change = Change(
            now_s, str(action.kind), number, len(self.record.runs), "lynceus", action.reason, action.evidence,
            cost_usd=cost_usd,
        )  # fmt: skip
        current = self.record.current if number is None else number
        self.record = replace(self.record, changes=(*self.record.changes, change), current=current)

    def _recent(self) -> tuple[StudyRun, ...]:
        """The last production runs as knowledge of a study: those whose input was about as large."""
        runs = [run for run in self.record.runs if run.informs][-5:]
        return tuple(StudyRun(self.record.version(run.version).params, run.seconds, run.end) for run in runs)

    def _with_version(self, action: Action, now_s: float, source: str) -> int:
        """The number of the version of a configuration: a canary that goes on keeps its own."""
        assert action.params is not None
        last = self.record.versions[-1]
        if source == "canary" and dict(last.params) == dict(action.params) and last.number != self.record.current:
            return last.number
        number = last.number + 1
        made = Version(number, action.params, now_s, "lynceus", action.reason, source, basis=action.basis)
        self.record = replace(self.record, versions=(*self.record.versions, made))
        return number


def _first_row(life: Life, first: Search) -> int:
    """The answer of the first study; where it found none, the configuration that is least often late."""
    return int(life.late_chance(0).argmin()) if first.row is None else first.row
