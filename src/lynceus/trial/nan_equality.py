"""Equality of values that may be NaN, the same in every version of Python."""

from __future__ import annotations

from dataclasses import fields


class NanEquality:
    """A base of dataclasses with `eq=False`: two are equal if their fields are, also where both hold the same NaN.

    Dataclasses of Python up to 3.12 compare tuples of their fields, in which an object equals itself; those of later versions compare field
    by field, so that a value with `math.nan` would not be equal to its copy.

    >>> import dataclasses, math
    >>> @dataclasses.dataclass(frozen=True, eq=False)
    ... class Gain(NanEquality):
    ...     usd: float = math.nan
    >>> Gain() == Gain(), Gain() == Gain(1.0), hash(Gain()) == hash(Gain())
    (True, False, True)
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return _compared(self) == _compared(other)

    def __hash__(self) -> int:
        return hash(_compared(self))


def _compared(value: object) -> tuple[object, ...]:
    return tuple(getattr(value, one.name) for one in fields(value) if one.compare)  # type: ignore[arg-type]
