"""Evaluates a checked syntax tree over whole columns.

The meaning is Python's, row by row, with three documented differences: ``and``/``or`` give true or false, ``None``
passes through arithmetic instead of failing, and a result that is not finite is an error. Branches are evaluated only
for the rows that reach them, as Python would.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np

from lynceus.errors import InputError, shown
from lynceus.space.cells import Cells, cells_of, equal, objects, present, repeated, truth, whole_numbers
from lynceus.space.column import EXACT, BoolArray, Cell, Column, FloatArray, IntArray

FUNCTIONS: dict[str, tuple[int, int]] = {
    "min": (2, 20),
    "max": (2, 20),
    "abs": (1, 1),
    "log": (1, 1),
    "log2": (1, 1),
    "log10": (1, 1),
    "sqrt": (1, 1),
    "exp": (1, 1),
    "ceil": (1, 1),
    "floor": (1, 1),
    "round": (1, 2),
    "int": (1, 1),
    "float": (1, 1),
    "str": (1, 1),
    "len": (1, 1),
}
"""Every function an expression may call, with its fewest and most arguments."""
LONGEST_TEXT = 10_000
"""Characters that a joined text may have."""
LONGEST_TEXTS = 50_000_000
"""Characters that the joined texts of all configurations may have."""

_MATHS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "exp": np.exp,
}
_WHOLE: dict[str, Callable[[FloatArray], FloatArray]] = {
    "ceil": np.ceil,
    "floor": np.floor,
    "round": np.rint,
    "int": np.trunc,
}
_ARITHMETIC: dict[type[ast.operator], Callable[[FloatArray, FloatArray], FloatArray]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
_ORDER: dict[type[ast.cmpop], Callable[[Column, Column], BoolArray]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}

Fail = Callable[[ast.AST | None, str], InputError]
"""Makes the error that points at a node."""


class Evaluation:
    """One evaluation over given columns; ``fail`` makes the error for a node."""

    def __init__(self, columns: Mapping[str, object], fail: Fail) -> None:
        self._columns = columns
        self._fail = fail
        self._read: dict[str, Cells] = {}
        first = next(iter(columns.values()), ())
        self._size = len(first)  # type: ignore[arg-type]

    def column(self, tree: ast.expr) -> Column:
        """The value of every row ``[q]``."""
        cells = self._value(tree, np.arange(self._size))
        if not cells.missing.any():
            return cells.data
        column = cells.data.astype(object)
        column[cells.missing] = None
        return column

    def mask(self, tree: ast.expr) -> BoolArray:
        """Where the tree is true ``[q]``."""
        return truth(self._value(tree, np.arange(self._size)))

    def _value(self, node: ast.expr, rows: IntArray) -> Cells:
        match node:
            case ast.Name(name):
                if name not in self._read:
                    self._read[name] = cells_of(self._columns[name])
                return self._read[name] if len(rows) == self._size else self._read[name].take(rows)
            case ast.Constant(value):
                return repeated(cast(Cell, value), len(rows))
            case ast.BoolOp(operator, values):
                return self._logic(isinstance(operator, ast.And), values, rows)
            case ast.UnaryOp(operator, operand):
                return self._unary(node, operator, self._value(operand, rows))
            case ast.BinOp(left, operator, right):
                return self._arithmetic(node, operator, self._value(left, rows), self._value(right, rows))
            case ast.IfExp(test, body, orelse):
                return self._branches(test, body, orelse, rows)
            case ast.Compare():
                return self._comparison(node, rows)
            case ast.Call(ast.Name(function), arguments):
                return self._call(node, function, [self._value(argument, rows) for argument in arguments])
        raise self._fail(node, "this is not allowed in an expression.")

    def _logic(self, conjunction: bool, values: Sequence[ast.expr], rows: IntArray) -> Cells:
        result = np.full(len(rows), conjunction)
        for value in values:
            undecided = np.flatnonzero(result == conjunction)
            if undecided.size:
                result[undecided] = truth(self._value(value, rows[undecided]))
        return present(result)

    def _branches(self, test: ast.expr, body: ast.expr, orelse: ast.expr, rows: IntArray) -> Cells:
        holds = truth(self._value(test, rows))
        if holds.all():
            return self._value(body, rows)
        if not holds.any():
            return self._value(orelse, rows)
        yes, no = self._value(body, rows[holds]), self._value(orelse, rows[~holds])
        kind = object if yes.text or no.text else np.result_type(yes.data, no.data)
        data, missing = np.empty(len(rows), dtype=kind), np.empty(len(rows), dtype=np.bool_)
        for where, part in ((holds, yes), (~holds, no)):
            data[where], missing[where] = part.data, part.missing
        return Cells(data, missing)

    def _unary(self, node: ast.expr, operator: ast.unaryop, cells: Cells) -> Cells:
        if isinstance(operator, ast.Not):
            return present(~truth(cells))
        (cells,) = self._numbers(node, cells)
        data = cells.data.astype(np.int64) if cells.data.dtype == np.bool_ else cells.data
        return Cells(-data if isinstance(operator, ast.USub) else data, cells.missing)

    def _arithmetic(self, node: ast.expr, operator: ast.operator, left: Cells, right: Cells) -> Cells:
        missing = left.missing | right.missing
        if left.text and right.text and isinstance(operator, ast.Add):
            return self._joined(node, left, right, missing)
        left, right = self._numbers(node, left, right)
        over, under = left.data.astype(np.float64), right.data.astype(np.float64)
        if isinstance(operator, ast.Div | ast.FloorDiv | ast.Mod):
            if bool(((under == 0) & ~missing).any()):
                raise self._fail(node, "this divides by zero; exclude it first, as in 'x != 0 and 1 / x > 2'.")
            under = np.where(missing, 1.0, under)
        with np.errstate(all="ignore"):
            result = _ARITHMETIC[type(operator)](over, under)
        whole = whole_numbers(left) and whole_numbers(right) and not isinstance(operator, ast.Div)
        if isinstance(operator, ast.Pow):
            whole = whole and bool((under >= 0).all())
        return self._finite(node, result, missing, whole)

    def _joined(self, node: ast.expr, left: Cells, right: Cells, missing: BoolArray) -> Cells:
        total = sum(len(value) for side in (left, right) for value in side.data.tolist() if isinstance(value, str))
        if total > LONGEST_TEXTS:
            raise self._fail(node, f"the joined texts are longer than {LONGEST_TEXTS:,} characters in all.")
        try:
            joined = np.asarray(np.add(left.data, right.data), dtype=object)
        except TypeError:
            raise self._fail(node, "'+' adds two numbers or joins two texts, not one with the other.") from None
        if not all(isinstance(value, str) for value in joined.tolist()):
            raise self._fail(node, "'+' adds two numbers or joins two texts; these values are mixed.")
        if max(map(len, joined.tolist()), default=0) > LONGEST_TEXT:
            raise self._fail(node, f"the joined text is longer than {LONGEST_TEXT:,} characters.")
        return Cells(joined, missing)

    def _comparison(self, node: ast.Compare, rows: IntArray) -> Cells:
        """A chain a < b < c; a part is evaluated only for the rows where those before it hold."""
        result = np.ones(len(rows), dtype=np.bool_)
        left, here = self._value(node.left, rows), np.arange(len(rows))
        for operator, side in zip(node.ops, node.comparators, strict=True):
            if isinstance(side, ast.List):
                right = left
                found = np.zeros(len(here), dtype=np.bool_)
                for item in side.elts:
                    found |= equal(left, self._value(item, rows[here]))
                holds = found if isinstance(operator, ast.In) else ~found
            else:
                right = self._value(side, rows[here])
                holds = self._compare(node, operator, left, right)
            result[here] = holds
            here, left = here[holds], right.take(np.flatnonzero(holds))
            if not here.size:
                break
        return present(result)

    def _compare(self, node: ast.expr, operator: ast.cmpop, left: Cells, right: Cells) -> BoolArray:
        if isinstance(operator, ast.Eq | ast.Is):
            return equal(left, right)
        if isinstance(operator, ast.NotEq | ast.IsNot):
            return ~equal(left, right)
        both = np.flatnonzero(~(left.missing | right.missing))
        holds = np.zeros(len(left.missing), dtype=np.bool_)
        if both.size:
            try:
                holds[both] = _ORDER[type(operator)](left.data[both], right.data[both])
            except TypeError:
                raise self._fail(node, "this orders a text against a number; compare values of one kind.") from None
        return holds

    def _call(self, node: ast.expr, function: str, arguments: list[Cells]) -> Cells:
        first = arguments[0]
        missing = np.logical_or.reduce([argument.missing for argument in arguments])
        if function == "str":
            return Cells(objects([str(value) for value in first.data.tolist()]), missing)
        if function == "len":
            if not all(isinstance(value, str) for value in first.data[~missing].tolist()):
                raise self._fail(node, "len() counts the characters of a text, but this is not text.")
            return Cells(np.array([len(str(value)) for value in first.data.tolist()], dtype=np.int64), missing)
        arguments = self._numbers(node, *arguments)
        whole = all(whole_numbers(argument) for argument in arguments)
        numbers = [argument.data.astype(np.float64) for argument in arguments]
        with np.errstate(all="ignore"):
            if function in ("min", "max"):
                pick = np.minimum if function == "min" else np.maximum
                return self._finite(node, pick.reduce(numbers), missing, whole)
            if function == "abs":
                return self._finite(node, np.abs(numbers[0]), missing, whole)
            if function == "float":
                return Cells(numbers[0], missing)
            if function == "round" and len(arguments) == 2:
                return self._finite(node, self._rounded(node, numbers[0], numbers[1]), missing, False)
            if function in _WHOLE:
                return self._finite(node, _WHOLE[function](numbers[0]), missing, True)
            return self._finite(node, _MATHS[function](numbers[0]), missing, False)

    def _rounded(self, node: ast.expr, numbers: FloatArray, digits: FloatArray) -> FloatArray:
        if digits.size and not ((digits == digits[0]).all() and 0 <= digits[0] <= 15):
            raise self._fail(node, "round() takes one number of digits from 0 to 15 as its second argument.")
        return np.round(numbers, int(digits[0])) if digits.size else numbers

    def _finite(self, node: ast.expr, result: FloatArray, missing: BoolArray, whole: bool) -> Cells:
        if not np.isfinite(result[~missing]).all():
            raise self._fail(node, "the result is not a finite number for some configurations.")
        result = np.where(missing, 0.0, result)
        if whole and bool((np.abs(result) <= EXACT).all()):
            return Cells(result.astype(np.int64), missing)
        return Cells(result, missing)

    def _numbers(self, node: ast.expr, *several: Cells) -> list[Cells]:
        """Cells that are all numbers or None; a column of None alone has no kind of its own."""
        found = []
        for cells in several:
            if not cells.text:
                found.append(cells)
            elif cells.missing.all():
                found.append(repeated(None, len(cells.missing)))
            else:
                example = next(value for value in cells.data[~cells.missing].tolist())
                raise self._fail(node, f"this needs numbers, but a value is the text {shown(example)}.")
        return found
