"""Studies that outlive their process: a problem and a policy on top of a storage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from lynceus.conduct import Conduct
from lynceus.errors import InputError, expect
from lynceus.ledger.problems import problem_record
from lynceus.ledger.sql import Storage, fingerprint
from lynceus.policy import Policy
from lynceus.policy.compose import describe
from lynceus.problem import Problem
from lynceus.study import Study


def open_study(
    storage: str | Storage,
    name: str,
    problem: Problem,
    policy: Policy,
    *,
    seed: int = 0,
    document: Mapping[str, Any] | None = None,
    load_if_exists: bool = False,
    conduct: Conduct | None = None,
) -> Study:
    """A new study in a storage, or with `load_if_exists` the one of that name, if it is about the same problem."""
    expect(storage, (str, Storage), "storage", "an address such as 'sqlite:///lynceus.db', or a Storage,")
    if isinstance(storage, str):
        storage = Storage(storage)
    known = {record.name: record for record in storage.studies()}
    if name in known and load_if_exists:
        return continued(storage, name, problem, policy, conduct=conduct)
    storage.create_study(
        name,
        document=_document(problem, conduct) if document is None else document,
        fingerprint=fingerprint(problem),
        policy=describe(policy),
        seed=seed,
    )
    return Study(problem, policy, seed=seed, name=name, ledger=storage.ledger(name), conduct=conduct)


def _document(problem: Problem, conduct: Conduct | None) -> dict[str, Any]:
    """What a study keeps that has no job file, so that other programs can look at it, and the dashboard can show it."""
    record = problem_record(problem)
    return {} if record is None else {"problem": record, "conduct": asdict(conduct or Conduct())}


def continued(
    storage: Storage, name: str, problem: Problem, policy: Policy, *, conduct: Conduct | None = None
) -> Study:
    """A study of a storage, with the problem and the policy that its document describes."""
    record = storage.load_study(name)
    if record.fingerprint != fingerprint(problem):
        raise InputError(
            f"study {name!r} in {storage.shown_url} is about another problem (space, prices, limits, goal or billing differ); "
            "continue it with its own job file, or choose another name."
        )
    return Study(problem, policy, seed=record.seed, name=name, ledger=storage.ledger(name), conduct=conduct)
