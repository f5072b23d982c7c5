"""The YAML file that turns a table of measurements into a replayable job."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from lynceus.jobfile.sections.budget import BillingSection
from lynceus.jobfile.sections.space import FractionSection
from lynceus.problem.fields import Duration, MetricUnit, Money, Section


class ParameterSpec(Section):
    """How a column is read as a parameter."""

    kind: Literal["categorical", "ordinal", "numeric"] | None = None
    """None: ordinal if the column holds numbers, categorical otherwise."""
    log: bool = False
    """Model the logarithm: doubling matters, not adding. Numbers only."""
    order: list[str | int | float | bool] | None = None
    """The values of an ordinal parameter in their order; None: ascending numbers, else order of appearance."""


class ProgressSpec(Section):
    """A column with the progress of each run, as numbers separated by spaces."""

    column: str
    every: Duration = 30.0
    """Seconds between two numbers."""
    target: float | None = None
    """Progress at which the job is done; timeouts that extrapolate progress aim at it."""


class MetricSpec(Section):
    """A reported metric with its unit."""

    column: str
    unit: MetricUnit


class StreamSpec(Section):
    """Values that a run streams, made up from two published quantiles (log-normal): named synthetic in results."""

    median: str
    """The column with the median."""
    p95: str
    """The column with the 95th percentile."""
    every: Annotated[Duration, Field(gt=0)]
    """Time between two values."""
    start: Duration = 0.0
    """Time of a run before the first value."""


class DetailsSpec(Section):
    """A second table with what runs reported (low-level metrics); each of its columns becomes a metric of the same name."""

    table: str
    """A CSV or Parquet file; if it is missing, runs report none of these metrics."""
    on: list[str] = Field(min_length=1)
    """Columns of both tables that identify a row."""


class PastSpec(Section):
    """Runs of other jobs, for policies that learn from them."""

    table: str
    """A CSV (also .csv.gz) or Parquet file with one line per run; if it is missing, there are no past runs."""
    job: str
    """The column that names the job of a run."""
    without: list[str] = Field(default_factory=list)
    """Patterns of jobs to leave out: a policy must never learn from the job itself, at any input size."""
    time: str = "time_s"
    keep: str | None = None
    """An expression over the columns; runs for which it is false are left out."""
    compare: dict[str, Annotated[list[str], Field(min_length=2, max_length=2)]] = Field(min_length=1)
    """Resources: name → the expression over the columns of the past runs, and the one over this job's columns."""
    metrics: list[str] = Field(default_factory=list)
    """Columns with reported metrics; patterns such as `cpu.*` are allowed."""


class ExactlyOne(Section):
    """A section of which exactly one field is given."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            fields = " and ".join(type(self).model_fields)
            raise ValueError(f"got {' and '.join(given) or 'none of its fields'}; give exactly one of {fields}.")
        return self


class DeadlineSpec(ExactlyOne):
    """A deadline relative to the table."""

    quantile: Annotated[float, Field(ge=0, le=1)] | None = None
    """The value at 0-based index round(n·q) of the n sorted times; 0.5 is the rule of ICDCS'20."""
    fastest: Annotated[float, Field(gt=0)] | None = None
    """A multiple of the fastest run; 11 is the rule of the thesis."""


class ReplaySpec(Section):
    """A job to replay."""

    name: str | None = None
    """The name of the job in results; None: the name of the file."""
    description: str = ""
    source: str = ""
    """Who measured the table."""
    table: str
    """A CSV or Parquet file, relative to this document or to the data folder."""
    where: str | None = None
    """An expression over the columns; rows for which it is false do not belong to this job."""
    input: dict[str, float | str] | None = None
    """What runs read, such as `{size: 12 GB}`, for policies that learn from jobs of other sizes."""
    parameters: list[str] | dict[str, ParameterSpec | None]
    """Columns that were varied."""
    features: list[str] = Field(default_factory=list)
    """Further columns that models may read."""
    time: str = "time_s"
    """The column with seconds, or an expression over columns: `time_s - boot_s` leaves out what `billing.boot` charges."""
    repeats: str | None = None
    """The column with the seconds of every run of a row, as numbers separated by spaces, for `--noise measured`. Without it, or where a
    cell is empty, every run takes the time of the row. The score goes by the column `time`, which should be their median."""
    price: str | float = "price_usd_per_hour"
    """Dollars per hour of the whole configuration: a column, an expression over columns, or a number."""
    metrics: dict[str, str | MetricSpec] = Field(default_factory=dict)
    """Reported metrics: name in objective and constraints → column, or column and unit."""
    streams: dict[str, StreamSpec] = Field(default_factory=dict)
    """Synthetic streams, for limits such as `p95(ttft) <= 500` that end a run when their answer is clear."""
    details: DetailsSpec | None = None
    past: PastSpec | None = None
    family: str | None = None
    """Jobs of one family are relatives: a past job that declares another family does not count."""
    history: list[str] = Field(default_factory=list)
    """Other replay jobs whose whole tables a policy may learn from: names of shipped jobs, or files beside this one."""
    progress: ProgressSpec | None = None
    fraction: FractionSection | None = None
    """The column with the fraction of the data; its name alone allows every fraction to be run and recommended."""
    objective: str = "cost"
    constraints: list[str] = Field(default_factory=list)
    deadline: Duration | DeadlineSpec | None = None
    billing: BillingSection = BillingSection()
    budget: Money | None = None
    """Dollars for the whole exploration; None: unlimited."""

    @property
    def metric_columns(self) -> dict[str, str]:
        """Metric → column."""
        return {name: one if isinstance(one, str) else one.column for name, one in self.metrics.items()}

    @property
    def units(self) -> dict[str, str]:
        """Metric → unit, where one is declared."""
        return {name: one.unit for name, one in self.metrics.items() if not isinstance(one, str)}
