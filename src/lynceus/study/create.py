"""Create a study from what a Python program gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from types import NoneType
from typing import TYPE_CHECKING, Any

from lynceus.errors import InputError, expect
from lynceus.policy.informed import can_learn, informed
from lynceus.policy.policy import Policy
from lynceus.policy.presets import preset
from lynceus.policy.retries import RetryRules
from lynceus.problem.baseline import Baseline
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.future_use import FutureUse
from lynceus.problem.goal import refuse_price
from lynceus.problem.history import PastJob
from lynceus.problem.job_input import JobInput
from lynceus.problem.metric_units import Unit
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.problem.units import parse_money
from lynceus.space.table import Space
from lynceus.storage.serialization import check_seed
from lynceus.storage.user import current_user
from lynceus.study.recorded import RecordedStudy
from lynceus.study.study import Study
from lynceus.study.view import StudyView
from lynceus.trial.past_job import past_jobs
from lynceus.trial.shared_budget import Payer

if TYPE_CHECKING:
    from lynceus.storage.sql.storage import Storage


def create_study(
    *,
    space: Space,
    objective: str | Objective = "cost",
    constraints: Sequence[str | Constraint] = (),
    budget: float | str | Budget = math.inf,
    billing: Billing | None = None,
    policy: str | Policy = "lynceus",
    seed: int = 0,
    study_name: str = "study",
    storage: str | Storage | None = None,
    load_if_exists: bool = False,
    retry_rules: RetryRules | None = None,
    baseline: Baseline | Mapping[str, Any] | None = None,
    future: FutureUse | Mapping[str, Any] | None = None,
    metrics: Mapping[str, Mapping[str, str]] | None = None,
    history: Sequence[PastJob | StudyView] = (),
    input: JobInput | Mapping[str, Any] | str | None = None,
    project: str | None = None,
    owner: str | None = None,
) -> Study:
    """A new study, in memory or in a storage such as `sqlite:///lynceus.db`.

    `objective` is `cost`, `time`, like `maximize accuracy`, or a formula such as `minimize price / throughput`;
    constraints read `runtime <= 45m @ 0.95`; a budget is money.
    `baseline` is the configuration used until now: `{"nodes": 4}`, `{"config": {"nodes": 4}, "runtime": "41m"}`, or with `"measure": True`
    the first trial. `metrics` declares units, in which limits may be written: `{"p99": {"unit": "ms"}}`. `future` says
    how often the result will be used: `{"runs": 100}` or `{"per_month": 30, "months": 6}`. `history` are earlier studies to learn from,
    also of other spaces (docs/history.md); nothing of them is charged. `input` is what runs read, `"120 GB"` (docs/input-size.md).
    In a storage, runs draw on the monthly budgets of `project` and `owner` (docs/teams.md); the owner is by default who runs the program.
    """
    _check_arguments(billing, policy, seed, retry_rules)
    _check_place(study_name, load_if_exists)
    payer = _payer(project, owner, stored=storage is not None)
    problem = replace(
        _problem(space, objective, constraints, metrics),
        budget=_budget(budget),
        billing=billing or Billing(),
        baseline=None if baseline is None else Baseline.read(space, baseline),
        future=None if future is None else FutureUse.read(future),
        input=None if input is None else JobInput.read(input),
    )
    problem, chosen = _with_history(problem, policy if isinstance(policy, Policy) else preset(policy), history)
    if storage is None:
        return Study(problem, chosen, seed=seed, name=study_name, retry_rules=retry_rules)
    from lynceus.study.stored import open_study  # SQLAlchemy is only loaded by those who need it

    opened = partial(open_study, storage, study_name, load_if_exists=load_if_exists, payer=payer)
    return opened(problem, chosen, seed=seed, retry_rules=retry_rules)


def _check_arguments(billing: object, policy: object, seed: object, retry_rules: object) -> None:
    expect(billing, (Billing, NoneType), "billing", "a Billing, for example Billing(boot_s=60),")
    expect(policy, (str, Policy), "policy", "a name such as 'lynceus', or a Policy,")
    expect(seed, Integral, "seed", "a whole number such as 7")
    expect(retry_rules, (RetryRules, NoneType), "retry_rules", "RetryRules")
    check_seed(int(seed))  # type: ignore[call-overload]  # a whole number, as just checked


def _payer(project: object, owner: object, *, stored: bool) -> Payer:
    """Who pays for the study."""
    for name, given in (("project", project), ("owner", owner)):
        expect(given, (str, NoneType), name, "a text such as 'forecasts'")
        if given is not None and not stored:
            raise InputError(
                f"{name}: budgets are shared in a storage; give storage='sqlite:///lynceus.db', or leave it out."
            )
    return Payer(project, owner or (current_user() if stored else None))  # type: ignore[arg-type]  # checked above


def _check_place(study_name: object, load_if_exists: object) -> None:
    """Where the study is kept and found again."""
    expect(study_name, str, "study_name", "a text")
    expect(load_if_exists, bool, "load_if_exists", "True or False")


def _problem(
    space: Space,
    objective: str | Objective,
    constraints: Sequence[str | Constraint],
    metrics: Mapping[str, Mapping[str, str]] | None,
) -> Problem:
    """What is to be found, without what the search may cost."""
    expect(space, Space, "space", "a Space, for example Space.build([Integer('nodes', 1, 8)], price='0.1 * nodes'),")
    expect(objective, (str, Objective), "objective", "a text such as 'cost' or 'maximize accuracy', or an Objective,")
    expect(constraints, (list, tuple), "constraints", "a list such as ['runtime <= 45m']")
    for item in constraints:
        expect(item, (str, Constraint), "constraints: one of them", "a text such as 'runtime <= 45m', or a Constraint,")
    units = _units(metrics)
    wanted = objective if isinstance(objective, Objective) else Objective.parse(objective)
    limits = tuple(item if isinstance(item, Constraint) else Constraint.parse(item, units) for item in constraints)
    refuse_price((*(parameter.name for parameter in space.parameters), *(each.metric for each in limits), *units))
    return Problem(space, wanted, limits, units=units)


def _units(metrics: Mapping[str, Mapping[str, str]] | None) -> dict[str, str]:
    """Metric → unit, from `{"p99": {"unit": "ms"}}`."""
    expect(metrics, (Mapping, NoneType), "metrics", "a mapping such as {'p99': {'unit': 'ms'}}")
    units = {}
    for name, one in (metrics or {}).items():
        expect(one, Mapping, f"metrics: {name}", "a mapping such as {'unit': 'ms'}")
        if set(one) != {"unit"}:
            raise InputError(
                f"metrics: {name} has the fields {sorted(one)}; give its unit alone, as in {{'unit': 'ms'}}."
            )
        try:
            Unit.parse(one["unit"])
        except InputError as error:
            raise InputError(f"metrics: {name}: {error}") from None
        units[name] = one["unit"]
    return units


def _with_history(problem: Problem, policy: Policy, history: Sequence[PastJob | StudyView]) -> tuple[Problem, Policy]:
    """The problem with earlier studies, and the policy that learns from them."""
    expect(history, (list, tuple), "history", "a list of studies, for example [lynceus.load_study(…)]")
    problem = replace(problem, history=tuple(one for given in history for one in _past(given)))
    return problem, informed(policy) if can_learn(policy, problem) else policy


def _past(given: PastJob | StudyView) -> tuple[PastJob, ...]:
    expect(given, (PastJob, RecordedStudy), "history: one of them", "a study or a PastJob")
    if isinstance(given, PastJob):
        return (given,)
    return past_jobs(given.name, given.problem, given.observations, f"study {given.name} ({given.record.identity})")


def _budget(given: float | str | Budget) -> Budget:
    if isinstance(given, Budget):
        return given
    unlimited = isinstance(given, float) and math.isinf(given)
    return Budget(usd=math.inf if unlimited else parse_money(given, "budget"))
