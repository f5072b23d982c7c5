"""A pruner that ends trials at the timeout which Lynceus gave them."""

from __future__ import annotations

from datetime import datetime

from optuna.pruners import BasePruner
from optuna.study import Study
from optuna.trial import FrozenTrial

from lynceus.integrations.optuna.attributes import RUNTIME_S, timeout_s


class TimeoutPruner(BasePruner):
    """Prunes a trial that has run for its timeout: by its user attribute `runtime_s` where it tells that, or by the clock.

    `also` is another pruner that may prune earlier, such as Optuna's MedianPruner.
    """

    def __init__(self, also: BasePruner | None = None) -> None:
        self._also = also

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether the trial should end now."""
        limit_s = timeout_s(trial.user_attrs)
        if limit_s is not None and ran_s(trial) >= limit_s:
            return True
        return self._also is not None and self._also.prune(study, trial)


def ran_s(trial: FrozenTrial) -> float:
    """How long a trial that runs has run."""
    if RUNTIME_S in trial.user_attrs:
        return float(trial.user_attrs[RUNTIME_S])
    began = trial.datetime_start
    return 0.0 if began is None else (datetime.now(began.tzinfo) - began).total_seconds()
