"""Executors by name: those that come with Lynceus, and those that other packages offer by the entry point group `lynceus.executors`."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lynceus.errors import InputError
from lynceus.executor.plugin import Plugin
from lynceus.space.column import nearest

GROUP = "lynceus.executors"
BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "local": "lynceus.executor.local:PLUGIN",
        "slurm": "lynceus.executor.slurm:PLUGIN",
        "ray": "lynceus.executor.on_ray.executor:PLUGIN",
        "skypilot": "lynceus.executor.skypilot:PLUGIN",
    }
)
"""Written as an entry point would write them."""


@dataclass(frozen=True)
class Found:
    """A plugin as `lynceus plugins` shows it."""

    name: str
    package: str
    version: str
    about: str = ""
    problem: str = ""
    """Why it cannot be used, in a sentence; empty when it can."""


def executor_plugin(name: str) -> Plugin:
    """The plugin of that name.

    >>> executor_plugin("lokal")
    Traceback (most recent call last):
        ...
    lynceus.errors.InputError: There is no executor 'lokal'. Did you mean 'local'?
    """
    places = _places()
    if name not in places:
        hint = nearest(name, places) or f" Known are {', '.join(places)}."
        raise InputError(f"There is no executor {name!r}.{hint}")
    package, version, place = places[name]
    try:
        return _loaded(place)
    except Exception as error:
        raise InputError(f"The executor {name!r} of {package} {version} cannot be used: {_sentence(error)}") from error


def executor_plugins() -> list[Found]:
    """All plugins, usable or not, in the order of their names; the built-in ones first."""
    found = []
    for name, (package, version, place) in _places().items():
        try:
            found.append(Found(name, package, version, about=_loaded(place).about))
        except Exception as error:
            found.append(Found(name, package, version, problem=_sentence(error)))
    return found


def _places() -> dict[str, tuple[str, str, str]]:
    """Name → package, version and `module:attribute`. Nobody can take the name of a built-in one."""
    version = importlib.metadata.version("lynceus")
    places = {name: ("lynceus", version, place) for name, place in BUILT_IN.items()}
    for point in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda point: point.name):
        package = ("unknown", "?") if point.dist is None else (point.dist.name, point.dist.version)
        places.setdefault(point.name, (*package, point.value))
    return places


def _loaded(place: str) -> Plugin:
    module, _, attribute = place.partition(":")
    loaded = getattr(importlib.import_module(module), attribute)
    if not isinstance(loaded, Plugin):
        raise TypeError(f"{place} is a {type(loaded).__name__}, not a lynceus.executor.plugin.Plugin")
    return loaded


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith(".") else f"{text}."
