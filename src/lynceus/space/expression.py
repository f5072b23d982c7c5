"""Expressions over columns: ``"vm_vcpus * nodes > 64 and disk == 'hdd'"``.

The text is read by Python's own parser into a syntax tree, every node of the tree is compared with a short list of what
is allowed, and the tree is then evaluated by `lynceus.space.evaluate`, a whole column at a time. No text is ever
compiled or run as Python; there are no attributes, no calls but of a few functions, and no names but those of columns.
"""

import ast
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from lynceus.errors import InputError, did_you_mean, shown
from lynceus.space.column import BoolArray, Column, listed
from lynceus.space.evaluate import FUNCTIONS, Evaluation

LONGEST = 10_000
"""Characters an expression may have."""
DEEPEST = 100
"""Levels an expression's syntax tree may have."""

_OPERATORS = (
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Div,
    ast.FloorDiv,
    ast.Mod,
    ast.Pow,
    ast.UAdd,
    ast.USub,
    ast.Not,
    ast.And,
    ast.Or,
)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot)
_WORDS = {
    "Attribute": "access to an attribute",
    "Subscript": "an index [...]",
    "Lambda": "lambda",
    "ListComp": "a comprehension",
    "SetComp": "a comprehension",
    "DictComp": "a comprehension",
    "GeneratorExp": "a comprehension",
    "NamedExpr": "an assignment :=",
    "JoinedStr": "an f-string",
    "Starred": "an unpacking *",
    "Await": "await",
    "Yield": "yield",
    "YieldFrom": "yield",
    "Dict": "a dictionary",
    "Set": "a set",
    "List": "a list (lists are allowed only after 'in')",
    "Tuple": "a tuple (lists are allowed only after 'in')",
    "BitAnd": "the operator & (write 'and')",
    "BitOr": "the operator | (write 'or')",
    "Invert": "the operator ~ (write 'not')",
}

_Below = Callable[[ast.AST], ast.expr]
"""Checks a child of the node at hand."""


@dataclass(frozen=True)
class Expression:
    """A checked expression over columns.

    >>> small = Expression.parse("cores * nodes < 8 and disk != 'ssd'")
    >>> small.names
    ('cores', 'nodes', 'disk')
    >>> small.mask({"cores": [2, 2], "nodes": [2, 8], "disk": ["hdd", "hdd"]})
    array([ True, False])

    ``None`` (an inactive parameter) makes every ordering false, equals only ``None``, and passes through arithmetic.
    ``and``, ``or``, ``not`` give true or false; what they and ``if`` skip is not evaluated, so ``x != 0 and 1 / x > 2``
    is safe.
    """

    text: str
    where: str
    """What the expression is for, as messages should name it."""
    names: tuple[str, ...]
    """The columns it reads, in the order of their first use."""
    tree: ast.expr = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: object, where: str = "Expression") -> "Expression":
        """Parse ``text``; an `InputError` names what is not allowed and its position."""
        source, tree = _read(text, where)
        names: dict[str, None] = {}
        tree = _checked(_Place(source, where), tree, names)
        return cls(source, where, tuple(names), tree)

    def check_names(self, known: Collection[str]) -> None:
        """Raise an error for names that are not in ``known``."""
        for name in self.names:
            if name not in known:
                hint = did_you_mean(name, known) or f" Known are {listed(known)}."
                raise InputError(f"{self.where} {shown(self.text)} uses the unknown name {shown(name)}.{hint}")

    def evaluate(self, columns: Mapping[str, object]) -> Column:
        """The value for every configuration ``[q]``; ``columns`` are sequences of equal length."""
        return self._evaluation(columns).column(self.tree)

    def mask(self, columns: Mapping[str, object]) -> BoolArray:
        """Where the expression is true ``[q]``, with truth as Python defines it; None is false."""
        return self._evaluation(columns).mask(self.tree)

    def _evaluation(self, columns: Mapping[str, object]) -> Evaluation:
        self.check_names(columns.keys())
        return Evaluation(columns, _Place(self.text, self.where).error)


