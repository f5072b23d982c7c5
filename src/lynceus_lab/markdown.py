"""Numbers and table rows as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

_PERCENT = " %"


def header(columns: Sequence[str]) -> Iterator[str]:
    """The first two lines of a table."""
    yield row(columns)
    yield "|" + "---|" * len(columns)


def row(cells: Sequence[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def interval(numbers: Sequence[float | str], *, percent: bool = False) -> str:
    """`2.3 [1.9, 2.8]`, or `230 % [190, 280]`; the number alone where its ends are equal or unknown."""
    value, low, high = numbers
    if low == high or math.isnan(float(low)):
        return number(value, percent=percent)
    ends = (number(end, percent=percent).removesuffix(_PERCENT) for end in (low, high))
    return f"{number(value, percent=percent)} [{', '.join(ends)}]"


def number(value: float | str, *, percent: bool = False) -> str:
    """Three digits; ∞ for what was not reached, a dash for NaN.

    >>> number(0.01234), number(1234.5), number("inf"), number("nan")
    ('0.0123', '1234', '∞', '–')
    >>> number(0.01234, percent=True)
    '1.23 %'
    """
    found = float(value)
    if math.isnan(found):
        return "–"
    if math.isinf(found):
        return "∞" if found > 0 else "−∞"
    if percent:
        return number(100 * found) + _PERCENT
    return f"{found:.0f}" if math.fabs(found) >= 1000 else f"{found:.3g}"


def of_jobs(counted: int, asked: int) -> str:
    """The number of jobs behind a ratio, where some are left out."""
    return f" ({counted} of {asked} jobs)" if counted < asked else ""
