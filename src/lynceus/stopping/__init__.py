"""Reasons to end an exploration, each a sentence. Budget, limits on trials and an exhausted space need no rule: `decide` knows them."""

from lynceus.stopping.rules import (
    AllOf,
    AnyOf,
    FutureUses,
    GittinsStop,
    MaxTrials,
    Never,
    ProteusStop,
    SmallGain,
    TotalBudget,
)

__all__ = [
    "AllOf",
    "AnyOf",
    "FutureUses",
    "GittinsStop",
    "MaxTrials",
    "Never",
    "ProteusStop",
    "SmallGain",
    "TotalBudget",
]
