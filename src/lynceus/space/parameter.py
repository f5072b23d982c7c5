"""Parameters: what a configuration chooses, each with the finite list of values it may take."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lynceus.errors import InputError, shown
from lynceus.space.column import Scalar, is_number, listed, plain

MOST_VALUES = 1_000_000
"""The largest number of values of a parameter."""


@dataclass(frozen=True)
class Categorical:
    """Names without an order.

    >>> Categorical("disk", ["ssd", "hdd"]).values
    ('ssd', 'hdd')
    """

    name: str
    values: tuple[Scalar, ...]
    """Texts, numbers or booleans; any sequence is accepted and kept as a tuple."""
    when: str | None = None
    """An expression over earlier parameters; where it is false this parameter is inactive."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_when(self.name, self.when)
        object.__setattr__(self, "values", _distinct(self.name, self.values))


@dataclass(frozen=True)
class Ordinal:
    """Values in a meaningful order: sizes by name, or numbers.

    >>> Ordinal("size", ["large", "xlarge", "2xlarge"]).values
    ('large', 'xlarge', '2xlarge')
    """

    name: str
    values: tuple[Scalar, ...]
    """In their order; numbers are modelled by their value, anything else by its position."""
    when: str | None = None
    """An expression over earlier parameters; where it is false this parameter is inactive."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_when(self.name, self.when)
        object.__setattr__(self, "values", _distinct(self.name, self.values))


@dataclass(frozen=True)
class Integer:
    """Whole numbers: a range with a step, a log range with a number of steps, or a list.

    >>> Integer("nodes", 2, 10, step=4).values
    (2, 6, 10)
    >>> Integer("batch", 16, 256, log=True, steps=5).values
    (16, 32, 64, 128, 256)
    >>> Integer("cores", values=[4, 8, 12]).values
    (4, 8, 12)
    """

    name: str
    low: int | None = None
    high: int | None = None
    """Reached when a whole number of steps ends there."""
    step: int | None = None
    """1 when neither ``step`` nor ``steps`` is given."""
    steps: int | None = None
    """How many values, spread evenly (on the log scale if ``log``) and rounded; equal ones are merged."""
    log: bool = False
    """Model the logarithm: doubling matters, not adding."""
    values: tuple[int, ...] = ()
    """Filled from the range when that is given."""
    when: str | None = None
    """An expression over earlier parameters; where it is false this parameter is inactive."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_when(self.name, self.when)
        values = _range_or_list(self, default_step=1)
        if any(isinstance(value, bool) or value != int(value) for value in values):
            odd = next(value for value in values if isinstance(value, bool) or value != int(value))
            raise InputError(
                f"Parameter {shown(self.name)}: {shown(odd)} is not a whole number; use a float parameter."
            )
        object.__setattr__(self, "values", tuple(int(value) for value in values))


