"""What Lynceus and an Optuna trial tell each other, as attributes of the trial."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TIMEOUT_S = "lynceus:timeout_s"
"""User attribute: stop the run after so many seconds; absent: let it finish."""
DEADLINE_S = "lynceus:deadline_s"
"""User attribute: the time that a run may take in production; absent without a constraint on time."""
PRICE = "lynceus:price_usd_per_hour"
"""User attribute: dollars per hour of the configuration."""
WHY = "lynceus:why"
"""User attribute: why this configuration, in one clause."""

RUNTIME_S = "runtime_s"
"""User attribute that the program sets: the running time; without it, the time between Optuna's ask and tell counts."""
CHARGED_USD = "charged_usd"
"""User attribute that the program may set: the real bill."""
FAILURE_REASON = "failure_reason"
"""User attribute that the program may set of a trial that fails: `infra`, `preempted`, `oom`, `job` or `user`."""

ORDER = "lynceus:order"
"""System attribute: what was decided, with the configuration in Optuna's internal numbers."""
RAN_S = "lynceus:ran_s"
"""System attribute: the running time as it was told, or as Optuna's clock saw it."""


def timeout_s(attributes: Mapping[str, Any]) -> float | None:
    """The timeout among the user attributes of a trial; None: let it finish."""
    found = attributes.get(TIMEOUT_S)
    return None if found is None else float(found)
