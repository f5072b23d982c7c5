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

from lynceus.version import __version__ as __version__

if TYPE_CHECKING:
    from lynceus.analysis.at_input import best_for_input as best_for_input
    from lynceus.analysis.time_estimator import time_estimator as time_estimator
    from lynceus.client.client import Client as Client
    from lynceus.client.job import RemoteJob as RemoteJob
    from lynceus.client.remote import RemoteStudy as RemoteStudy
    from lynceus.client.report import report as report
    from lynceus.errors import InfrastructureError as InfrastructureError
    from lynceus.errors import InputError as InputError
    from lynceus.errors import LynceusError as LynceusError
    from lynceus.errors import MissingExtraError as MissingExtraError
    from lynceus.library.load_study import load_study as load_study
    from lynceus.library.recurring.recurring_job import RecurringJob as RecurringJob
    from lynceus.library.recurring.recurring_job import adopt_job as adopt_job
    from lynceus.library.recurring.recurring_job import load_job as load_job
    from lynceus.policy.policy import Policy as Policy
    from lynceus.policy.presets import preset as preset
    from lynceus.policy.recommendation import Recommendation as Recommendation
    from lynceus.policy.retries import RetryRules as RetryRules
    from lynceus.problem.baseline import Baseline as Baseline
    from lynceus.problem.billing import Billing as Billing
    from lynceus.problem.budget import Budget as Budget
    from lynceus.problem.future_use import FutureUse as FutureUse
    from lynceus.problem.job_input import JobInput as JobInput
    from lynceus.problem.objective import Constraint as Constraint
    from lynceus.problem.objective import Objective as Objective
    from lynceus.problem.problem import Problem as Problem
    from lynceus.space.derived import Computed as Computed
    from lynceus.space.derived import Joined as Joined
    from lynceus.space.derived import Mapped as Mapped
    from lynceus.space.parameter import Categorical as Categorical
    from lynceus.space.parameter import Float as Float
    from lynceus.space.parameter import Integer as Integer
    from lynceus.space.parameter import Ordinal as Ordinal
    from lynceus.space.table import Space as Space
    from lynceus.study.create import create_study as create_study
    from lynceus.study.stored import open_study as open_study
    from lynceus.study.study import Study as Study
    from lynceus.trial.outcome import FailureReason as FailureReason
    from lynceus.trial.trial import Trial as Trial
    from lynceus.trial.trial import TrialState as TrialState
    from lynceus.trial.trial import TrialSummary as TrialSummary

_HOMES = {
    "analysis.at_input": ("best_for_input",),
    "analysis.time_estimator": ("time_estimator",),
    "client.client": ("Client",),
    "client.job": ("RemoteJob",),
    "client.remote": ("RemoteStudy",),
    "client.report": ("report",),
    "errors": ("InfrastructureError", "InputError", "LynceusError", "MissingExtraError"),
    "library.load_study": ("load_study",),
    "library.recurring.recurring_job": ("RecurringJob", "adopt_job", "load_job"),
    "policy": ("Policy", "Recommendation", "RetryRules", "preset"),
    "problem": ("Baseline", "Budget", "FutureUse", "Objective", "Constraint", "Problem", "Billing"),
    "problem.job_input": ("JobInput",),
    "space": ("Categorical", "Computed", "Float", "Integer", "Joined", "Mapped", "Ordinal", "Space"),
    "study.stored": ("open_study",),
    "study.create": ("create_study",),
    "study.study": ("Study",),
    "trial.outcome": ("FailureReason",),
    "trial.trial": ("TrialSummary", "Trial", "TrialState"),
}
"""Where each public name lives."""

__all__ = [
    "Baseline",
    "Billing",
    "Budget",
    "Categorical",
    "Client",
    "Computed",
    "Constraint",
    "FailureReason",
    "Float",
    "FutureUse",
    "InfrastructureError",
    "InputError",
    "Integer",
    "JobInput",
    "Joined",
    "LynceusError",
    "Mapped",
    "MissingExtraError",
    "Objective",
    "Ordinal",
    "Policy",
    "Problem",
    "Recommendation",
    "RecurringJob",
    "RemoteJob",
    "RemoteStudy",
    "RetryRules",
    "Space",
    "Study",
    "Trial",
    "TrialState",
    "TrialSummary",
    "adopt_job",
    "best_for_input",
    "create_study",
    "load_job",
    "load_study",
    "open_study",
    "preset",
    "report",
    "time_estimator",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"lynceus.{module}"), name)
    raise AttributeError(f"module 'lynceus' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
