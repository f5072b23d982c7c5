"""Typed answers as JSON values."""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import Any

VERSION = 2
"""Of the documents of pages."""

Document = dict[str, Any]
"""A JSON object."""


def to_json(value: Any) -> Any:
    """The value with dataclasses as objects and enumerations as strings; null for infinite numbers and NaN, which JSON lacks.

    >>> to_json({"a": (1.0, float("inf"))})
    {'a': [1.0, None]}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(inner) for inner in value]
    if isinstance(value, enum.StrEnum):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def page_document(kind: str, fields: Mapping[str, Any]) -> Document:
    """A document of a page, with its version and kind."""
    document: Document = to_json({"v": VERSION, "kind": kind, **fields})
    return document


def short(value: float | None) -> float | None:
    """A number with nine significant digits: enough for any chart, in half the bytes.

    >>> short(1 / 3), short(float("nan")), short(None)
    (0.333333333, None, None)
    """
    return None if value is None or not math.isfinite(value) else float(f"{value:.9g}")
