"""A formula over what is known of a configuration (columns, price) and what its runs tell (metrics, time, cost).

Everything that can be computed before a run is computed once, for all configurations. The rest stays a small tree over the quantities
that runs tell, so that a model learns these alone.

>>> import numpy as np
>>> from lynceus.space import Integer, Space
>>> space = Space.build([Integer("nodes", 1, 2)], price="0.5 * nodes")
>>> per_token = Formula.of("price / throughput", space)
>>> per_token.quantities, per_token.value(1, {"throughput": 4.0})
(('throughput',), 0.25)
>>> per_token.monomial.factor, dict(per_token.monomial.exponents)
(array([0.5, 1. ]), {'throughput': -1.0})
"""

from __future__ import annotations

import ast
import copy
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lynceus.errors import InputError, shown
from lynceus.space.expression import Expression

if TYPE_CHECKING:
    from lynceus.space.column import BoolArray, FloatArray, IntArray
    from lynceus.space.table import Space

PRICE = "price"
"""In formulas: dollars per hour of the configuration."""
QUANTITY_WORDS = {"time": "time", "runtime": "time", "duration": "time", "cost": "cost", "money": "cost"}
"""What Lynceus itself tells of a run: its seconds and its dollars, by the words that users write."""
_SECONDS_PER_HOUR = 3600.0

_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_CALLED: Mapping[str, Callable[..., Any]] = {
    "min": lambda *values: np.minimum.reduce(np.broadcast_arrays(*values)),
    "max": lambda *values: np.maximum.reduce(np.broadcast_arrays(*values)),
    "abs": np.abs,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "ceil": np.ceil,
    "floor": np.floor,
    "round": np.round,
    "int": np.trunc,
    "float": np.asarray,
}


@dataclass(frozen=True, eq=False)
class Monomial:
    """factor · Π quantity^exponent: its logarithm is a sum, so log-normal quantities make it log-normal."""

    factor: FloatArray
    """Known before a run `[q]`."""
    exponents: Mapping[str, float]
    """Quantity → exponent, none of them 0; empty where nothing is left to be learnt."""


@dataclass(frozen=True, eq=False)
class Formula:
    """A checked formula for the configurations of one space."""

    text: str
    quantities: tuple[str, ...]
    """What runs tell, in order of appearance: `time`, `cost` and names of metrics."""
    reads: tuple[str, ...]
    """What is known: columns and `price`."""
    _tree: ast.expr
    """Over `quantities` and numbered known parts."""
    _known: Mapping[str, FloatArray]
    """The known parts `[q]` each, by the names that the tree gives them."""

    @classmethod
    def of(cls, text: str, space: Space, *, linear: bool = False) -> Formula:
        """Read a formula over the columns of a space, `price` (dollars per hour), `time`, `cost` and metrics.

        `linear`: cost is time × price, so that it need not be told apart from time.
        """
        where = "objective:"
        expression = Expression.parse(text, where)
        columns = {name: column for name, column in space.columns.items() if name not in QUANTITY_WORDS}
        columns[PRICE] = space.price_per_second * _SECONDS_PER_HOUR
        if not expression.names:
            raise InputError(
                f"{where} {shown(text)} is the same for every configuration; name a column, price or a metric in it."
            )
        folding = _Folding(expression, columns, space.price_per_second if linear else None)
        tree = folding.visit(copy.deepcopy(expression.tree))
        quantities = tuple(dict.fromkeys(folding.quantities))
        reads = tuple(name for name in expression.names if name in columns)
        made = cls(expression.text, quantities, reads, tree, folding.known)
        if not quantities:
            made.known_values()  # an error that names the part which is not a number
        return made

    @property
    def metrics(self) -> tuple[str, ...]:
        """The reported metrics that it reads."""
        return tuple(name for name in self.quantities if name not in ("time", "cost"))

    def value(self, row: int, quantities: Mapping[str, float]) -> float:
        """The value of one run; NaN where the formula has none (a division by zero, a logarithm of a negative number)."""
        given = {name: np.asarray(quantities[name], dtype=np.float64) for name in self.quantities}
        value = float(self.values(given, np.asarray(row)))
        return value if math.isfinite(value) else math.nan

    def values(self, quantities: Mapping[str, FloatArray], rows: IntArray | None = None) -> FloatArray:
        """Values for arrays of quantities that broadcast with the configurations: all of them `[q]`, or those of `rows`."""
        known = self._known if rows is None else {name: array[rows] for name, array in self._known.items()}
        with np.errstate(all="ignore"):
            return np.asarray(_evaluated(self._tree, {**known, **quantities}), dtype=np.float64)

    def known_values(self) -> FloatArray:
        """The value of every configuration `[q]`, where nothing has to be learnt."""
        some = next(iter(self._known.values()), np.zeros(1))
        values = np.broadcast_to(self.values({}), some.shape)
        if not np.isfinite(values).all():
            raise InputError(f"objective: {shown(self.text)} is not a finite number for some configurations.")
        return values

    @cached_property
    def monomial(self) -> Monomial | None:
        """The formula as a product of powers with a positive factor; None when it is not one."""
        found = _product(self._tree, self._known)
        if found is None:
            return None
        factor, exponents = found
        size = len(next(iter(self._known.values()))) if self._known else 1
        factor = np.broadcast_to(np.asarray(factor, dtype=np.float64), (size,))
        left = {name: power for name, power in exponents.items() if power}
        positive = np.isfinite(factor).all() and (not left or (factor > 0).all())
        return Monomial(factor, left) if positive else None


