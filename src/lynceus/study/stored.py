"""Studies in a storage: they outlive their process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from lynceus.errors import InputError, expect
from lynceus.policy.policy import Policy
from lynceus.policy.policy_file import describe
from lynceus.policy.retries import RetryRules
from lynceus.problem.problem import Problem
from lynceus.storage.problem_record import problem_record
from lynceus.storage.sql.storage import Storage, StudyExistsError, fingerprint
from lynceus.storage.user import current_user
from lynceus.study.study import Study
from lynceus.trial.limit_change import original_problem
from lynceus.trial.shared_budget import Payer


def open_study(
    storage: str | Storage,
    name: str,
    problem: Problem,
    policy: Policy,
    *,
    seed: int = 0,
    document: Mapping[str, Any] | None = None,
    load_if_exists: bool = False,
    retry_rules: RetryRules | None = None,
    payer: Payer | None = None,
) -> Study:
    """A new study in a storage, or with `load_if_exists` the one of that name, if it is about the same problem."""
    expect(storage, (str, Storage), "storage", "an address such as 'sqlite:///lynceus.db', or a Storage,")
    if isinstance(storage, str):
        storage = Storage(storage)
    known = {record.name for record in storage.studies()}
    if name in known and load_if_exists:
        return continued(storage, name, problem, policy, retry_rules=retry_rules)
    try:
        storage.create_study(
            name,
            document=_document(problem, retry_rules) if document is None else document,
            fingerprint=fingerprint(problem),
            policy=describe(policy),
            seed=seed,
            payer=payer,
            by=current_user(),
        )
    except StudyExistsError:
        if not load_if_exists:
            raise StudyExistsError(
                f"study {name!r} exists already in {storage.shown_url}; continue it with load_if_exists=True, or choose another name."
            ) from None
        return continued(storage, name, problem, policy, retry_rules=retry_rules)  # another process was first
    return Study(problem, policy, seed=seed, name=name, journal=storage.journal(name), retry_rules=retry_rules)


def _document(problem: Problem, retry_rules: RetryRules | None) -> dict[str, Any]:
    """What a study without a job file stores, so that other programs and the dashboard can read it."""
    record = problem_record(problem)
    return {} if record is None else {"problem": record, "conduct": asdict(retry_rules or RetryRules())}


def continued(
    storage: Storage, name: str, problem: Problem, policy: Policy, *, retry_rules: RetryRules | None = None
) -> Study:
    """A study of a storage, with the problem and the policy that its document describes."""
    record = storage.load_study(name)
    changes = record.limit_changes
    began = original_problem(problem, changes) if changes and problem.constraints == changes[-1].after else problem
    if record.fingerprint != fingerprint(began):
        raise InputError(
            f"study {name!r} in {storage.shown_url} is about another problem (space, prices, constraints, objective or billing differ); "
            "continue it with its own job file, or choose another name; to change a limit, open it as it was and call "
            "study.resume(constraints=['runtime <= 45m'])."
        )
    return Study(problem, policy, seed=record.seed, name=name, journal=storage.journal(name), retry_rules=retry_rules)
