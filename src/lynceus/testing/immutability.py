"""Detects changes of a state: parts must not modify their arguments."""

from __future__ import annotations

import dataclasses

import numpy as np

from lynceus.models.state import State


def fingerprint(state: State) -> tuple[object, ...]:
    """Every array of a state as bytes, and its other fields as they are."""
    parts: list[object] = []
    for field in dataclasses.fields(state):
        value = getattr(state, field.name)
        if isinstance(value, np.ndarray):
            parts.append((field.name, value.shape, value.tobytes()))
        elif field.name == "worst":
            parts.append((field.name, repr(value)))
        else:
            parts.append((field.name, id(value) if field.name == "problem" else repr(value)))
    return tuple(parts)
