"""The size of a run's input, as users write it."""

from __future__ import annotations

from lynceus.errors import InputError
from lynceus.problem.job_input import SIZE, JobInput
from lynceus.problem.units import parse_quantity


def parse_size(given: object, where: str = "input") -> float | None:
    """The size of an input in bytes, from a number or a text such as `120 GB` (10⁹ bytes each) or `120 GiB` (2³⁰); None for None.

    An empty input is one without a known size: a day without data must not keep a job from running, and says nothing of other days.

    >>> parse_size("120GB"), parse_size({"size": "2 GiB", "files": 4000}), parse_size("0 B"), parse_size(None)
    (120000000000.0, 2147483648.0, None, None)
    """
    if given is None or given == 0 or (isinstance(given, str) and parse_quantity(given) == 0):
        return None
    found = JobInput.read(given, where)
    if SIZE not in found.numbers:
        raise InputError(f"{where}: got {str(found)[:60]!r} without a size; give one, such as 120 GB.")
    return found.numbers[SIZE]