class _Folding(ast.NodeTransformer):
    """Replaces every part that only reads known columns by the name of its values; collects the quantities that are left."""

    def __init__(self, expression: Expression, columns: Mapping[str, Any], usd_per_s: FloatArray | None) -> None:
        self._expression, self._columns, self._usd_per_s = expression, columns, usd_per_s
        self.known: dict[str, FloatArray] = {}
        self.quantities: list[str] = []

    def visit(self, node: ast.AST) -> Any:
        """The node with its known parts folded."""
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and not _is_function(one, node)}
        if isinstance(node, ast.expr) and names and names <= self._columns.keys():
            return _name(self._folded(node))
        if isinstance(node, ast.Name):
            quantity = QUANTITY_WORDS.get(node.id, node.id)
            if quantity == "cost" and self._usd_per_s is not None:
                self.known["price per second"] = self._usd_per_s
                self.quantities.append("time")
                return ast.BinOp(_name("price per second"), ast.Mult(), _name("time"))
            self.quantities.append(quantity)
            return _name(quantity)
        if isinstance(node, ast.Call):
            return ast.Call(node.func, [self.visit(argument) for argument in node.args], [])
        return super().visit(node)

    def _folded(self, node: ast.expr) -> str:
        whole = self._expression
        column = Expression(whole.text, whole.where, (), node).evaluate(self._columns)
        if any(isinstance(cell, str) or cell is None for cell in column.tolist()):
            example = next(cell for cell in column.tolist() if isinstance(cell, str) or cell is None)
            raise InputError(
                f"{self._expression.where} {shown(self._expression.text)} needs numbers, but a part of it is {shown(example)} "
                "for some configurations; compare texts, as in '2 if disk == \"ssd\" else 1'."
            )
        name = f"known {len(self.known)}"
        self.known[name] = np.asarray(column, dtype=np.float64)
        return name

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """A comparison of quantities: of numbers only."""
        if any(type(one) not in _COMPARED for one in node.ops):
            raise InputError(
                f"{self._expression.where} {shown(self._expression.text)} tests what runs report with 'in' or 'is'; compare numbers."
            )
        return ast.Compare(self.visit(node.left), node.ops, [self.visit(side) for side in node.comparators])


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _is_function(name: ast.Name, tree: ast.AST) -> bool:
    return any(isinstance(one, ast.Call) and one.func is name for one in ast.walk(tree))


