"""The input of a run: numbers such as its size, and names, in which runs of one job differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lynceus.errors import InputError
from lynceus.problem.units import format_bytes, format_number, parse_quantity

SIZE = "size"
"""The number that is an amount of bytes: `size: 120 GB`."""
HOW_TO_WRITE = "write {size: 120 GB}, or several numbers such as {size: 120 GB, files: 4000}."
_MOST_FIELDS, _LONGEST = 16, 200
_SAME = 0.02
_BARE = 10_000.0
"""A size below it that is written without a unit is one whose unit was forgotten: no job reads so few bytes."""
_SMALLEST, _LARGEST = 1e-9, 1e30
"""Numbers beyond these are mistakes, and no model could compute with them."""


@dataclass(frozen=True)
class JobInput:
    """What a run reads. GB is 10⁹ bytes, GiB 2³⁰.

    >>> small = JobInput.read("120 GB")
    >>> small.numbers, str(small)
    ({'size': 120000000000.0}, '120 GB')
    >>> print(JobInput.read({"size": "2 GiB", "files": 4000, "video": "talk.mp4"}))
    2.15 GB, files 4000, video talk.mp4
    """

    values: tuple[tuple[str, float | str], ...] = ()
    """By name, sorted."""

    @classmethod
    def read(cls, given: object, where: str = "input") -> JobInput:
        """An input as users write it: `120 GB`, `size=120GB,files=4000`, or a mapping of numbers and names."""
        if isinstance(given, JobInput):
            return given
        if isinstance(given, str) and "=" in given:
            parts = [part.partition("=") for part in given.split(",") if part.strip()]
            given = {name.strip(): text.strip() for name, _, text in parts}
        if isinstance(given, str | int | float) and not isinstance(given, bool):
            given = {SIZE: given}
        if not isinstance(given, Mapping) or not given:
            raise InputError(f"{where}: got {str(given)[:60]!r}; {HOW_TO_WRITE}")
        if len(given) > _MOST_FIELDS:
            raise InputError(f"{where}: got {len(given)} fields; give at most {_MOST_FIELDS}.")
        return cls(
            tuple(sorted((_name(name, where), _value(str(name), value, where)) for name, value in given.items()))
        )

    @cached_property
    def numbers(self) -> dict[str, float]:
        """Its numbers by name; the size in bytes."""
        return {name: value for name, value in self.values if not isinstance(value, str)}

    @cached_property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """Its names, which have no order and no size."""
        return tuple((name, value) for name, value in self.values if isinstance(value, str))

    def equals(self, other: JobInput) -> bool:
        """Whether both are the same for a run: the same names, and numbers that differ by less than 2 %, as runs do anyway."""
        if self.texts != other.texts or self.numbers.keys() != other.numbers.keys():
            return False
        return all(math.isclose(value, other.numbers[name], rel_tol=_SAME) for name, value in self.numbers.items())

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return dict(self.values)

    @classmethod
    def of_record(cls, record: Mapping[str, Any] | None) -> JobInput | None:
        """The input of a record; None without one."""
        return None if record is None else cls(tuple(sorted(record.items())))

    def grown(self, factor: float) -> JobInput:
        """The same input with a size so many times as large."""
        return JobInput(
            tuple(
                (name, value * factor if name == SIZE and not isinstance(value, str) else value)
                for name, value in self.values
            )
        )

    def __bool__(self) -> bool:
        return bool(self.values)

    def __str__(self) -> str:
        ordered = sorted(self.values, key=lambda one: one[0] != SIZE)
        return ", ".join(_shown(name, value) for name, value in ordered) or "no input"


def check_unit(number: float | None, text: str, where: str) -> None:
    """Refuse a size that was meant in another unit than bytes; `text` is what the user wrote.

    >>> check_unit(50.0, "50", "--input")
    Traceback (most recent call last):
        ...
    lynceus.errors.InputError: --input: size is '50', its unit is missing; write '50 MB', or '50 B' if it is bytes.
    """
    bare = text.strip()
    if number is not None and 0 < number < _BARE and not bare[-1:].isalpha():
        raise InputError(
            f"{where}: size is {bare!r}, its unit is missing; write '{bare} MB', or '{bare} B' if it is bytes."
        )


def _name(name: object, where: str) -> str:
    if not isinstance(name, str) or not name.isidentifier():
        raise InputError(f"{where}: {name!r} is no name; use letters, digits and _, as in {{size: 120 GB}}.")
    return name


def _value(name: str, value: object, where: str) -> float | str:
    """A number above 0, perhaps with a unit of bytes; or a name."""
    if isinstance(value, str):
        number = parse_quantity(value)
        if name == SIZE:
            check_unit(number, value, where)
        if number is None and name != SIZE and 0 < len(value) <= _LONGEST and value.isprintable():
            return value
    else:
        number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if number is None or not _SMALLEST <= number <= _LARGEST:
        wanted = (
            "an amount such as 120 GB (10⁹ bytes each) or 120 GiB (2³⁰)"
            if name == SIZE
            else "a number above 0, or a name"
        )
        if name == SIZE and isinstance(value, str) and value.rstrip().endswith("b"):
            wanted += "; a small b would mean bits"
        raise InputError(f"{where}: {name} is {str(value)[:60]!r}; give {wanted}.")
    return float(number)


def _shown(name: str, value: float | str) -> str:
    if name == SIZE and not isinstance(value, str):
        return format_bytes(value)
    return f"{name} {value if isinstance(value, str) else format_number(value)}"
