"""Lynceus finds the cheapest configuration of a recurring cloud job that is still on time.

    import lynceus

    space = lynceus.Space.build(
        [lynceus.Categorical("vm", ["small", "large"]), lynceus.Integer("nodes", 2, 8)],
        price="nodes * (0.1 if vm == 'small' else 0.3)",
    )
    study = lynceus.create_study(space=space, constraints=["runtime <= 45m"], budget="25 USD")

Names are loaded when they are used, so that a job which only calls `lynceus.report` pays for nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lynceus.client import Client as Client
    from lynceus.client import RemoteStudy as RemoteStudy
    from lynceus.durable import open_study as open_study
    from lynceus.errors import InfrastructureError as InfrastructureError
    from lynceus.errors import InputError as InputError
    from lynceus.errors import LynceusError as LynceusError
    from lynceus.errors import MissingExtraError as MissingExtraError
    from lynceus.history import Reason as Reason
    from lynceus.policy import Policy as Policy
    from lynceus.policy import Recommendation as Recommendation
    from lynceus.policy import preset as preset
    from lynceus.problem import Budget as Budget
    from lynceus.problem import Goal as Goal
    from lynceus.problem import Limit as Limit
    from lynceus.problem import Problem as Problem
    from lynceus.problem import Tariff as Tariff
    from lynceus.reporting import report as report
    from lynceus.space import Categorical as Categorical
    from lynceus.space import Computed as Computed
    from lynceus.space import Float as Float
    from lynceus.space import Integer as Integer
    from lynceus.space import Joined as Joined
    from lynceus.space import Mapped as Mapped
    from lynceus.space import Ordinal as Ordinal
    from lynceus.space import Space as Space
    from lynceus.study import Study as Study
    from lynceus.study import create_study as create_study
    from lynceus.trial import SeenTrial as SeenTrial
    from lynceus.trial import Trial as Trial
    from lynceus.trial import TrialState as TrialState

_HOMES = {
    "client": ("Client", "RemoteStudy"),
    "durable": ("open_study",),
    "errors": ("InfrastructureError", "InputError", "LynceusError", "MissingExtraError"),
    "history": ("Reason",),
    "policy": ("Policy", "Recommendation", "preset"),
    "problem": ("Budget", "Goal", "Limit", "Problem", "Tariff"),
    "reporting": ("report",),
    "space": ("Categorical", "Computed", "Float", "Integer", "Joined", "Mapped", "Ordinal", "Space"),
    "study": ("Study", "create_study"),
    "trial": ("SeenTrial", "Trial", "TrialState"),
}
"""Where each public name lives."""

__all__ = [
    "Budget",
    "Categorical",
    "Client",
    "Computed",
    "Float",
    "Goal",
    "InfrastructureError",
    "InputError",
    "Integer",
    "Joined",
    "Limit",
    "LynceusError",
    "Mapped",
    "MissingExtraError",
    "Ordinal",
    "Policy",
    "Problem",
    "Reason",
    "Recommendation",
    "RemoteStudy",
    "SeenTrial",
    "Space",
    "Study",
    "Tariff",
    "Trial",
    "TrialState",
    "create_study",
    "open_study",
    "preset",
    "report",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"lynceus.{module}"), name)
    raise AttributeError(f"module 'lynceus' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
