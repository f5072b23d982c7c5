"""Lives of recurring jobs: 200 runs in which inputs grow, prices jump, software changes and machines fail, the same for every policy."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from lynceus.models.seeds import generator
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.replay.tables import data_folder
from lynceus.space.column import FloatArray
from lynceus.trial.outcome import FailureReason
from lynceus_lab.life_tables import LifeTable, life_table

RUNS = 200
DAY_S = 86400.0
START_S = 1_767_225_600.0
"""2026-01-01, UTC: the first run; one run a day."""
LATE_CHANCE = 0.02
"""The bound on the chance to be late that users set in all lives."""
KINDS = ("quiet", "spot", "growth", "price", "step", "drift", "everything")
"""What happens in a life; in the first two, nothing that calls for a change."""
QUIET = ("quiet", "spot")
_FAILURES = 0.02
"""Share of runs whose first attempt fails because of the infrastructure."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """An attempt that the infrastructure ended."""

    reason: FailureReason
    share: float
    """At this share of the run's time; infinite if the run is over by then."""
    after_s: float = math.inf
    """Or after so many seconds, if that is earlier."""


@dataclass(frozen=True, eq=False)
class Life:
    """Everything that happens to a job, whatever a policy does."""

    name: str
    table: LifeTable
    kind: str
    seed: int
    sizes: FloatArray
    """Input size of every run `[n]`."""
    factors: FloatArray
    """What changes do to the time of every configuration `[n, q]`."""
    price_factors: FloatArray
    """Price relative to the table's `[n, q]`."""
    luck: FloatArray
    """Quantile of the run-to-run noise `[n]`."""
    interruptions: tuple[Interruption | None, ...]
    deadline_s: float

    def __len__(self) -> int:
        return len(self.sizes)

    def typical_s(self, run: int) -> FloatArray:
        """Typical time of every configuration in a run `[q]`."""
        return np.asarray(self._typical_s[run])

    @cached_property
    def _typical_s(self) -> FloatArray:
        return np.array([self.table.seconds_at(float(size)) for size in self.sizes]) * self.factors

    def seconds(self, run: int, row: int, luck: float | None = None) -> float:
        """How long a configuration takes in a run."""
        return float(self.typical_s(run)[row]) * self.table.luck(row, float(self.luck[run]) if luck is None else luck)

    def usd_per_hour(self, run: int) -> FloatArray:
        """Prices of all configurations in a run `[q]`."""
        return np.asarray(self.table.space.price_per_second * 3600 * self.price_factors[run])

    def problem(self, run: int) -> Problem:
        """The job's problem at the prices of a run."""
        return self._problem(self.usd_per_hour(run).tobytes())

    @cached_property
    def _problems(self) -> dict[bytes, Problem]:
        return {}

    def _problem(self, prices: bytes) -> Problem:
        if prices not in self._problems:
            space = replace(
                self.table.space,
                price_per_second=np.frombuffer(prices) / 3600,
                list_price=self.table.space.price_per_second,
            )
            limits = () if math.isinf(self.deadline_s) else (Constraint("time", self.deadline_s),)
            self._problems[prices] = Problem(space, constraints=limits)
        return self._problems[prices]

    def late_chance(self, run: int) -> FloatArray:
        """The true chance of every configuration to be late in a run `[q]`."""
        room = np.log(self.deadline_s / self.typical_s(run))
        pools = self.table.noise
        return np.array([float((pools[row % len(pools)] > one).mean()) for row, one in enumerate(room)])

    def now_s(self, run: int) -> float:
        """When a run starts."""
        return START_S + run * DAY_S


def life(table: str, kind: str, seed: int, runs: int = RUNS) -> Life:
    """The life of a job. The same arguments give the same life."""
    job = life_table(table)
    rng = generator(seed, f"{table} {kind}")
    q = len(job.space)
    sizes = _sizes(job, kind, rng, runs)
    factors = _factors(job, kind, rng, runs, sizes)
    prices = _prices(job, rng, runs) if kind in ("price", "everything") else np.ones((runs, q))
    interruptions = _interruptions(kind, rng, runs)
    first = job.seconds_at(float(sizes[0]))
    usual = float(first[int((first * job.space.price_per_second).argmin())])
    hardest = max(range(runs), key=lambda run: float((job.seconds_at(float(sizes[run])) * factors[run]).min()))
    fastest = float((job.seconds_at(float(sizes[hardest])) * factors[hardest]).min())
    deadline = max(float(rng.uniform(1.4, 2.5)) * usual, 1.4 * fastest)
    return Life(
        f"{table} {kind} {seed}", job, kind, seed, sizes, factors, prices, rng.random(runs), interruptions, deadline
    )


