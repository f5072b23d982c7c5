"""The sections `space`, `derived`, `fraction` and `prices`: the configurations, and what is known about each."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from lynceus.jobfile.sections.values import short_form, shortened
from lynceus.problem.fields import Section

Scalar = str | bool | int | float
Whole = int
Number = float
_SCALARS = {"type": "array", "items": {"type": ["string", "number", "boolean"]}, "minItems": 1}


class ParameterSection(Section):
    """One dimension of the space: a list of values, a range of numbers, or an ordered list."""

    model_config = short_form({**_SCALARS, "description": "the values: [small, large]"})

    choice: list[Any] | None = Field(
        default=None, description="values without an order; a plain list is short for this"
    )
    ordinal: list[Any] | None = Field(default=None, description="values in a meaningful order, smallest first")
    int: list[Whole] | None = Field(default=None, description="lowest and highest whole number: [1, 8]")
    float: list[Number] | None = Field(default=None, description="lowest and highest number: [0.1, 0.9]")
    step: Number | None = Field(default=None, description="distance between two values of a range")
    steps: Whole | None = Field(default=None, description="how many values a range is divided into")
    log: bool = Field(default=False, description="a logarithmic scale: doubling matters, not adding")
    when: str | None = Field(
        default=None, description="an expression over earlier parameters; where it is false, this one is inactive"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        if isinstance(value, list):
            return {"choice": value}
        if not isinstance(value, dict):
            raise ValueError(f"got {shortened(value)}; write a list of values, or a range such as {{int: [1, 8]}}.")
        kinds = [kind for kind in ("choice", "ordinal", "int", "float") if kind in value]
        if len(kinds) > 1:
            raise ValueError(f"it has both {kinds[0]} and {kinds[1]}; keep one of them.")
        if not kinds and not set(value) - {"step", "steps", "log", "when"}:
            raise ValueError(
                "it has no values; add int: [low, high], float: [low, high], ordinal: [...] or choice: [...]."
            )
        return value

    @field_validator("choice", "ordinal", mode="before")
    @classmethod
    def _values(cls, value: object) -> object:
        if not isinstance(value, list) or not value:
            raise ValueError(f"got {shortened(value)}; write a list with at least one value, such as [a, b].")
        for one in value:
            if not isinstance(one, Scalar):
                raise ValueError(f"{shortened(one)} cannot be a value; use strings, numbers or true/false.")
        return value

    @field_validator("int", "float", mode="before")
    @classmethod
    def _bounds(cls, value: object) -> object:
        numbers = isinstance(value, list) and all(
            isinstance(one, int | float) and not isinstance(one, bool) for one in value
        )
        if not numbers or len(value) != 2:  # type: ignore[arg-type]
            raise ValueError(
                f"got {shortened(value)}; write [lowest, highest]. A list of single values needs no 'int' or 'float'."
            )
        return value


class DerivedSection(Section):
    """A column that follows from the configuration: computed, mapped from another column, or joined from a table."""

    model_config = short_form({"type": "string", "description": "an expression over columns: nodes * vcpus"})

    expression: str | None = Field(default=None, description="computed from earlier columns")
    map: str | None = Field(default=None, description="the column whose values are looked up in `values`")
    values: dict[Any, Any] | None = Field(default=None, description="value of the mapped column: result")
    join: str | list[str] | None = Field(default=None, description="the column or columns by which `table` is joined")
    table: str | None = Field(default=None, description="a CSV file beside the job file")
    columns: list[str] | None = Field(default=None, description="which columns of the table to add; all by default")
    feature: bool | None = Field(
        default=None, description="whether models use it; by default they use numbers and ignore strings"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return {"expression": str(value)}
        if not isinstance(value, dict):
            raise ValueError(
                f"got {shortened(value)}; write an expression, {{map: ..., values: ...}} or {{join: ..., table: ...}}."
            )
        kinds = [kind for kind in ("expression", "map", "join") if kind in value]
        if len(kinds) != 1:
            raise ValueError(f"got {' and '.join(kinds) or 'none'} of expression, map and join; give exactly one.")
        required = {"expression": set(), "map": {"values"}, "join": {"table"}}[kinds[0]]
        allowed = {kinds[0], "feature", *required} | ({"columns"} if kinds[0] == "join" else set())
        for missing in sorted(required - set(value)):
            raise ValueError(f"{kinds[0]} needs the field {missing!r}; add it.")
        for odd in sorted(set(value) & (set(cls.model_fields) - allowed)):
            raise ValueError(f"{odd!r} cannot be combined with {kinds[0]!r}; remove it.")
        return value


class FractionSection(Section):
    """Which parameter is the fraction of the data that a trial reads, which fractions to run, and which to recommend."""

    model_config = short_form(
        {"type": "string", "description": "the parameter; every fraction may be run and recommended"}
    )

    column: str = Field(description="the parameter that holds the fraction, numbers above 0 and up to 1")
    test: Literal["all", "samples", "full"] = Field(
        default="all", description="what to run: every fraction, only fractions below 1, only all data"
    )
    answer: Literal["any", "full"] = Field(
        default="any", description="what to recommend: any fraction, or only configurations on all data"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if isinstance(value, str):
            return {"column": value}
        if not isinstance(value, dict):
            raise ValueError(
                f"got {shortened(value)}; name the parameter, or write {{column: share, test: samples, answer: full}}."
            )
        return value


class PricesSection(Section):
    """Prices of machines from a catalog file, joined by the name of the machine."""

    file: str = Field(description="a CSV file in the format of SkyPilot's catalogs")
    region: str | None = Field(default=None, description="required when the file has several regions")
    spot: bool = Field(default=False, description="spot prices instead of on-demand prices")
    machine: str = Field("instance_type", description="the parameter that names the machine")
