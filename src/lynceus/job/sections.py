"""The sections of a job file, one class each. Field descriptions become the JSON Schema that editors read."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema, field_validator, model_validator

from lynceus.document import Duration, Money, Section
from lynceus.errors import InputError
from lynceus.units import parse_duration

Scalar = str | bool | int | float
Whole = int
Number = float
_SCALARS = {"type": "array", "items": {"type": ["string", "number", "boolean"]}, "minItems": 1}


def _either(short: dict[str, Any]) -> ConfigDict:
    """The JSON Schema of a section that may also be written in a short form."""

    def extra(schema: dict[str, Any]) -> None:
        long = {"type": "object", "properties": schema.pop("properties"), "additionalProperties": False}
        for key in ("type", "additionalProperties"):
            schema.pop(key, None)
        schema["anyOf"] = [short, long]

    return ConfigDict(json_schema_extra=extra)


def _scalars(value: object, what: str) -> list[Scalar]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{what} came as {_short(value)}: write a list with at least one value, such as [a, b].")
    for one in value:
        if not isinstance(one, str | bool | int | float):
            raise ValueError(f"{_short(one)} cannot be a value: use texts, numbers or true/false.")
    return value


class ParameterSection(Section):
    """One dimension of the space: a list of values, a range of numbers, or an ordered list."""

    model_config = _either({**_SCALARS, "description": "the values: [small, large]"})

    choice: list[Any] | None = Field(
        default=None, description="values without an order; a plain list is short for this"
    )
    ordinal: list[Any] | None = Field(default=None, description="values in a meaningful order, smallest first")
    int: list[Whole] | None = Field(default=None, description="lowest and highest whole number: [1, 8]")
    float: list[Number] | None = Field(default=None, description="lowest and highest number: [0.1, 0.9]")
    step: Number | None = Field(default=None, description="distance between two values of a range")
    steps: Whole | None = Field(default=None, description="how many values a range is cut into")
    log: bool = Field(default=False, description="doubling matters, not adding")
    when: str | None = Field(
        default=None, description="an expression over earlier parameters; elsewhere this one is inactive"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, value: object) -> object:
        if isinstance(value, list):
            return {"choice": value}
        if not isinstance(value, dict):
            raise ValueError(f"{_short(value)} came: write a list of values, or a range such as {{int: [1, 8]}}.")
        kinds = [kind for kind in ("choice", "ordinal", "int", "float") if kind in value]
        if len(kinds) > 1:
            raise ValueError(f"it has both {kinds[0]} and {kinds[1]}: keep one of them.")
        if not kinds and not set(value) - {"step", "steps", "log", "when"}:
            raise ValueError(
                "it has no values: add int: [low, high], float: [low, high], ordinal: [...] or choice: [...]."
            )
        return value

    @field_validator("choice", "ordinal", mode="before")
    @classmethod
    def _values(cls, value: object) -> object:
        return _scalars(value, "the list of values")

    @field_validator("int", "float", mode="before")
    @classmethod
    def _bounds(cls, value: object) -> object:
        numbers = isinstance(value, list) and all(
            isinstance(one, int | float) and not isinstance(one, bool) for one in value
        )
        if not numbers or len(value) != 2:  # type: ignore[arg-type]
            raise ValueError(
                f"{_short(value)} came: write [lowest, highest]; a list of single values needs no 'int' or 'float'."
            )
        return value


class DerivedSection(Section):
    """A column that follows from the configuration: computed, mapped from another column, or joined from a table."""

    model_config = _either({"type": "string", "description": "an expression over columns: nodes * vcpus"})

    expression: str | None = Field(default=None, description="computed from earlier columns")
    map: str | None = Field(default=None, description="the column whose values are looked up in `values`")
    values: dict[Any, Any] | None = Field(default=None, description="value of the mapped column: result")
    join: str | list[str] | None = Field(default=None, description="the column or columns by which `table` is joined")
    table: str | None = Field(default=None, description="a CSV file beside the job file")
    columns: list[str] | None = Field(default=None, description="which columns of the table to add; all by default")
    feature: bool | None = Field(
        default=None, description="whether models read it; by default numbers are read, texts are not"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return {"expression": str(value)}
        if not isinstance(value, dict):
            raise ValueError(
                f"{_short(value)} came: write an expression, {{map: ..., values: ...}} or {{join: ..., table: ...}}."
            )
        kinds = [kind for kind in ("expression", "map", "join") if kind in value]
        if len(kinds) != 1:
            raise ValueError("exactly one of expression, map and join is needed.")
        needs = {"expression": set(), "map": {"values"}, "join": {"table"}}[kinds[0]]
        allowed = {kinds[0], "feature", *needs} | ({"columns"} if kinds[0] == "join" else set())
        for missing in needs - set(value):
            raise ValueError(f"{kinds[0]} needs {missing!r} beside it.")
        for odd in set(value) & (set(cls.model_fields) - allowed):
            raise ValueError(f"{odd!r} does not go with {kinds[0]!r}: remove it.")
        return value


class FractionSection(Section):
    """Which parameter is the share of the data that a trial reads, what may be tried and what may be the answer."""

    model_config = _either({"type": "string", "description": "the parameter; every share may be tried and may win"})

    column: str = Field(description="the parameter that holds the share, numbers above 0 and up to 1")
    test: Literal["all", "samples", "full"] = Field(
        default="all", description="what is tried: every share, only shares below 1, only all data"
    )
    answer: Literal["any", "full"] = Field(
        default="any", description="what is recommended: any share, or only trials on all data"
    )

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if isinstance(value, str):
            return {"column": value}
        if not isinstance(value, dict):
            raise ValueError(
                f"{_short(value)} came: name the parameter, or write {{column: share, test: samples, answer: full}}."
            )
        return value


class BudgetSection(Section):
    """What the search may use up; runs under way count with the most they can cost."""

    cost: Money | None = Field(default=None, description="dollars for all trials together, a hard cap")
    wall_clock: Duration | None = Field(default=None, description="no trial starts after this time")
    max_trials: int | None = Field(default=None, ge=1, description="most trials that are started")

    @model_validator(mode="before")
    @classmethod
    def _from_money(cls, value: object) -> object:
        return value if isinstance(value, dict) else {"cost": value}

    @model_validator(mode="after")
    def _some(self) -> BudgetSection:
        if self.cost is None and self.wall_clock is None and self.max_trials is None:
            raise ValueError("it limits nothing: give at least one of cost, wall_clock and max_trials.")
        return self


class BillingSection(Section):
    """How running time becomes money."""

    granularity: Duration = Field(default=0.0, description="billed time is rounded up to a multiple of this")
    minimum: Duration = Field(default=0.0, description="the least time that is billed")
    boot: Duration = Field(default=0.0, description="billed before the job starts, when machines are booted for it")
    fee: Money = Field(default=0.0, description="dollars per boot")
    warm: list[str] = Field(
        default=[], description="columns that identify the machines: equal ones are not booted again"
    )


class RetriesSection(Section):
    """How often a failed trial is tried again, by whose fault it was."""

    infra: int = Field(default=2, ge=0, description="after failures of machines (exit code 75, lost processes)")
    preempted: int = Field(
        default=2, ge=0, description="after the cloud took the machines back (exit code 85); see resources.spot"
    )
    job: int = Field(
        default=0, ge=0, description="after failures of the job itself; such a failure is usually repeated"
    )


class TrialSection(Section):
    """How single trials are run."""

    timeout: str = Field(default="auto", description="auto (the policy's own rule), none, or a named rule such as tg")
    max_duration: Duration | None = Field(
        default=None, description="every trial is stopped after this time, whatever the timeout says"
    )
    parallel: int = Field(default=1, ge=1, le=1024, description="trials at the same time")
    retries: RetriesSection = Field(default_factory=RetriesSection)
    confirm_best: int = Field(
        default=0, ge=0, le=20, description="runs of the best configuration that confirm it, out of a reserved slice"
    )
    grace: Duration = Field(default=10.0, description="between SIGTERM and SIGKILL")
    max_failures: int = Field(default=5, ge=1, description="failures in a row after which the study pauses")

    @field_validator("timeout", mode="before")
    @classmethod
    def _word(cls, value: object) -> object:
        if isinstance(value, int | float) or (isinstance(value, str) and re.match(r"\s*\d", value)):
            try:
                parse_duration(value)
            except InputError:
                pass
            else:
                raise ValueError(
                    f"{_short(value)} is a duration, but timeout names a rule: write max_duration: {value} instead."
                )
        if not isinstance(value, str):
            raise ValueError(f"{_short(value)} came: write auto, none, or the name of a rule such as tg.")
        return value

    @field_validator("max_duration")
    @classmethod
    def _some_time(cls, value: float | None) -> float | None:
        if value == 0:
            raise ValueError("nothing finishes in no time: give a duration above 0.")
        return value


class PricesSection(Section):
    """Prices of machines from a catalog file, joined by the machine's name."""

    file: str = Field(description="a CSV file in the format of SkyPilot's catalogs")
    region: str | None = Field(default=None, description="needed when the file has several")
    spot: bool = Field(default=False, description="spot prices instead of on-demand prices")
    machine: str = Field("instance_type", description="the parameter that names the machine")


class ExecutorSection(Section):
    """Where trials run. Further fields belong to the executor, which checks them by itself (`lynceus plugins` lists executors)."""

    model_config = ConfigDict(extra="allow")

    kind: str = Field(
        default="local", description="local: processes of this machine; slurm, ray, skypilot, or a plugin's name"
    )
    run_directory: str = Field(default=".lynceus", description="where outputs of trials are kept, beside the job file")

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if isinstance(value, str):
            return {"kind": value}
        if isinstance(value, dict) and "type" in value:
            if "kind" in value:
                raise ValueError("it has both kind and type: keep kind.")
            return {"kind" if name == "type" else name: one for name, one in value.items()}
        return value


Run = Annotated[
    str | list[str],
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {"type": ["string", "number"]}, "minItems": 1},
                {"type": "string", "minLength": 1},
            ],
            "description": "a list of arguments, or a script",
        }
    ),
]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