@dataclass(frozen=True)
class _Place:
    """Where messages point: the expression's text and purpose."""

    text: str
    where: str

    def error(self, node: ast.AST | None, problem: str) -> InputError:
        """An error that names the character where ``node`` starts."""
        offset = getattr(node, "col_offset", None)
        at = ""
        if offset is not None:  # the parser counts bytes of UTF-8, users count characters
            at = f" at character {len(self.text.encode()[:offset].decode(errors='ignore')) + 1}"
        return InputError(f"{self.where} {shown(self.text)}{at}: {problem}")


def _read(text: object, where: str) -> tuple[str, ast.expr]:
    if isinstance(text, bool | int | float):
        text = repr(text)
    if not isinstance(text, str) or not text.strip():
        raise InputError(f'{where} is {shown(text)}, but an expression such as "nodes * cores > 64" is needed.')
    if len(text) > LONGEST:
        raise InputError(
            f"{where} has {len(text):,} characters, more than {LONGEST:,}: use a table or a mapping instead."
        )
    source = text.strip() if "#" in text else " ".join(text.split("\n")).strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes and "1or 2", which do not matter here
            return source, ast.parse(source, mode="eval").body
    except SyntaxError as error:
        at, problem = f" at character {error.offset}" if error.offset else "", error.msg
        if not error.offset and problem == "invalid syntax":  # what Python says of a text that ends too early
            at, problem = f" at character {len(source) + 1}", "it ends where a value is expected"
        raise InputError(f"{where} {shown(source)} cannot be read{at}: {problem}.{_advice(source)}") from None
    except (ValueError, UnicodeError):
        raise InputError(f"{where} {shown(source)} cannot be read: it holds a character that is not text.") from None
    except (RecursionError, MemoryError):
        raise InputError(f"{where} {shown(source)} is nested too deeply: at most {DEEPEST} levels are read.") from None


def _advice(source: str) -> str:
    for typed, meant in (("&&", "'and'"), ("||", "'or'"), ("<>", "'!='"), ("=<", "'<='"), ("=>", "'>='")):
        if typed in source:
            return f" Write {meant} for '{typed}'."
    bare = source.replace("==", "").replace("<=", "").replace(">=", "").replace("!=", "")
    return " Write '==' to compare." if "=" in bare else ""


def _checked(place: _Place, node: ast.AST, names: dict[str, None], depth: int = 1) -> ast.expr:
    """The tree of allowed nodes, with dotted names such as ``spark.cores`` as one name; collects names."""
    if depth > DEEPEST:
        raise place.error(node, f"the expression is nested too deeply: at most {DEEPEST} levels are read.")

    def below(child: ast.AST) -> ast.expr:
        return _checked(place, child, names, depth + 1)

    match node:
        case ast.Name() | ast.Attribute():
            name = _dotted(place, node)
            names.setdefault(name)
            return ast.copy_location(ast.Name(name, ast.Load()), node)
        case ast.Constant():
            return _constant(place, node)
        case ast.BinOp(left, operator, right):
            _allow(place, node, operator)
            return ast.copy_location(ast.BinOp(below(left), operator, below(right)), node)
        case ast.UnaryOp(operator, operand):
            _allow(place, node, operator)
            return ast.copy_location(ast.UnaryOp(operator, below(operand)), node)
        case ast.BoolOp(operator, values):
            return ast.copy_location(ast.BoolOp(operator, [below(value) for value in values]), node)
        case ast.IfExp(test, body, orelse):
            return ast.copy_location(ast.IfExp(below(test), below(body), below(orelse)), node)
        case ast.Compare(left, operators, comparators):
            if any(isinstance(operator, ast.In | ast.NotIn) for operator in operators[:-1]):
                raise place.error(node, "'in' cannot be followed by a further comparison; join the two with 'and'.")
            sides = [
                _compared(place, operator, side, below) for operator, side in zip(operators, comparators, strict=True)
            ]
            return ast.copy_location(ast.Compare(below(left), operators, sides), node)
        case ast.Call():
            return _call(place, node, below)
    raise place.error(node, f"{_word(node)} is not allowed in an expression.")


