"""The section `probe`: small samples of the input that are run on this machine before the first trial."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from lynceus.problem.fields import Duration, Section

_FEWEST, _MOST = 2, 10


class ProbeSection(Section):
    """Run the job on small shares of its input on this machine first, to learn how much memory the whole input needs."""

    shares: list[Annotated[float, Field(gt=0, lt=1)]] = Field(
        default=[0.01, 0.02, 0.05],
        strict=False,
        description="shares of the input, as values of the column of 'fraction'",
    )
    timeout: Duration = Field(default=600.0, description="the longest time of one sample")

    @field_validator("shares")
    @classmethod
    def _some_different(cls, value: list[float]) -> list[float]:
        if not _FEWEST <= len(set(value)) <= _MOST or len(set(value)) < len(value):
            raise ValueError(f"got {value}; give {_FEWEST} to {_MOST} different shares, such as [0.01, 0.02, 0.05].")
        return sorted(value)
