"""The YAML file of an experiment as pydantic models; `experiments/README.md` explains it."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from lynceus.jobfile.sections.budget import RateSection
from lynceus.problem.fields import Duration, Section
from lynceus.replay.job_file import DeadlineSpec, ExactlyOne


class BudgetSpec(ExactlyOne):
    """Money for one search."""

    usd: float | None = None
    means: float | None = None
    """A multiple of the mean cost of a run (the rule of the thesis and of OBOL)."""


class OptionsSpec(Section):
    """Changes to a job; fields that are not given stay as in the job file."""

    deadline: DeadlineSpec | None = None
    budget: BudgetSpec | None = None
    where: str | None = None
    """An expression over the columns of the table; rows for which it is false are left out."""
    billing: RateSection | None = None
    price: str | None = None
    """Dollars per hour of a configuration, an expression over the columns of the table."""
    objective: str | None = None
    """Another objective, such as `minimize price / output_tokens_per_s`."""
    time: str | None = None
    """Seconds of a run: another column, or an expression over columns."""
    warm: tuple[str, ...] | None = Field(default=None, strict=False)
    """Columns that identify a deployment: of runs in a row on the same one, only the first boots."""
    history: tuple[str, ...] | None = Field(default=None, strict=False)
    """Other replay jobs whose whole tables a policy may learn from."""
    rows: Annotated[float, Field(gt=0, le=1)] | None = None
    """A share of the table's rows, drawn anew for each seed."""


class WorldSpec(Section):
    """Noise and failures of simulated runs; those that are given are combined in this order."""

    noise: float | Literal["measured"] | None = None
    """Standard deviation of the logarithm of running times; `measured`: runs take the times that were measured of their row."""
    failures: float | None = None
    """Fraction of runs that fail because of their machines."""
    slow_boots: Duration | None = None
    """Mean of the additional, billed time to boot machines."""
    interruptions: Duration | None = None
    """Mean lifetime of spot machines."""


class ArmSpec(Section):
    """One policy to compare: a preset, a policy made of parts, or a peer library."""

    preset: str | None = None
    lookahead: int | None = None
    timeout: str | None = None
    policy: dict[str, Any] | None = None
    """The content of a policy file."""
    peer: str | None = None
    """A library in an environment of its own, such as `optuna-tpe`."""
    seeds: Annotated[int, Field(ge=1)] | None = None
    """Fewer seeds than the experiment has, for a slow policy."""


Quantity = Literal[
    "money",
    "settled",
    "trials",
    "dfo",
    "distance",
    "regret",
    "nex",
    "decision",
    "error",
    "spent",
    "violations",
    "broken",
]
"""Dollars until a CNO is first reached (`money`), or reached for good (`settled`); `trials` until then; distance of the recommendation
from the optimum (`dfo`); distance of the best known configuration after `level` times the mean cost of a configuration; cost of the search
plus the excess cost of a hundred production runs (`regret`); number of trials (`nex`); seconds per `decision`; relative `error` of the
running times estimated for stopped runs; dollars `spent` in a whole replay; whether the final recommendation violates a constraint
(`violations`), or the fraction of intermediate recommendations that do (`broken`)."""
Statistic = Literal["p50", "p90", "mean", "found", "share"]
"""`found` is the mean over the seeds that reached the level, `share` the fraction of them."""


def chosen(jobs: Sequence[str], patterns: Sequence[str] | None) -> list[str]:
    """The jobs of an experiment that a claim or a figure names; None: all.

    >>> chosen(["scout/a", "scout/b", "tensorflow/a"], ["scout/*"])
    ['scout/a', 'scout/b']
    """
    return [job for job in jobs if patterns is None or any(fnmatchcase(job, pattern) for pattern in patterns)]


