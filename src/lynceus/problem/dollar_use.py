"""Dollars of one use of the result: what turns an improvement of the objective into money.

A use is a run of the job where the objective is cost, a unit where it is dollars per unit (`usd_per_million_tokens`, or price ÷ throughput
with a throughput in tokens/s), an hour where it is dollars per hour (pods · price).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lynceus.problem.formula import PRICE, QUANTITY_WORDS
from lynceus.problem.metric_units import SECOND, USD, Unit
from lynceus.space.expression import Expression

if TYPE_CHECKING:
    from lynceus.problem.objective import Objective
    from lynceus.problem.problem import Problem

_TOLD = {PRICE: Unit.parse("USD/h"), "time": Unit.parse("s"), "cost": Unit.parse("USD")}
_SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class DollarUse:
    """What a use is, and what it costs."""

    unit: str
    """One of them: `run`, `token`, `million tokens`, `hour`."""
    usd: float
    """Dollars of a use where the objective is 1."""


def dollar_use(problem: Problem) -> DollarUse | None:
    """None where the objective is no amount of dollars: time, accuracy, or a formula over metrics whose unit is not declared."""
    objective = problem.objective
    if problem.kind == "cost":
        return DollarUse("run", 1.0)
    if objective.maximise or problem.kind == "time":
        return None
    if objective.per_unit is not None:
        return DollarUse(objective.per_unit, 1.0)
    measured = _measured(objective, problem.units, problem.space.columns.keys())
    return None if measured is None else _counted(measured)


@dataclass(frozen=True, slots=True)
class _Measured:
    """The unit of a formula, and the product of the plain numbers in it."""

    unit: Unit
    number: float = 1.0


def _counted(measured: _Measured) -> DollarUse | None:
    """Numbers in a formula convert its units (· 10⁶ / 3600), so they do not change what a use costs."""
    powers = dict(measured.unit.powers)
    if powers.pop(USD, 0.0) != 1.0 or not measured.number > 0:
        return None
    usd = measured.unit.scale / measured.number
    if not powers:
        return DollarUse("run", usd)
    if powers == {SECOND: -1.0}:
        return DollarUse("hour", usd * _SECONDS_PER_HOUR)
    ((unit, power), *more) = powers.items()
    return DollarUse(unit, usd) if power == -1.0 and not more else None


def _measured(objective: Objective, units: Mapping[str, str], columns: Collection[str]) -> _Measured | None:
    if not objective.is_formula:
        declared = units.get(objective.metric)
        return None if declared is None else _Measured(Unit.parse(declared))
    return _Units({name: Unit.parse(unit) for name, unit in units.items()}, columns).of(
        Expression.parse(objective.metric, "objective:").tree
    )


@dataclass(frozen=True)
class _Units:
    """Units of the parts of a formula; None where one is not declared, or parts of different units are added."""

    metrics: Mapping[str, Unit]
    columns: Collection[str]

    def of(self, node: ast.expr) -> _Measured | None:
        """The unit of a part. Columns are plain numbers: pods, replicas, shares."""
        match node:
            case ast.Constant(value) if isinstance(value, int | float):
                return _Measured(Unit(), float(value))
            case ast.Name(name):
                return self._named(name)
            case ast.UnaryOp(_, operand):
                return self.of(operand)
            case ast.BinOp(left, ast.Pow(), ast.Constant(power)) if isinstance(power, int | float):
                base = self.of(left)
                return None if base is None else _Measured(base.unit ** float(power), base.number ** float(power))
            case ast.BinOp(left, ast.Mult() | ast.Div() as sign, right):
                return _product(self.of(left), self.of(right), 1.0 if isinstance(sign, ast.Mult) else -1.0)
            case ast.BinOp(left, ast.Add() | ast.Sub(), right):
                return self._alike([left, right])
            case ast.IfExp(_, body, orelse):
                return self._alike([body, orelse])
            case ast.Call(ast.Name(function), arguments) if function not in ("log", "log2", "log10", "exp", "sqrt"):
                return self._alike(arguments)
        return None

    def _named(self, name: str) -> _Measured | None:
        name = QUANTITY_WORDS.get(name, name)
        if name in _TOLD:
            return _Measured(_TOLD[name])
        if name in self.columns:
            return _Measured(Unit())
        return _Measured(self.metrics[name]) if name in self.metrics else None

    def _alike(self, parts: list[ast.expr]) -> _Measured | None:
        """The unit that all parts share; their numbers are amounts then, and convert nothing."""
        found = [self.of(part) for part in parts]
        units = {None if each is None else each.unit for each in found}
        (unit,) = units if len(units) == 1 else (None,)
        return None if unit is None else _Measured(unit)


def _product(one: _Measured | None, other: _Measured | None, power: float) -> _Measured | None:
    if one is None or other is None or not other.number:
        return None
    return _Measured(one.unit * other.unit**power, one.number * other.number**power)
