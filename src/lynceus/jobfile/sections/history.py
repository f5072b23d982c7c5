"""The section `history`: earlier jobs that a study may learn from."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema, model_validator

from lynceus.jobfile.sections.input import InputSection
from lynceus.jobfile.sections.values import shortened
from lynceus.problem.fields import Section

_EXAMPLES = (
    "write auto, or a list such as [nightly-small, {study: nightly, storage: sqlite:///old.db}, {file: runs.csv}]."
)


class PastJobSection(Section):
    """One earlier job: a study, or a file of runs."""

    study: str | None = Field(default=None, description="the name of a study")
    storage: str | None = Field(default=None, description="where that study is kept; by default where this one is")
    file: str | None = Field(
        default=None, description="a CSV or Parquet file with one run per row, as lynceus export writes it"
    )

    family: str | None = Field(default=None, description="its family; by default what the study declares")
    input: InputSection | None = Field(
        default=None, description="what its runs read where they do not say it themselves, such as {size: 120 GB}"
    )

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return {"study": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_of_both(self) -> PastJobSection:
        if (self.study is None) == (self.file is None):
            raise ValueError("give either a study or a file.")
        if self.file is not None and self.storage is not None:
            raise ValueError("a file is in no storage; leave storage out.")
        return self


History = Annotated[
    Literal["auto"] | list[PastJobSection],
    WithJsonSchema(
        {
            "anyOf": [
                {"const": "auto"},
                {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "object"}]}},
            ]
        }
    ),
]
"""`auto`, or earlier jobs."""


def checked(value: Any) -> Any:
    """A history as a file writes it; one job need not be a list."""
    if isinstance(value, str | dict) and value != "auto":
        value = [value]
    if value != "auto" and not isinstance(value, list):
        raise ValueError(f"got {shortened(value)}; {_EXAMPLES}")
    return value