class MeasureSpec(Section):
    """A number computed from traces."""

    kind: Literal["ratio", "value", "saving", "table"]
    """`ratio`: of one policy to another; `value`: of one; `saving`: 1 − ratio; `table`: a property of the table itself."""
    quantity: Quantity = "money"
    statistic: Statistic = "p90"
    level: float = 1.1
    """The CNO, for money and trials."""
    of: str | None = None
    """The policy in the numerator."""
    to: str | None = None
    """The policy in the denominator."""
    jobs: list[str] | None = None
    """Jobs (or patterns) that are combined by a geometric mean (ratios, savings) or a mean; None: all of the experiment."""
    variant: str | None = None
    to_variant: str | None = None
    """The variant of the denominator, if it differs."""
    to_level: float | None = None
    """The CNO of the denominator, if it differs: where the two search different spaces, each has a CNO of its own."""
    pooled: bool = False
    """Take the statistic over the seeds of all jobs together, in dollars, as a CDF over several jobs does; otherwise job by job."""
    fact: str | None = None
    """For `table`: see `lynceus_lab.table_facts`."""


class ClaimSpec(Section):
    """A published statement, and the condition under which it holds here."""

    id: str
    says: str
    published: str
    """The published value, as text."""
    measure: MeasureSpec
    holds: str
    """A condition on the number, such as `>= 2`, `< 0.8` or `0.3..0.5`: the claim as published, allowing for rounding."""
    direction: str | None = None
    """A weaker condition: the same effect, of any size."""
    note: str = ""
    """An explanation with evidence, for readers of the results page."""
    differs: list[str] | None = None
    """Aspects of `setup` in which this claim's set-up differs from the paper's; None: all that differ in the experiment."""


class AspectSpec(Section):
    """One aspect of a set-up, such as the price, where the paper's and ours differ."""

    paper: str
    here: str


class FigureSpec(Section):
    """One panel per job (or one for all)."""

    kind: Literal["cdf", "cno-by-money", "bars", "by-variant", "table-cno", "disjoint"]
    title: str
    level: float = 1.1
    quantity: Quantity = "money"
    statistic: Statistic = "p90"
    jobs: list[str] | None = None
    policies: list[str] | None = None
    together: bool = False
    """Pool all jobs, with money in multiples of each job's optimum."""
    x: str = ""
    """The label of the axis that shows the variants."""
    log: bool = True


def _cno(value: float) -> float:
    if not value >= 1:
        raise ValueError(f"got {value:g}; give optimum, end, or a CNO of at least 1.")
    return value


class ExperimentSpec(Section):
    """Jobs × variants × policies × seeds, with figures and claims."""

    title: str
    source: str = ""
    """The figure or table of a paper."""
    jobs: list[str] = Field(min_length=1)
    """Names of replay jobs, or patterns such as `scout/*`."""
    options: OptionsSpec = OptionsSpec()
    histories: dict[str, list[str]] = Field(default_factory=dict)
    """Job → other replay jobs that its policies may learn from; those of `options` for jobs that are not named."""
    variants: dict[str, OptionsSpec] = Field(default_factory=dict)
    """Named changes on top of `options`; the experiment runs with each of them."""
    readings: dict[str, OptionsSpec] = Field(default_factory=dict)
    """Named readings of what the paper leaves open, such as a price, on top of the variants. Claims are judged under the first one and
    shown under all."""
    setup: dict[str, str | AspectSpec] = Field(default_factory=dict)
    """The paper's set-up and ours, aspect by aspect (seeds, start, deadline, price, metric, …); one text where they are equal."""
    policies: dict[str, str | ArmSpec] = Field(default_factory=dict)
    """Label → preset or details; empty: only properties of the tables."""
    baseline: str | None = None
    """The policy that the others are compared with; None: the first."""
    also: list[str] = Field(default_factory=list)
    """Further policies that all others are compared with."""
    world: WorldSpec | None = None
    worlds: dict[str, WorldSpec | None] = Field(default_factory=dict)
    """Named worlds, like variants."""
    seeds: Annotated[int, Field(ge=1)] = 100
    quick: Annotated[int, Field(ge=0)] = 0
    """Seeds of the quick set; 0: not part of it."""
    first_seed: int = 0
    until: Literal["optimum", "end"] | Annotated[float, AfterValidator(_cno)] = "optimum"
    """When a replay may end: at the optimum, when the policy stops, or at a CNO such as 1.1."""
    trials: Annotated[int, Field(ge=1)] | None = None
    """The largest number of trials of a replay."""
    parallel: Annotated[int, Field(ge=1)] = 1
    levels: list[float] = Field(default_factory=lambda: [2.0, 1.1, 1.0])
    figures: list[FigureSpec] = Field(default_factory=list)
    claims: list[ClaimSpec] = Field(default_factory=list)
