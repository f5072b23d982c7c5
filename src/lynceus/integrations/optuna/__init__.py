"""Lynceus inside Optuna: a sampler, a pruner, and the exchange of studies.

import optuna
from lynceus.integrations.optuna import LynceusSampler, TimeoutPruner

sampler = LynceusSampler(price="0.1 * nodes", constraints=["runtime <= 20m"], budget="$5")
study = optuna.create_study(sampler=sampler, pruner=TimeoutPruner())
study.optimize(objective, callbacks=[sampler.stop_when_over])
"""

from lynceus.integrations.optuna.pruner import TimeoutPruner
from lynceus.integrations.optuna.sampler import LynceusSampler, SearchOverError

__all__ = ["LynceusSampler", "SearchOverError", "TimeoutPruner"]
