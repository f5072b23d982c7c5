"""Policies that other packages offer, in the entry point group `lynceus.policies`.

An entry point names a `PolicyPlugin`. Looking entry points up and importing what they name takes time, so plugins are only loaded
for a name that is not built in, and for listings.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from lynceus.errors import InputError
from lynceus.policy.policy import Policy
from lynceus.policy.timeouts.timeout import Timeout

GROUP = "lynceus.policies"

FormerFields = Mapping[tuple[str, str, object], Mapping[str, object]]
"""(kind, field, value) as an earlier version wrote it → the fields that replace this one; a `kind` among them replaces the kind."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table of presets."""

    summary: str
    make: Callable[[int | None, Timeout | None], Policy]
    """(look-ahead depth, timeout) → policy; None for the default of this row."""


@dataclass(frozen=True, eq=False, slots=True)
class PolicyPlugin:
    """Presets, timeouts and parts of policies that a package adds."""

    presets: Mapping[str, Row] = field(default_factory=dict)
    """By the name that users write."""
    timeouts: Mapping[str, Timeout] = field(default_factory=dict)
    """By the name that users write."""
    parts: Mapping[Any, tuple[type, ...]] = field(default_factory=dict)
    """Interface → classes that policy files can name, each under its class name in kebab case."""
    former_names: Mapping[str, str] = field(default_factory=dict)
    """Kinds and fields as earlier versions named them → current."""
    former_fields: FormerFields = field(default_factory=dict)


@cache
def policy_plugins() -> tuple[PolicyPlugin, ...]:
    """All installed plugins, in the order of their names."""
    found = []
    for point in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda point: point.name):
        try:
            plugin = point.load()
        except Exception as error:
            raise InputError(f"The policy plugin '{point.name}' ({point.value}) cannot be loaded: {error}.") from error
        if not isinstance(plugin, PolicyPlugin):
            raise InputError(f"The policy plugin '{point.name}' ({point.value}) is not a PolicyPlugin.")
        found.append(plugin)
    return tuple(found)
