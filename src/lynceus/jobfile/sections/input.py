"""The section `input`: what runs read from now on."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from lynceus.errors import InputError
from lynceus.problem.job_input import HOW_TO_WRITE, JobInput


def _checked(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError(f"got {str(value)[:60]!r}; {HOW_TO_WRITE}")
    try:
        return JobInput.read(value, "it").record()
    except InputError as error:
        raise ValueError(str(error).removeprefix("it: ")) from None


InputSection = Annotated[
    dict[str, Any],
    BeforeValidator(_checked),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"size": {"type": ["string", "number"], "examples": ["120 GB", "64 GiB"]}},
            "additionalProperties": {"type": ["number", "string"]},
            "minProperties": 1,
        }
    ),
]
"""Numbers by name (the size in bytes), and names; as JSON keeps them."""
