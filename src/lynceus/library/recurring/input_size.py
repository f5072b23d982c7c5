"""The size of a run's input, as users write it."""

from __future__ import annotations

from lynceus.errors import InputError
from lynceus.problem.units import parse_quantity


def parse_size(given: float | str | None, where: str = "input") -> float | None:
    """The size of an input, from a number or a text such as `120 GB` (10⁹ bytes each) or `120 GiB` (2³⁰).

    >>> parse_size("120GB"), parse_size("2 GiB"), parse_size(None)
    (120000000000.0, 2147483648.0, None)
    """
    if given is None:
        return None
    size = parse_quantity(given) if isinstance(given, str) else float(given)
    if size is None or not 0 < size < float("inf"):
        raise InputError(
            f"{where} is {str(given)[:60]!r}, but a size above 0 such as '120 GB' (10⁹ bytes each) or '120 GiB' (2³⁰) is needed."
        )
    return size
