"""The configuration used until now, with which the best one is compared."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lynceus.errors import InputError, hint, shown
from lynceus.problem.units import parse_duration

if TYPE_CHECKING:
    from lynceus.space.table import Space

FIELDS = ("config", "runtime", "measure")
"""Fields of a baseline that is more than a configuration."""
MEASURED_TWICE = "runtime says what measure would find out; give one of them."


@dataclass(frozen=True, slots=True)
class Baseline:
    """The configuration used until now. Without `runtime_s` and `measure`, a model predicts what a run of it costs."""

    row: int
    """Position in the table of configurations."""
    runtime_s: float | None = None
    """Seconds of a run, if they are known."""
    measure: bool = False
    """Whether the first trial of the study runs it."""

    def __post_init__(self) -> None:
        if self.runtime_s is not None and not (math.isfinite(self.runtime_s) and self.runtime_s > 0):
            raise InputError(f"baseline: runtime is {self.runtime_s!r} seconds; give the time of a run, such as '41m'.")
        if self.runtime_s is not None and self.measure:
            raise InputError(f"baseline: {MEASURED_TWICE}")

    @classmethod
    def read(cls, space: Space, given: Baseline | Mapping[str, Any]) -> Baseline:
        """What a program gives: a configuration, or a mapping with `config` and perhaps `runtime` or `measure`."""
        if isinstance(given, Baseline):
            return given
        if not isinstance(given, Mapping):
            raise InputError(
                f"baseline: got {shown(given)}; give a configuration such as {{'nodes': 4}}, or {{'config': …, 'runtime': '41m'}}."
            )
        if not has_fields(given, [parameter.name for parameter in space.parameters]):
            given = {"config": given}
        for name in given:
            if name not in FIELDS:
                raise InputError(f"baseline: there is no field {shown(name)}{hint(str(name), FIELDS)}")
        config, runtime, measure = (given.get(name) for name in FIELDS)
        if not isinstance(config, Mapping):
            raise InputError(f"baseline: config is {shown(config)}; give a configuration such as {{'nodes': 4}}.")
        if measure is not None and not isinstance(measure, bool):
            raise InputError(f"baseline: measure is {shown(measure)}; give True or False.")
        try:
            row = space.row(config)
        except InputError as error:
            raise InputError(f"baseline: {error}") from None
        seconds = None if runtime is None else parse_duration(runtime, "baseline: runtime")
        return cls(row, seconds, bool(measure))


def has_fields(given: Mapping[str, Any], parameters: Collection[str]) -> bool:
    """Whether a baseline is written with fields, not as a configuration alone: no value of a parameter is a mapping.

    >>> has_fields({"nodes": 4}, ["nodes"]), has_fields({"config": {"nodes": 4}}, ["nodes"])
    (False, True)
    """
    if any(isinstance(value, Mapping) for value in given.values()):
        return True
    return any(name in given and name not in parameters for name in FIELDS)
