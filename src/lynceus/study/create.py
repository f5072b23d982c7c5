"""Create a study from what a Python program gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from types import NoneType
from typing import TYPE_CHECKING, Any

from lynceus.errors import expect
from lynceus.policy.policy import Policy
from lynceus.policy.presets import preset
from lynceus.policy.retries import RetryRules
from lynceus.problem.baseline import Baseline
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.future_use import FutureUse
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.problem.units import parse_money
from lynceus.space.table import Space
from lynceus.storage.serialization import check_seed
from lynceus.study.study import Study

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
) -> Study:
    """A new study, in memory or in a storage such as `sqlite:///lynceus.db`.

    `objective` is `cost`, `time`, or like `maximize accuracy`; constraints read `runtime <= 45m @ 0.95`; a budget is money.
    `baseline` is the configuration used until now: `{"nodes": 4}`, `{"config": {"nodes": 4}, "runtime": "41m"}`, or with `"measure": True`
    the first trial. `future` says how often the result will be used: `{"runs": 100}` or `{"per_month": 30, "months": 6}`.
    """
    expect(space, Space, "space", "a Space, for example Space.build([Integer('nodes', 1, 8)], price='0.1 * nodes'),")
    expect(objective, (str, Objective), "objective", "a text such as 'cost' or 'maximize accuracy', or an Objective,")
    expect(constraints, (list, tuple), "constraints", "a list such as ['runtime <= 45m']")
    for item in constraints:
        expect(item, (str, Constraint), "constraints: one of them", "a text such as 'runtime <= 45m', or a Constraint,")
    expect(billing, (Billing, NoneType), "billing", "a Billing, for example Billing(boot_s=60),")
    expect(policy, (str, Policy), "policy", "a name such as 'lynceus', or a Policy,")
    expect(seed, Integral, "seed", "a whole number such as 7")
    expect(study_name, str, "study_name", "a text")
    expect(load_if_exists, bool, "load_if_exists", "True or False")
    expect(retry_rules, (RetryRules, NoneType), "retry_rules", "RetryRules")
    check_seed(int(seed))
    wanted = objective if isinstance(objective, Objective) else Objective.parse(objective)
    limits = tuple(item if isinstance(item, Constraint) else Constraint.parse(item) for item in constraints)
    used = None if baseline is None else Baseline.read(space, baseline)
    uses = None if future is None else FutureUse.read(future)
    problem = Problem(space, wanted, limits, _budget(budget), billing or Billing(), baseline=used, future=uses)
    chosen = policy if isinstance(policy, Policy) else preset(policy)
    if storage is None:
        return Study(problem, chosen, seed=seed, name=study_name, retry_rules=retry_rules)
    from lynceus.study.stored import open_study  # SQLAlchemy is only loaded by those who need it

    return open_study(
        storage, study_name, problem, chosen, seed=seed, load_if_exists=load_if_exists, retry_rules=retry_rules
    )


def _budget(given: float | str | Budget) -> Budget:
    if isinstance(given, Budget):
        return given
    unlimited = isinstance(given, float) and math.isinf(given)
    return Budget(usd=math.inf if unlimited else parse_money(given, "budget"))
