"""Executors by name: the built-in ones, and those that other packages offer in the entry point group `lynceus.executors`."""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lynceus.errors import InputError, did_you_mean
from lynceus.executors.plugin import Plugin
from lynceus.version import __version__

GROUP = "lynceus.executors"
BUILT_IN: Mapping[str, str] = MappingProxyType(
    {
        "local": "lynceus.executors.local:PLUGIN",
        "slurm": "lynceus.executors.slurm:PLUGIN",
        "ray": "lynceus.executors.ray.executor:PLUGIN",
        "skypilot": "lynceus.executors.skypilot:PLUGIN",
        "kubernetes": "lynceus.executors.kubernetes:PLUGIN",
    }
)
"""`module:attribute`, as in an entry point."""


@dataclass(frozen=True)
class InstalledPlugin:
    """A plugin as `lynceus plugins` shows it."""

    name: str
    package: str
    version: str
    about: str = ""
    problem: str = ""
    """Why it cannot be used, in a sentence; empty if it can."""
    not_found: str = ""
    """What it needs on this machine, unless the job file names another, and does not find; empty if all is there."""


def executor_plugin(name: str) -> Plugin:
    """The plugin of that name.

    >>> executor_plugin("lokal")
    Traceback (most recent call last):
        ...
    lynceus.errors.InputError: There is no executor 'lokal'. Did you mean 'local'?
    """
    entries = _entries()
    if name not in entries:
        hint = did_you_mean(name, entries) or f" Choose one of {', '.join(entries)}."
        raise InputError(f"There is no executor {name!r}.{hint}")
    package, version, target = entries[name]
    try:
        return _load(target)
    except Exception as error:
        raise InputError(f"The executor {name!r} of {package} {version} cannot be used: {_sentence(error)}") from error


def executor_plugins() -> list[InstalledPlugin]:
    """All plugins, usable or not: the built-in ones first, then the others by name."""
    found = []
    for name, (package, version, target) in _entries().items():
        try:
            plugin = _load(target)
            if plugin.require is not None:
                plugin.require()
            not_found = "" if plugin.look_for is None else plugin.look_for()
            found.append(InstalledPlugin(name, package, version, about=plugin.about, not_found=not_found))
        except Exception as error:
            found.append(InstalledPlugin(name, package, version, problem=_sentence(error)))
    return found


def _entries() -> dict[str, tuple[str, str, str]]:
    """Name → package, version and `module:attribute`. Other packages cannot replace a built-in executor."""
    entries = {name: ("lynceus", __version__, target) for name, target in BUILT_IN.items()}
    for point in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda point: point.name):
        package = ("unknown", "?") if point.dist is None else (point.dist.name, point.dist.version)
        entries.setdefault(point.name, (*package, point.value))
    return entries


def _load(target: str) -> Plugin:
    module, _, attribute = target.partition(":")
    loaded = getattr(importlib.import_module(module), attribute)
    if not isinstance(loaded, Plugin):
        raise TypeError(f"{target} is a {type(loaded).__name__}, not a lynceus.executors.plugin.Plugin")
    return loaded


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith(".") else f"{text}."