def _sizes(job: LifeTable, kind: str, rng: np.random.Generator, runs: int) -> FloatArray:
    """Inputs that vary by 3 %; where they grow, from the smallest measured size towards the largest."""
    low, high = math.log(job.sizes[0] * 1.08), math.log(job.sizes[-1] / 1.08)
    if kind in ("growth", "everything"):
        start, end = rng.uniform(10, 60), rng.uniform(120, 190)
        share = np.clip((np.arange(runs) - start) / (end - start), 0.0, 1.0) * rng.uniform(0.6, 1.0)
    else:
        share = np.full(runs, rng.uniform(0.0, 1.0))
    logs = low + share * (high - low) + np.clip(0.03 * rng.standard_normal(runs), -0.07, 0.07)
    return np.asarray(np.exp(logs))


def _factors(job: LifeTable, kind: str, rng: np.random.Generator, runs: int, sizes: FloatArray) -> FloatArray:
    """A step concerns all configurations, each a little differently; a drift one family of machines: that of the first optimum."""
    q, when = len(job.space), int(rng.integers(50, 110))
    factors = np.ones((runs, q))
    if kind in ("step", "everything"):
        own = math.log(rng.uniform(1.15, 1.45)) + 0.1 * rng.standard_normal(q)
        factors[when:] *= np.exp(own)
    if kind == "drift":
        first = job.seconds_at(float(sizes[0])) * job.space.price_per_second
        family = [machine.split(".")[0] for machine in job.machines]
        concerned = np.array([one == family[int(first.argmin())] for one in family])
        slower = np.clip((np.arange(runs) - when) / rng.uniform(10, 60), 0.0, 1.0) * math.log(rng.uniform(1.2, 1.5))
        factors[:, concerned] *= np.exp(slower)[:, None]
    return factors


def _prices(job: LifeTable, rng: np.random.Generator, runs: int) -> FloatArray:
    """Spot prices of the machines in one region, month by month, relative to the first month."""
    history = _price_history()
    region = str(rng.choice(sorted({region for region, _ in history})))
    months = len(next(iter(history.values())))
    first = int(rng.integers(0, months - math.ceil(runs / 30)))
    factors = np.ones((runs, len(job.space)))
    for column, machine in enumerate(job.machines):
        prices = history.get((region, machine)) or history.get((region, f"{machine.split('.')[0]}.2xlarge"))
        if prices is None:
            continue
        for run in range(runs):
            factors[run, column] = prices[first + run // 30] / prices[first]
    return factors


@lru_cache(maxsize=1)
def _price_history() -> Mapping[tuple[str, str], list[float]]:
    """Monthly median spot prices by region and machine type; without the measured tables, a made-up history."""
    folder, found = data_folder(), {}
    if folder is None:
        rng = np.random.default_rng(7)
        for machine in ("c4.2xlarge", "m4.2xlarge", "r4.2xlarge"):
            found["made-up", machine] = np.exp(np.cumsum(0.08 * rng.standard_normal(42))).tolist()
        return found
    with (folder / "prices_over_time" / "aws_monthly.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["spot_median_usd"]:
                found.setdefault((row["region"], row["instance"]), []).append(float(row["spot_median_usd"]))
    months = max(map(len, found.values()))
    return {key: prices for key, prices in found.items() if len(prices) == months}


def _interruptions(kind: str, rng: np.random.Generator, runs: int) -> tuple[Interruption | None, ...]:
    """Failures of the infrastructure in every life; where machines are spot ones, losses at the rate of the measured traces."""
    made: list[Interruption | None] = []
    remaining = _spot_runs_s() if kind in ("spot", "everything") else None
    for _ in range(runs):
        draw, share, spot = rng.random(3)
        if draw < _FAILURES:
            made.append(Interruption(FailureReason.INFRA, float(share)))
        elif remaining is not None:
            after_s = float(remaining[int(spot * len(remaining))])
            made.append(Interruption(FailureReason.PREEMPTED, math.inf, after_s))
        else:
            made.append(None)
    return tuple(made)


@lru_cache(maxsize=1)
def _spot_runs_s() -> FloatArray:
    """How long a spot machine remains from a random moment on, seconds, sorted; from the preemption traces of single machines."""
    folder = data_folder()
    if folder is None:
        return np.sort(np.random.default_rng(8).exponential(20_000.0, 1000))
    with (folder / "spot_traces" / "traces.csv").open(encoding="utf-8", newline="") as file:
        steps = {
            row["trace"]: float(row["step_s"]) for row in csv.DictReader(file) if row["trace"][:12] == "preemption-1"
        }
    remaining: list[float] = []
    with gzip.open(folder / "spot_traces" / "runs.csv.gz", "rt", encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            if row["trace"] in steps and int(row["available"]) > 0:
                length = int(row["steps"])
                remaining += [steps[row["trace"]] * (length - place) for place in range(0, length, 20)]
    return np.sort(np.array(remaining))
