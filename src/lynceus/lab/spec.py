"""The YAML of an experiment, as models (their JSON Schema comes for free). `experiments/README.md` tells it in words."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from lynceus.document import Duration, Section
from lynceus.replay.spec import BillingSpec


class _OneOf(Section):
    """A section of which exactly one field is given."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            fields = " and ".join(type(self).model_fields)
            raise ValueError(f"{' and '.join(given) or 'nothing'} came; give exactly one of {fields}.")
        return self


class DeadlineSpec(_OneOf):
    """A deadline relative to the table; give one of the two."""

    quantile: float | None = None
    """The value at index round(n·q) of the sorted times (0.5: the rule of ICDCS'20)."""
    fastest: float | None = None
    """A multiple of the fastest run (11: the rule of the thesis)."""


class BudgetSpec(_OneOf):
    """Money for one exploration; give one of the two."""

    usd: float | None = None
    means: float | None = None
    """A multiple of the mean cost of a run (the rule of the thesis and of OBOL)."""


class OptionsSpec(Section):
    """What is changed in a job; whatever is not given stays as the job has it."""

    deadline: DeadlineSpec | None = None
    budget: BudgetSpec | None = None
    where: str | None = None
    """An expression over the table's columns; rows where it is false are left out."""
    billing: BillingSpec | None = None


class WorldSpec(Section):
    """Misfortunes of the executor; those that are given are stacked in this order."""

    noise: float | None = None
    """Standard deviation of the logarithm of run times."""
    failures: float | None = None
    """Share of runs that fail by no fault of their own."""
    slow_boots: Duration | None = None
    """Mean of the additional, billed time until machines are up."""
    interruptions: Duration | None = None
    """Mean life of spot machines."""


class ArmSpec(Section):
    """One competitor: a preset, a policy made of parts, or a peer library."""

    preset: str | None = None
    lookahead: int | None = None
    timeout: str | None = None
    policy: dict[str, Any] | None = None
    """A policy file's content."""
    peer: str | None = None
    """A library of its own environment, such as `optuna-tpe`."""
    seeds: Annotated[int, Field(ge=1)] | None = None
    """Fewer seeds than the experiment has, for a competitor that thinks long."""


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
"""Dollars until a CNO first, or for good; trials until it; distance from the optimum of the recommendation; distance of the best known
after `level` times the mean cost of a configuration; cost of the exploration and of a hundred runs that are dearer than they need be;
number of explorations; seconds per decision; error of the estimates told of stopped runs; money of a whole replay; share of
recommendations at the end, or all along the way, that break a limit."""
Statistic = Literal["p50", "p90", "mean", "found", "share"]
"""`found` is the mean over the seeds that got there at all; `share` says how many those are."""


def chosen(jobs: Sequence[str], patterns: Sequence[str] | None) -> list[str]:
    """Those of an experiment's jobs that a claim or a figure names; nothing named: all.

    >>> chosen(["scout/a", "scout/b", "tensorflow/a"], ["scout/*"])
    ['scout/a', 'scout/b']
    """
    return [job for job in jobs if patterns is None or any(fnmatchcase(job, pattern) for pattern in patterns)]


class MeasureSpec(Section):
    """A number that is read off the traces."""

    kind: Literal["ratio", "value", "saving", "table"]
    """`ratio`: of one competitor to another; `value`: of one; `saving`: 1 − ratio; `table`: a fact of the table itself."""
    quantity: Quantity = "money"
    statistic: Statistic = "p90"
    level: float = 1.1
    """The CNO, for money and trials."""
    of: str | None = None
    """The competitor in the numerator."""
    to: str | None = None
    """The competitor in the denominator."""
    jobs: list[str] | None = None
    """Jobs (or patterns of them) that are joined by a geometric mean (ratios, savings) or a mean; nothing: all of the experiment."""
    variant: str | None = None
    to_variant: str | None = None
    """The denominator's variant, where it differs."""
    fact: str | None = None
    """For `table`: see `lynceus.lab.facts`."""


class ClaimSpec(Section):
    """A published statement, and what would make it hold here."""

    id: str
    says: str
    published: str
    """The value as published, in words."""
    measure: MeasureSpec
    holds: str
    """A condition on the number, such as `>= 2`, `< 0.8` or `0.3..0.5`: the claim as published, with its roundings."""
    direction: str | None = None
    """A weaker condition: the same effect, whatever its size."""
    note: str = ""
    """Why it does not hold, with the evidence; for people."""


class FigureSpec(Section):
    """One picture per job (or one for all)."""

    kind: Literal["cdf", "cno-by-money", "bars", "by-variant", "table-cno", "disjoint"]
    title: str
    level: float = 1.1
    quantity: Quantity = "money"
    statistic: Statistic = "p90"
    jobs: list[str] | None = None
    policies: list[str] | None = None
    together: bool = False
    """Pool all jobs, money in multiples of each job's optimum."""
    x: str = ""
    """What the variants are, for the axis of a picture over them."""
    log: bool = True


def _cno(value: float) -> float:
    if not value >= 1:
        raise ValueError(f"{value:g} came; give optimum, end, or a CNO of at least 1.")
    return value


class ExperimentSpec(Section):
    """Jobs × variants × policies × seeds, with pictures and claims."""

    title: str
    source: str = ""
    """The figure or table of which paper."""
    jobs: list[str] = Field(min_length=1)
    """Names of replay jobs, or patterns such as `scout/*`."""
    options: OptionsSpec = OptionsSpec()
    variants: dict[str, OptionsSpec] = Field(default_factory=dict)
    """Named changes on top of `options`; the experiment is made in each of them."""
    policies: dict[str, str | ArmSpec] = Field(default_factory=dict)
    """Label → preset, or more; empty: a study of the tables alone."""
    baseline: str | None = None
    """The competitor that others are compared with in the table; nothing: the first."""
    also: list[str] = Field(default_factory=list)
    """Further competitors that all others are compared with."""
    world: WorldSpec | None = None
    worlds: dict[str, WorldSpec | None] = Field(default_factory=dict)
    """Named worlds; like variants."""
    seeds: Annotated[int, Field(ge=1)] = 100
    quick: Annotated[int, Field(ge=0)] = 0
    """Seeds of the quick set; 0: not part of it."""
    first_seed: int = 0
    until: Literal["optimum", "end"] | Annotated[float, AfterValidator(_cno)] = "optimum"
    """When a replay may end: at the optimum, when the policy stops, or at a CNO such as 1.1."""
    trials: Annotated[int, Field(ge=1)] | None = None
    """Most trials of a replay."""
    parallel: Annotated[int, Field(ge=1)] = 1
    levels: list[float] = Field(default_factory=lambda: [2.0, 1.1, 1.0])
    figures: list[FigureSpec] = Field(default_factory=list)
    claims: list[ClaimSpec] = Field(default_factory=list)