@dataclass(frozen=True)
class Float:
    """Numbers: a range cut into steps, or a list.

    >>> Float("memory_share", 0.2, 0.8, step=0.2).values
    (0.2, 0.4, 0.6, 0.8)
    >>> Float("learning_rate", 1e-5, 1e-3, log=True, steps=3).values
    (1e-05, 0.0001, 0.001)
    """

    name: str
    low: float | None = None
    high: float | None = None
    """Reached when a whole number of steps ends there."""
    step: float | None = None
    steps: int | None = None
    """How many values, spread evenly (on the log scale if ``log``)."""
    log: bool = False
    """Model the logarithm: doubling matters, not adding."""
    values: tuple[float, ...] = ()
    """Filled from the range when that is given."""
    when: str | None = None
    """An expression over earlier parameters; where it is false this parameter is inactive."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_when(self.name, self.when)
        object.__setattr__(self, "values", tuple(float(value) for value in _range_or_list(self, default_step=None)))


Parameter = Categorical | Ordinal | Integer | Float


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.strip() or name != name.strip():
        raise InputError(f"A parameter's name is {shown(name)}, but a text without blanks around it is needed.")


def _check_when(name: str, when: object) -> None:
    if when is not None and (not isinstance(when, str) or not when.strip()):
        raise InputError(
            f"Parameter {shown(name)}: 'when' is {shown(when)}, but an expression over earlier parameters is needed, "
            "such as \"engine == 'spark'\"."
        )


def _distinct(name: str, values: object) -> tuple[Scalar, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"Parameter {shown(name)}: values is {shown(values)}, but a list is needed: [a, b, ...].")
    kept: dict[Scalar, Scalar] = {}
    for value in values:
        scalar = plain(value, f"Parameter {shown(name)}: a value")
        if scalar is None:
            raise InputError(
                f"Parameter {shown(name)}: a value is empty (null), which means 'inactive': "
                "give it a name, or use 'when'."
            )
        if scalar in kept:
            twin = "twice" if type(kept[scalar]) is type(scalar) else f"and equals {shown(kept[scalar])}"
            raise InputError(f"Parameter {shown(name)}: the value {shown(scalar)} is listed {twin}; keep one of them.")
        kept[scalar] = scalar
    if not kept:
        raise InputError(f"Parameter {shown(name)} has no values: list at least one.")
    return tuple(kept)


def _range_or_list(parameter: Integer | Float, default_step: int | None) -> Sequence[float]:
    """The values of a numeric parameter, from its list or its range."""
    name, low, high = shown(parameter.name), parameter.low, parameter.high
    ranged = any(given is not None for given in (low, high, parameter.step, parameter.steps))
    if parameter.values != () and not ranged:
        return _numbers(parameter, _distinct(parameter.name, parameter.values))
    if low is None or high is None:
        raise InputError(f"Parameter {name} has no values: give low and high, or values: [...].")
    values = _ranged(parameter, _number(name, "low", low), _number(name, "high", high), default_step)
    # a copy by dataclasses.replace brings the range together with the values it gave
    if parameter.values != () and tuple(parameter.values) != tuple(values):
        raise InputError(f"Parameter {name} has both values and a range: keep either values, or low and high.")
    return values


def _numbers(parameter: Integer | Float, values: Sequence[Scalar]) -> Sequence[float]:
    name = shown(parameter.name)
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(values):
        odd = next(value for value in values if not is_number(value))
        raise InputError(f"Parameter {name}: {shown(odd)} is not a number; use a categorical or an ordinal parameter.")
    if parameter.log and min(numbers) <= 0:
        raise InputError(f"Parameter {name} has log: true and the value {min(numbers)}; values above 0 are needed.")
    return numbers


def _ranged(parameter: Integer | Float, low: float, high: float, default_step: int | None) -> Sequence[float]:
    name = shown(parameter.name)
    if low > high:
        raise InputError(f"Parameter {name}: low {low} is above high {high}; exchange them.")
    if parameter.log and low <= 0:
        raise InputError(f"Parameter {name} has log: true and low {low}; a log range starts above 0.")
    if parameter.step is not None and parameter.steps is not None:
        raise InputError(f"Parameter {name} has both step and steps: keep one of them.")
    if parameter.log and parameter.steps is None:
        raise InputError(f"Parameter {name}: a log range needs steps, the number of values (for example steps: 5).")
    if parameter.steps is not None:
        return _spread(parameter, low, high, parameter.steps)
    if parameter.step is None and default_step is None:
        raise InputError(
            f"Parameter {name}: give step (the distance of values) or steps (how many), or list the values."
        )
    step = _number(name, "step", default_step if parameter.step is None else parameter.step)
    if step <= 0:
        raise InputError(f"Parameter {name}: step {step} must be above 0.")
    # A millionth of a step forgives 0.8 - 0.2 = 0.6000000000000001; no real value is that near to the next one.
    count = int(min((high - low) / step + 1e-6, MOST_VALUES)) + 1
    _check_count(name, count)
    return [_tidy(low + index * step) if isinstance(parameter, Float) else low + index * step for index in range(count)]


def _spread(parameter: Integer | Float, low: float, high: float, steps: int) -> Sequence[float]:
    name = shown(parameter.name)
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise InputError(f"Parameter {name}: steps is {shown(steps)}, but a whole number of at least 1 is needed.")
    _check_count(name, steps)
    if steps == 1 and low != high:
        raise InputError(f"Parameter {name}: steps: 1 cannot reach from low {low} to high {high}; use at least 2.")
    spread = np.geomspace(low, high, steps) if parameter.log else np.linspace(low, high, steps)
    if isinstance(parameter, Integer):
        if low != int(low) or high != int(high):
            raise InputError(
                f"Parameter {name}: low {low} and high {high} must be whole numbers; use a float parameter."
            )
        return list(dict.fromkeys(round(value) for value in spread.tolist()))
    values = [_tidy(value) for value in spread.tolist()]
    if any(left == right for left, right in pairwise(values)):
        raise InputError(f"Parameter {name}: {steps} steps do not fit between low {low} and high {high}; use fewer.")
    return values


def _number(name: str, field: str, value: object) -> float:
    scalar = plain(value, f"Parameter {name}: {field}")
    if isinstance(scalar, bool) or not isinstance(scalar, int | float):
        raise InputError(f"Parameter {name}: {field} is {shown(value)}, but a number is needed.")
    return scalar


def _check_count(name: str, count: int) -> None:
    if count > MOST_VALUES:
        raise InputError(f"Parameter {name} has more than {MOST_VALUES:,} values: use a larger step or a list.")


def _tidy(value: float) -> float:
    """``value`` with 12 digits, so that 0.1 + 0.2 reads 0.3."""
    return float(f"{value:.12g}")


def values_listed(parameter: Parameter) -> str:
    """The values of a parameter for a message or a description."""
    return listed(parameter.values)