def _dotted(place: _Place, node: ast.Name | ast.Attribute) -> str:
    """A column's name; dots may be part of it and are never followed into an object."""
    parts: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        parts.append(inner.attr)
        inner = inner.value
    if not isinstance(inner, ast.Name):
        raise place.error(node, "access to an attribute is not allowed in an expression.")
    parts.append(inner.id)
    if any(part.startswith("__") for part in parts):
        raise place.error(node, "a name that begins with __ is not allowed in an expression.")
    if len(parts) > 1 and inner.id in FUNCTIONS:
        raise place.error(node, "access to an attribute is not allowed in an expression.")
    return ".".join(reversed(parts))


def _constant(place: _Place, node: ast.Constant) -> ast.Constant:
    value = node.value
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            np.float64(value)
        except OverflowError:
            raise place.error(node, "this number is too large.") from None
    elif isinstance(value, float):
        if not np.isfinite(value):
            raise place.error(node, "this number is too large.")
    elif value is not None and not isinstance(value, str | bool):
        raise place.error(
            node, f"a value of type {type(value).__name__} is not allowed; use numbers, text, True, False, None."
        )
    return node


def _allow(place: _Place, node: ast.AST, operator: ast.AST) -> None:
    if not isinstance(operator, _OPERATORS):
        raise place.error(node, f"{_word(operator)} is not allowed in an expression.")


def _compared(place: _Place, operator: ast.cmpop, side: ast.expr, below: _Below) -> ast.expr:
    if not isinstance(operator, _COMPARISONS):
        raise place.error(side, f"{_word(operator)} is not allowed in an expression.")
    if isinstance(operator, ast.Is | ast.IsNot):
        if not (isinstance(side, ast.Constant) and side.value is None):
            raise place.error(side, "'is' is allowed only before None; write '==' to compare.")
        return side
    if isinstance(operator, ast.In | ast.NotIn):
        if not isinstance(side, ast.List | ast.Tuple):
            raise place.error(side, "after 'in' a list of values is needed, such as ['a', 'b'] or [1, 2].")
        return ast.copy_location(ast.List([_literal(place, item, below) for item in side.elts], ast.Load()), side)
    return below(side)


def _literal(place: _Place, item: ast.expr, below: _Below) -> ast.expr:
    inner = item.operand if isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.USub | ast.UAdd) else item
    if not isinstance(inner, ast.Constant):
        raise place.error(item, "a list after 'in' holds only plain values: numbers, text, True, False, None.")
    return below(item)


def _call(place: _Place, node: ast.Call, below: _Below) -> ast.expr:
    if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
        called = shown(node.func.id) if isinstance(node.func, ast.Name) else "this"
        hint = did_you_mean(node.func.id, FUNCTIONS) if isinstance(node.func, ast.Name) else ""
        known = hint or f" Allowed are {', '.join(FUNCTIONS)}."
        raise place.error(node, f"a call of {called} is not allowed.{known}")
    fewest, most = FUNCTIONS[node.func.id]
    if node.keywords or not fewest <= len(node.args) <= most:
        counted = str(fewest) if fewest == most else f"{fewest} to {most}"
        raise place.error(node, f"{node.func.id}() takes {counted} plain argument{'' if counted == '1' else 's'}.")
    return ast.copy_location(ast.Call(node.func, [below(argument) for argument in node.args], []), node)


def _word(node: ast.AST) -> str:
    kind = type(node).__name__
    return _WORDS.get(kind, f"'{kind}'")
