"""The YAML that turns a table of measurements into a replayable job, as a model (its JSON Schema comes for free)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from lynceus.document import Duration, Money, Section


class ParameterSpec(Section):
    """How a column is to be read as a parameter."""

    kind: Literal["categorical", "ordinal", "numeric"] | None = None
    """Nothing: ordinal if the column holds numbers, categorical otherwise."""
    log: bool = False
    """Model the logarithm: doubling matters, not adding. Numbers only."""
    order: list[str | int | float | bool] | None = None
    """The values of an ordinal parameter in their order; nothing: ascending numbers, else order of appearance."""


class ProgressSpec(Section):
    """A column with the progress of each run, as numbers separated by blanks."""

    column: str
    every: Duration = 30.0
    """Time between two numbers."""
    target: float | None = None
    """Progress at which the job is done; the fill of a timeout that extrapolates progress aims at it."""


class DetailsSpec(Section):
    """A further table with what runs reported besides (low-level metrics): all its columns become metrics of the same name."""

    table: str
    """A CSV or Parquet file; where it is not there, runs report nothing of it."""
    on: list[str] = Field(min_length=1)
    """Columns that both tables have and that name a row."""


class PastSpec(Section):
    """Runs of other jobs, for policies that learn from them."""

    table: str
    """A CSV (also .csv.gz) or Parquet file with a line per run; where it is not there, nothing is known of the past."""
    job: str
    """The column that says which job a run belongs to."""
    without: list[str] = Field(default_factory=list)
    """Patterns of jobs that are left out: a policy must never learn from the job itself, in whatever size."""
    time: str = "time_s"
    keep: str | None = None
    """An expression over the columns; runs where it is false are left out."""
    compare: dict[str, Annotated[list[str], Field(min_length=2, max_length=2)]] = Field(min_length=1)
    """Resources: name → the expression over the past's columns, and the one over this table's."""
    metrics: list[str] = Field(default_factory=list)
    """Columns with what runs reported; patterns such as `cpu.*` too."""


class DeadlineSpec(Section):
    """A deadline relative to the table."""

    quantile: Annotated[float, Field(ge=0, le=1)]
    """The value at 0-based index round(n·q) of the n sorted times; 0.5 is the rule of the papers."""


class BillingSpec(Section):
    """How running time becomes money."""

    granularity: Duration = 0.0
    minimum: Duration = 0.0
    boot: Duration = 0.0
    fee: Money = 0.0


class FractionSpec(Section):
    """Which column is the share of the data that a run reads."""

    column: str
    test: Literal["all", "samples", "full"] = "all"
    """What may be run: every share, only shares below 1, only all data."""
    answer: Literal["any", "full"] = "any"
    """What may be recommended: any share, or only runs on all data."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"column": value} if isinstance(value, str) else value


class ReplaySpec(Section):
    """A job to replay."""

    name: str | None = None
    """What results call the job; nothing: the file's name."""
    description: str = ""
    source: str = ""
    """Who measured the table."""
    table: str
    """A CSV or Parquet file, relative to this document or to the data folder."""
    parameters: list[str] | dict[str, ParameterSpec | None]
    """Columns that were varied."""
    features: list[str] = Field(default_factory=list)
    """Further columns that models may read."""
    time: str = "time_s"
    """The column with seconds."""
    price: str | float = "price_usd_per_hour"
    """Dollars per hour of the whole configuration: a column, an expression over columns, or a number."""
    metrics: dict[str, str] = Field(default_factory=dict)
    """Reported metrics: name in objective and constraints → column."""
    details: DetailsSpec | None = None
    past: PastSpec | None = None
    progress: ProgressSpec | None = None
    fraction: FractionSpec | None = None
    """The column with the share of the data; its name alone lets every share be tested and win."""
    objective: str = "cost"
    constraints: list[str] = Field(default_factory=list)
    deadline: Duration | DeadlineSpec | None = None
    billing: BillingSpec = BillingSpec()
    budget: Money | None = None
    """Dollars for the whole exploration; nothing: unlimited."""
