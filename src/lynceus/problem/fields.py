"""Pydantic types that job files and policy files share: durations, money, and the base of every section."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from lynceus.errors import InputError
from lynceus.problem.metric_units import Unit
from lynceus.problem.units import parse_duration, parse_money


class Section(BaseModel):
    """A mapping with known fields; any other field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _parsed_by(parse: Callable[[object, str], float], noun: str) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        try:
            return parse(value, noun)
        except InputError as error:
            raise ValueError(str(error)) from None

    return read


def _unit(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"got {value!r}; write a unit such as ms, tokens/s, MB or %.")
    try:
        Unit.parse(value)
    except InputError as error:
        raise ValueError(str(error)) from None
    return value


MetricUnit = Annotated[str, BeforeValidator(_unit)]
"""The unit of a metric, written `ms`, `tokens/s`, `MB`, `%`."""

Duration = Annotated[
    float,
    BeforeValidator(_parsed_by(parse_duration, "the duration")),
    WithJsonSchema({"type": ["string", "number"], "examples": ["45m", "1h30m", 90]}),
]
"""Seconds, written `45m`, `1h30m` or 90."""

Money = Annotated[
    float,
    BeforeValidator(_parsed_by(parse_money, "the amount")),
    WithJsonSchema({"type": ["string", "number"], "examples": ["25 USD", "$0.50", 25]}),
]
"""Dollars, written `25 USD`, `$25` or 25."""
