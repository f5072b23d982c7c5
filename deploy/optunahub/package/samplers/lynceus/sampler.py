"""The sampler of the package `lynceus-opt`, under the name by which OptunaHub loads it."""

from lynceus.integrations.optuna import LynceusSampler, TimeoutPruner

__all__ = ["LynceusSampler", "TimeoutPruner"]
