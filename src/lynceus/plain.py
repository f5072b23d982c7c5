"""Values that JSON can hold."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

Document = dict[str, Any]
"""A JSON object: what a page, a program or a notebook is given."""


def finite(value: Any) -> Any:
    """JSON has neither infinity nor NaN: null stands for 'unlimited' and 'not known'.

    >>> finite({"a": (1.0, float("inf"))})
    {'a': [1.0, None]}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: finite(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def short(value: float | None) -> float | None:
    """A number with nine significant digits: enough for any chart, and half the bytes of an exact one.

    >>> short(1 / 3), short(float("nan")), short(None)
    (0.333333333, None, None)
    """
    return None if value is None or not math.isfinite(value) else float(f"{value:.9g}")
