"""The sections `baseline` and `future`: what savings are measured against, and how often they will be made."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema, field_validator, model_validator

from lynceus.jobfile.sections.values import short_form, shortened
from lynceus.problem.baseline import MEASURED_TWICE
from lynceus.problem.fields import Duration, Section
from lynceus.problem.future_use import HOW_TO_WRITE, FutureUse, form_mistake


class BaselineSection(Section):
    """The configuration used until now, to compare the best one with."""

    model_config = short_form({"type": "object", "description": "the configuration alone: {nodes: 4, memory: 8g}"})

    config: dict[str, Any] = Field(description="a value for each parameter; those with a single value may be omitted")
    runtime: Duration | None = Field(default=None, description="the time of a run, if you know it")
    measure: bool = Field(default=False, description="true: the first trial runs it")

    @field_validator("runtime")
    @classmethod
    def _some_time(cls, value: float | None) -> float | None:
        if value == 0.0:
            raise ValueError("a run of 0 seconds came; give the time of a run, such as 41m.")
        return value

    @model_validator(mode="after")
    def _once(self) -> BaselineSection:
        if self.runtime is not None and self.measure:
            raise ValueError(MEASURED_TWICE)
        return self


Count = Annotated[
    float,
    Field(gt=0, allow_inf_nan=False),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "examples": [100, 30, 6]}),
]
"""A number above 0."""


class FutureSection(Section):
    """How often the job will run with the configuration that is found: the stopping rule, savings and pay-back count with it."""

    runs: Count | None = Field(default=None, description="in all")
    per_month: Count | None = Field(default=None, description="in a month; needs months")
    months: Count | None = Field(default=None, description="for so many months; needs per_month")

    @model_validator(mode="before")
    @classmethod
    def _mapping(cls, value: object) -> object:
        if not isinstance(value, dict):
            raise ValueError(f"got {shortened(value)}; {HOW_TO_WRITE}")
        return value

    @model_validator(mode="after")
    def _one_form(self) -> FutureSection:
        if (mistake := form_mistake(self.runs, self.per_month, self.months)) is not None:
            raise ValueError(mistake)
        return self

    def future_use(self) -> FutureUse:
        """The future use that it describes."""
        return FutureUse(self.runs, self.per_month, self.months)
