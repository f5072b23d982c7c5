"""Live a life with a policy, and what it cost beside an oracle and the best fixed configuration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lynceus.space.column import FloatArray
from lynceus.trial.outcome import End
from lynceus_lab.life_policies import (
    Choice,
    Guarded,
    LifePolicy,
    NeverTouch,
    RetuneMonthly,
    Search,
    Seen,
    Thompson,
    search,
)
from lynceus_lab.lives import LATE_CHANCE, Life, life

POLICIES: dict[str, Callable[[Life, Search], LifePolicy]] = {
    "lynceus": Guarded,
    "never touch": NeverTouch,
    "re-tune monthly": RetuneMonthly,
    "bandit": Thompson,
}
FIRST_RUNS = 20
"""Runs at the beginning that are not compared with the oracle."""


@dataclass(frozen=True, slots=True)
class LifeResult:
    """What one life cost."""

    table: str
    kind: str
    seed: int
    policy: str
    usd: tuple[float, ...]
    """Of every run, lost attempts and searches before it included."""
    late: tuple[bool, ...]
    changes: int
    canaries: int
    search_usd: float

    @property
    def life(self) -> str:
        """The name of the life."""
        return f"{self.table} {self.kind} {self.seed}"

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def of_record(cls, record: dict[str, Any]) -> LifeResult:
        """From JSON."""
        return cls(**{**record, "usd": tuple(record["usd"]), "late": tuple(record["late"])})


def live(one: Life, name: str, policy: LifePolicy) -> LifeResult:
    """All runs of a life under a policy."""
    usd, late, canaries = [], [], 0
    for run in range(len(one)):
        spent, lost_s, before = 0.0, 0.0, policy.search_usd
        interruption = one.interruptions[run]
        while True:
            choice = policy.choose(run)
            seconds = one.seconds(run, choice.row)
            price = float(one.usd_per_hour(run)[choice.row]) / 3600
            end, reason = End.FINISHED, None
            cut_s = math.inf
            if interruption is not None:
                cut_s = min(interruption.share * seconds, interruption.after_s)
            if cut_s < min(seconds, choice.timeout_s):
                assert interruption is not None
                end, reason, seconds, interruption = End.FAILED, interruption.reason, cut_s, None
            elif seconds > choice.timeout_s:
                end, seconds = End.TIMEOUT, choice.timeout_s
                lost_s += seconds
            spent += seconds * price
            canaries += choice.canary
            policy.observe(Seen(run, choice.row, seconds, seconds * price, end, reason, choice.canary))
            if end is End.FINISHED:
                break
        usd.append(spent + policy.search_usd - before)
        late.append(bool(lost_s + seconds > one.deadline_s))
    return LifeResult(
        one.table.name, one.kind, one.seed, name, tuple(usd), tuple(late), policy.changes, canaries, policy.search_usd
    )


class _Rows:
    """A policy that runs given rows."""

    def __init__(self, rows: FloatArray | list[int]) -> None:
        self.rows = rows
        self.changes = int(np.count_nonzero(np.diff(np.asarray(rows))))
        self.search_usd = 0.0

    def choose(self, run: int) -> Choice:
        """The row of this run."""
        return Choice(int(self.rows[run]))

    def observe(self, seen: Seen) -> None:
        """Nothing is learnt."""


def oracle(one: Life) -> LifeResult:
    """The cheapest configuration of every run whose true chance to be late is within the bound."""
    rows = []
    for run in range(len(one)):
        chance, usd = one.late_chance(run), one.typical_s(run) * one.usd_per_hour(run)
        fit = chance <= max(LATE_CHANCE, float(chance.min()))
        rows.append(int(np.where(fit, usd, np.inf).argmin()))
    return live(one, "oracle", _Rows(rows))


def best_fixed(one: Life) -> LifeResult:
    """The cheapest configuration for the whole life that is late in at most the allowed share of runs."""
    made = [live(one, "best fixed", _Rows([row] * len(one))) for row in range(len(one.table.space))]
    least = min(sum(result.late) for result in made)
    fit = [result for result in made if sum(result.late) <= max(LATE_CHANCE * len(one), least)]
    return min(fit, key=lambda result: sum(result.usd))


def results(table: str, kind: str, seed: int, policies: Iterable[str], runs: int) -> list[LifeResult]:
    """One life under several policies, and under the references."""
    one = life(table, kind, seed, runs)
    first = search(one, 0, seed)
    made = [live(one, name, POLICIES[name](one, first)) for name in policies]
    return [*made, oracle(one), best_fixed(one)]
