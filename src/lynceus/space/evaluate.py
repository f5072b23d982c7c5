"""Evaluates a checked syntax tree over whole columns.

The meaning is Python's, row by row, with three documented differences: ``and``/``or`` give true or false, ``None`` passes
through arithmetic instead of failing, and a result that is not finite is an error. Branches are evaluated only for the rows
that reach them, as Python would.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lynceus.errors import InputError
from lynceus.space.column import EXACT, BoolArray, Cell, Column, FloatArray, IntArray, as_column

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


@dataclass(frozen=True)
class _Cells:
    """A column in which some rows may be None."""

    data: Column
    """[q]; a filler stands where ``missing``."""
    missing: BoolArray
    """[q]"""

    @property
    def text(self) -> bool:
        """Whether the values are not simply numbers or booleans."""
        return self.data.dtype == object

    def take(self, rows: IntArray) -> "_Cells":
        return _Cells(self.data[rows], self.missing[rows])


class Evaluation:
    """One evaluation over given columns; ``fail`` makes the error for a node."""

    def __init__(self, columns: Mapping[str, object], fail: Fail) -> None:
        self._columns = columns
        self._fail = fail
        self._read: dict[str, _Cells] = {}
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
        return _truth(self._value(tree, np.arange(self._size)))

    def _value(self, node: ast.expr, rows: IntArray) -> _Cells:
        match node:
            case ast.Name(name):
                if name not in self._read:
                    self._read[name] = _cells(self._columns[name])
                return self._read[name] if len(rows) == self._size else self._read[name].take(rows)
            case ast.Constant(value):
                return _repeated(value, len(rows))
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

    def _logic(self, conjunction: bool, values: Sequence[ast.expr], rows: IntArray) -> _Cells:
        result = np.full(len(rows), conjunction)
        for value in values:
            undecided = np.flatnonzero(result == conjunction)
            if undecided.size:
                result[undecided] = _truth(self._value(value, rows[undecided]))
        return _present(result)

    def _branches(self, test: ast.expr, body: ast.expr, orelse: ast.expr, rows: IntArray) -> _Cells:
        holds = _truth(self._value(test, rows))
        if holds.all():
            return self._value(body, rows)
        if not holds.any():
            return self._value(orelse, rows)
        yes, no = self._value(body, rows[holds]), self._value(orelse, rows[~holds])
        kind = object if yes.text or no.text else np.result_type(yes.data, no.data)
        data, missing = np.empty(len(rows), dtype=kind), np.empty(len(rows), dtype=np.bool_)
        for where, part in ((holds, yes), (~holds, no)):
            data[where], missing[where] = part.data, part.missing
        return _Cells(data, missing)

    def _unary(self, node: ast.expr, operator: ast.unaryop, cells: _Cells) -> _Cells:
        if isinstance(operator, ast.Not):
            return _present(~_truth(cells))
        self._need_numbers(node, cells)
        data = cells.data.astype(np.int64) if cells.data.dtype == np.bool_ else cells.data
        return _Cells(-data if isinstance(operator, ast.USub) else data, cells.missing)

    def _arithmetic(self, node: ast.expr, operator: ast.operator, left: _Cells, right: _Cells) -> _Cells:
        missing = left.missing | right.missing
        if left.text and right.text and isinstance(operator, ast.Add):
            return self._joined(node, left, right, missing)
        self._need_numbers(node, left, right)
        over, under = left.data.astype(np.float64), right.data.astype(np.float64)
        if isinstance(operator, ast.Div | ast.FloorDiv | ast.Mod):
            if bool(((under == 0) & ~missing).any()):
                raise self._fail(node, "this divides by zero; exclude it first, as in 'x != 0 and 1 / x > 2'.")
            under = np.where(missing, 1.0, under)
        with np.errstate(all="ignore"):
            result = _ARITHMETIC[type(operator)](over, under)
        whole = _whole(left) and _whole(right) and not isinstance(operator, ast.Div)
        if isinstance(operator, ast.Pow):
            whole = whole and bool((under >= 0).all())
        return self._finite(node, result, missing, whole)

    def _joined(self, node: ast.expr, left: _Cells, right: _Cells, missing: BoolArray) -> _Cells:
        try:
            joined = np.asarray(np.add(left.data, right.data), dtype=object)
        except TypeError:
            raise self._fail(node, "'+' adds two numbers or joins two texts, not one with the other.") from None
        if not all(isinstance(value, str) for value in joined.tolist()):
            raise self._fail(node, "'+' adds two numbers or joins two texts; these values are mixed.")
        if max(map(len, joined.tolist()), default=0) > LONGEST_TEXT:
            raise self._fail(node, f"the joined text is longer than {LONGEST_TEXT:,} characters.")
        return _Cells(joined, missing)

    def _comparison(self, node: ast.Compare, rows: IntArray) -> _Cells:
        """A chain a < b < c; a part is evaluated only for the rows where those before it hold."""
        result = np.ones(len(rows), dtype=np.bool_)
        left, here = self._value(node.left, rows), np.arange(len(rows))
        for operator, side in zip(node.ops, node.comparators, strict=True):
            if isinstance(side, ast.List):
                right = left
                found = np.zeros(len(here), dtype=np.bool_)
                for item in side.elts:
                    found |= _equal(left, self._value(item, rows[here]))
                holds = found if isinstance(operator, ast.In) else ~found
            else:
                right = self._value(side, rows[here])
                holds = self._compare(node, operator, left, right)
            result[here] = holds
            here, left = here[holds], right.take(np.flatnonzero(holds))
            if not here.size:
                break
        return _present(result)

    def _compare(self, node: ast.expr, operator: ast.cmpop, left: _Cells, right: _Cells) -> BoolArray:
        if isinstance(operator, ast.Eq | ast.Is):
            return _equal(left, right)
        if isinstance(operator, ast.NotEq | ast.IsNot):
            return ~_equal(left, right)
        both = np.flatnonzero(~(left.missing | right.missing))
        holds = np.zeros(len(left.missing), dtype=np.bool_)
        if both.size:
            try:
                holds[both] = _ORDER[type(operator)](left.data[both], right.data[both])
            except TypeError:
                raise self._fail(node, "this orders a text against a number; compare values of one kind.") from None
        return holds

    def _call(self, node: ast.expr, function: str, arguments: list[_Cells]) -> _Cells:
        first = arguments[0]
        missing = np.logical_or.reduce([argument.missing for argument in arguments])
        if function == "str":
            return _Cells(_objects([str(value) for value in first.data.tolist()]), missing)
        if function == "len":
            if not all(isinstance(value, str) for value in first.data[~missing].tolist()):
                raise self._fail(node, "len() counts the characters of a text, but this is not text.")
            return _Cells(np.array([len(str(value)) for value in first.data.tolist()], dtype=np.int64), missing)
        self._need_numbers(node, *arguments)
        whole = all(_whole(argument) for argument in arguments)
        numbers = [argument.data.astype(np.float64) for argument in arguments]
        with np.errstate(all="ignore"):
            if function in ("min", "max"):
                pick = np.minimum if function == "min" else np.maximum
                return self._finite(node, pick.reduce(numbers), missing, whole)
            if function == "abs":
                return self._finite(node, np.abs(numbers[0]), missing, whole)
            if function == "float":
                return _Cells(numbers[0], missing)
            if function == "round" and len(arguments) == 2:
                return self._finite(node, self._rounded(node, numbers[0], numbers[1]), missing, False)
            if function in _WHOLE:
                return self._finite(node, _WHOLE[function](numbers[0]), missing, True)
            return self._finite(node, _MATHS[function](numbers[0]), missing, False)

    def _rounded(self, node: ast.expr, numbers: FloatArray, digits: FloatArray) -> FloatArray:
        if digits.size and not (digits == digits[0]).all() or digits.size and not 0 <= digits[0] <= 15:
            raise self._fail(node, "round() takes one number of digits from 0 to 15 as its second argument.")
        return np.round(numbers, int(digits[0])) if digits.size else numbers

    def _finite(self, node: ast.expr, result: FloatArray, missing: BoolArray, whole: bool) -> _Cells:
        if not np.isfinite(result[~missing]).all():
            raise self._fail(node, "the result is not a finite number for some configurations.")
        result = np.where(missing, 0.0, result)
        if whole and bool((np.abs(result) <= EXACT).all()):
            return _Cells(result.astype(np.int64), missing)
        return _Cells(result, missing)

    def _need_numbers(self, node: ast.expr, *several: _Cells) -> None:
        for cells in several:
            if cells.text and not cells.missing.all():
                example = next(value for value in cells.data[~cells.missing].tolist())
                raise self._fail(node, f"this needs numbers, but a value is the text {example!r}.")


def _cells(values: object) -> _Cells:
    column = values if isinstance(values, np.ndarray) else as_column(list(values))  # type: ignore[call-overload]
    if column.dtype != object:
        return _present(column)
    missing = np.equal(column, None).astype(np.bool_)
    if not missing.any():
        return _Cells(column, missing)
    return _spread(as_column(column[~missing].tolist()), missing)


def _spread(present: Column, missing: BoolArray) -> _Cells:
    data = np.empty(len(missing), dtype=present.dtype)
    data[~missing] = present
    data[missing] = "" if present.dtype == object else 0
    return _Cells(data, missing)


def _repeated(value: Cell, count: int) -> _Cells:
    if value is None:
        return _Cells(np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.bool_))
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > EXACT:
        value = float(value)
    if isinstance(value, str):
        data = np.empty(count, dtype=object)
        data[:] = value
        return _present(data)
    return _present(np.full(count, value))


def _present(data: Column) -> _Cells:
    return _Cells(data, np.zeros(len(data), dtype=np.bool_))


def _objects(values: list[str]) -> Column:
    data = np.empty(len(values), dtype=object)
    data[:] = values
    return data


def _whole(cells: _Cells) -> bool:
    return cells.data.dtype != np.float64


def _truth(cells: _Cells) -> BoolArray:
    return np.asarray(cells.data.astype(np.bool_) & ~cells.missing)


def _equal(left: _Cells, right: _Cells) -> BoolArray:
    """[q]: both None, or both present and equal."""
    if left.text != right.text:
        same = np.equal(left.data.astype(object), right.data.astype(object)).astype(np.bool_)
    else:
        same = np.equal(left.data, right.data).astype(np.bool_)
    return np.where(left.missing | right.missing, left.missing & right.missing, same)