def _evaluated(node: ast.expr, values: Mapping[str, FloatArray]) -> Any:
    """The value of a folded tree, NaN where it has none."""
    match node:
        case ast.Name(name):
            return values[name]
        case ast.Constant(value) if isinstance(value, int | float):
            return np.float64(value)
        case ast.BinOp(left, sign, right):
            return _BINARY[type(sign)](_evaluated(left, values), _evaluated(right, values))
        case ast.UnaryOp(sign, operand):
            inner = _evaluated(operand, values)
            return (
                np.logical_not(inner) if isinstance(sign, ast.Not) else -inner if isinstance(sign, ast.USub) else inner
            )
        case ast.BoolOp(sign, parts):
            join = np.logical_and if isinstance(sign, ast.And) else np.logical_or
            return join.reduce(np.broadcast_arrays(*(_evaluated(part, values) for part in parts)))
        case ast.IfExp(test, body, orelse):
            return np.where(_evaluated(test, values), _evaluated(body, values), _evaluated(orelse, values))
        case ast.Compare(left, signs, sides):
            return _chain(_evaluated(left, values), signs, [_evaluated(side, values) for side in sides])
        case ast.Call(ast.Name(function), arguments) if function in _CALLED:
            return _CALLED[function](*(_evaluated(argument, values) for argument in arguments))
    raise InputError(f"objective: {ast.unparse(node)!r} cannot be computed from numbers that runs report.")


def _chain(left: Any, signs: list[ast.cmpop], sides: list[Any]) -> BoolArray:
    holds: Any = True
    for sign, right in zip(signs, sides, strict=True):
        holds, left = np.logical_and(holds, _COMPARED[type(sign)](left, right)), right
    return np.asarray(holds)


def _product(node: ast.expr, known: Mapping[str, FloatArray]) -> tuple[Any, dict[str, float]] | None:
    """(factor, exponents) of a product of powers; None for anything else."""
    match node:
        case ast.Name(name):
            return (known[name], {}) if name in known else (1.0, {name: 1.0})
        case ast.Constant(value) if isinstance(value, int | float):
            return float(value), {}
        case ast.UnaryOp(ast.USub(), operand):
            inner = _product(operand, known)
            return None if inner is None else (-1.0 * inner[0], inner[1])
        case ast.UnaryOp(ast.UAdd(), operand):
            return _product(operand, known)
        case ast.Call(ast.Name("sqrt"), [operand]):
            return _power(_product(operand, known), 0.5)
        case ast.BinOp(left, ast.Pow(), ast.Constant(power)) if isinstance(power, int | float):
            return _power(_product(left, known), float(power))
        case ast.BinOp(left, ast.Mult() | ast.Div() | ast.Add() | ast.Sub() as sign, right):
            return _joined(_product(left, known), sign, _product(right, known))
    return None


def _joined(
    one: tuple[Any, dict[str, float]] | None, sign: ast.operator, other: tuple[Any, dict[str, float]] | None
) -> tuple[Any, dict[str, float]] | None:
    if one is None or other is None:
        return None
    with np.errstate(all="ignore"):
        if isinstance(sign, ast.Add | ast.Sub):  # 2 m + 3 m is 5 m; 2 m + 3 is no product
            return (_BINARY[type(sign)](one[0], other[0]), one[1]) if one[1] == other[1] else None
        way = 1.0 if isinstance(sign, ast.Mult) else -1.0
        exponents = dict(one[1])
        for name, power in other[1].items():
            exponents[name] = exponents.get(name, 0.0) + way * power
        return _BINARY[type(sign)](one[0], other[0]), exponents


def _power(base: tuple[Any, dict[str, float]] | None, power: float) -> tuple[Any, dict[str, float]] | None:
    if base is None:
        return None
    with np.errstate(all="ignore"):
        return np.power(base[0], power), {name: each * power for name, each in base[1].items()}
