"""The section `metrics`: what jobs report, in which unit, and how it is read from their output."""

from __future__ import annotations

from pydantic import Field, model_validator

from lynceus.problem.fields import MetricUnit, Section


class MetricSection(Section):
    """A metric. A plain text is its pattern."""

    pattern: str | None = Field(
        default=None, description="a regular expression with one group, for jobs that cannot report by themselves"
    )
    unit: MetricUnit | None = Field(
        default=None, description="its unit, such as ms or tokens/s: limits may be written in it"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        return {"pattern": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _some(self) -> MetricSection:
        if self.pattern is None and self.unit is None:
            raise ValueError("it says nothing; write a regular expression, or {unit: ms}.")
        return self
