"""Whether a value is what it was: parts promise to change nothing that they are given."""

from __future__ import annotations

import dataclasses

import numpy as np

from lynceus.situation import Situation


def fingerprint(situation: Situation) -> tuple[object, ...]:
    """Every array of a situation as bytes, and its other fields as they are."""
    parts: list[object] = []
    for field in dataclasses.fields(situation):
        value = getattr(situation, field.name)
        if isinstance(value, np.ndarray):
            parts.append((field.name, value.shape, value.tobytes()))
        elif field.name == "worst":
            parts.append((field.name, repr(value)))
        else:
            parts.append((field.name, id(value) if field.name == "problem" else repr(value)))
    return tuple(parts)
