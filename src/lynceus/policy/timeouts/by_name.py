"""Timeouts by the names that the command line and job files use."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lynceus.errors import InputError, did_you_mean
from lynceus.policy.plugins import policy_plugins
from lynceus.policy.timeouts.censoring import Discard, HighestCost, LinearProgress, LowerBound, TruncatedMean, WholeRun
from lynceus.policy.timeouts.rules import FastestTimeout, IncumbentTimeout, NoTimeout
from lynceus.policy.timeouts.timeout import Timeout

TIMEOUTS: Mapping[str, Timeout] = MappingProxyType(
    {
        "none": Timeout(NoTimeout(), LowerBound()),
        "tg": Timeout(IncumbentTimeout(), TruncatedMean()),
        "tg-first": Timeout(IncumbentTimeout(first_runs_too=True), TruncatedMean()),
        "tg-30s": Timeout(IncumbentTimeout(every_s=30.0), TruncatedMean()),
        "linear": Timeout(IncumbentTimeout(every_s=30.0), LinearProgress()),
        "max-cost": Timeout(IncumbentTimeout(), HighestCost()),
        "no-info": Timeout(IncumbentTimeout(slack=2.0), Discard()),
        "ituned": Timeout(FastestTimeout(), Discard()),
        "ideal": Timeout(IncumbentTimeout(), WholeRun()),
        "capped": Timeout(IncumbentTimeout(first_runs_too=True), LowerBound()),
    }
)
"""The built-in timeouts."""


def all_timeouts() -> dict[str, Timeout]:
    """Every timeout by name: the built-in ones first, then those of plugins."""
    found = dict(TIMEOUTS)
    for plugin in policy_plugins():
        for name, timeout in plugin.timeouts.items():
            found.setdefault(name, timeout)
    return found


def timeout_named(name: str) -> Timeout:
    """The timeout of that name. Plugins are only loaded for names that are not built in.

    >>> timeout_named("tg-30s").rule.every_s
    30.0
    """
    if name in TIMEOUTS:
        return TIMEOUTS[name]
    known = all_timeouts()
    if name not in known:
        raise InputError(f"timeout: there is no '{name}'; choose one of {', '.join(known)}.{did_you_mean(name, known)}")
    return known[name]
