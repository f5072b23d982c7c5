"""A problem as JSON: what a study made in Python stores, so that other programs can read and continue it.

Version 1. `space` holds every configuration: the parameters with their values, and per row the positions of these values, further
columns, features and the price. Studies of job files store their job file instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from lynceus.errors import InfrastructureError
from lynceus.problem.baseline import Baseline
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.future_use import FutureUse
from lynceus.problem.history import PastJob
from lynceus.problem.job_input import JobInput
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.column import as_column
from lynceus.space.parameter import Categorical, Float, Integer, Ordinal, Parameter
from lynceus.space.table import Space

VERSION = 1
MOST_CELLS = 1_000_000
"""Larger spaces are not kept (a million numbers are some ten megabytes); only the program that made such a study can continue it."""
_KINDS: Mapping[str, type[Categorical | Ordinal | Integer | Float]] = {
    "categorical": Categorical,
    "ordinal": Ordinal,
    "integer": Integer,
    "float": Float,
}


def problem_record(problem: Problem) -> dict[str, Any] | None:
    """A problem as JSON; None when it is too large, or needs its job file."""
    space = problem.space
    width = len(space.parameters) + len(space.columns) + len(space.feature_names)
    if problem.preemption is not None or len(space) * width > MOST_CELLS:
        return None
    names = {parameter.name for parameter in space.parameters}
    later: dict[str, Any] = {"deterministic": True} if problem.deterministic else {}
    later |= {"baseline": asdict(problem.baseline)} if problem.baseline is not None else {}
    later |= {"history": [one.record() for one in problem.history]} if problem.history else {}
    later |= {"future": asdict(problem.future)} if problem.future is not None else {}
    later |= {"units": dict(problem.units)} if problem.units else {}
    later |= {"input": problem.input.record()} if problem.input is not None else {}
    return {
        "v": VERSION,
        "space": {
            "parameters": [_parameter_record(parameter) for parameter in space.parameters],
            "codes": space.codes.tolist(),
            "columns": {name: column.tolist() for name, column in space.columns.items() if name not in names},
            "own_columns": {name: column.tolist() for name, column in space.columns.items() if name in names},
            "features": space.features.tolist(),
            "feature_names": list(space.feature_names),
            "feature_kinds": list(space.feature_kinds),
            "price_per_second": space.price_per_second.tolist(),
        },
        "goal": asdict(problem.objective),
        "limits": [asdict(constraint) for constraint in problem.constraints],
        "budget": asdict(problem.budget) | {"usd": None if math.isinf(problem.budget.usd) else problem.budget.usd},
        "tariff": asdict(problem.billing),
        "testable": None if problem.testable is None else problem.testable.tolist(),
        "answerable": None if problem.answerable is None else problem.answerable.tolist(),
        "repeats": problem.repeats,
        "fraction": problem.fraction,
        **later,
    }


def problem_of_record(record: Mapping[str, Any]) -> Problem:
    """The problem of a record."""
    if record.get("v") != VERSION:
        raise InfrastructureError(
            f"The storage holds a problem in format {record.get('v')!r}; this version of Lynceus reads format {VERSION}, use a newer one."
        )
    budget, billing = record["budget"], record["tariff"]
    baseline, future = record.get("baseline"), record.get("future")
    return Problem(
        _space(record["space"]),
        Objective(**record["goal"]),
        tuple(Constraint(**constraint) for constraint in record["limits"]),
        Budget(**(budget | {"usd": math.inf if budget["usd"] is None else budget["usd"]})),
        Billing(**(billing | {"warm": tuple(billing["warm"])})),
        _mask(record["testable"]),
        _mask(record["answerable"]),
        record["repeats"],
        record["fraction"],
        deterministic=record.get("deterministic", False),
        baseline=None if baseline is None else Baseline(**baseline),
        future=None if future is None else FutureUse(**future),
        units=record.get("units", {}),
        history=tuple(map(PastJob.of_record, record.get("history", ()))),
        input=JobInput.of_record(record.get("input")),
    )


def _parameter_record(parameter: Parameter) -> dict[str, Any]:
    given = {field.name: getattr(parameter, field.name) for field in fields(parameter)}
    # A range fills its values by itself; what was given is kept, so that the parameter is the same object again.
    if given.get("low") is not None:
        given.pop("values")
    kept = {
        name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value is not None
    }
    return {"kind": type(parameter).__name__.lower(), **kept}


def _parameter(record: Mapping[str, Any]) -> Parameter:
    given: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}
    return _KINDS[given.pop("kind")](**given)


def _space(record: Mapping[str, Any]) -> Space:
    columns = {**record["own_columns"], **record["columns"]}
    return Space(
        tuple(_parameter(parameter) for parameter in record["parameters"]),
        np.array(record["codes"], dtype=np.int64),
        {name: as_column(cells) for name, cells in columns.items()},
        np.array(record["features"], dtype=np.float64).reshape(len(record["codes"]), len(record["feature_names"])),
        tuple(record["feature_names"]),
        tuple(record["feature_kinds"]),
        np.array(record["price_per_second"], dtype=np.float64),
    )


def _mask(values: list[bool] | None) -> Any:
    return None if values is None else np.array(values, dtype=bool)
