"""Python programs of a folder, and the options that they declare with argparse, click or typer. Files are read, never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_MOST_FILES = 200
_MOST_BYTES = 1_000_000
_SKIPPED = frozenset({"node_modules", "site-packages", "build", "dist", "venv", "env", "__pycache__", "tests", "test"})
_NUMBERS = {"int": "int", "INT": "int", "IntRange": "int", "float": "float", "FLOAT": "float", "FloatRange": "float"}
"""Types of argparse, click and typer that are numbers."""


@dataclass(frozen=True)
class Option:
    """An option or an argument of a program."""

    flag: str
    """As it is typed, `--batch-size`; empty for an argument that has its place only."""
    name: str
    """As a parameter of a job file, `batch_size`."""
    kind: str = "text"
    """`int`, `float`, `flag` or `text`."""
    default: float | None = None
    """Only of numbers."""
    choices: tuple[str, ...] = ()
    is_required: bool = False
    limits: tuple[int, int] | None = None
    """The smallest and the largest whole number that it takes, where the program says so."""


@dataclass(frozen=True)
class Program:
    """A Python file."""

    path: str
    """Relative to the folder."""
    imports: frozenset[str]
    """Packages at the top level."""
    options: tuple[Option, ...]
    is_script: bool
    """Whether it asks for `__name__`."""


def programs_in(folder: Path) -> Iterator[Program]:
    """The Python files of a folder and of two levels below it, without tests and environments."""
    files = (file for pattern in ("*.py", "*/*.py", "*/*/*.py") for file in sorted(folder.glob(pattern)))
    shown = (file for file in files if not _SKIPPED & set(file.relative_to(folder).parts) and file.is_file())
    for _, file in zip(range(_MOST_FILES), shown, strict=False):
        if any(part.startswith(".") for part in file.relative_to(folder).parts):
            continue
        try:
            tree = ast.parse(text_of(file))
        except (SyntaxError, ValueError, RecursionError):
            continue
        yield _program(file.relative_to(folder).as_posix(), tree)


def text_of(file: Path) -> str:
    """The beginning of a file; empty if it cannot be read."""
    try:
        with file.open("rb") as opened:
            return opened.read(_MOST_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""


def _program(path: str, tree: ast.Module) -> Program:
    imports: set[str] = set()
    options: list[Option] = []
    is_script = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            imports.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Call) and _called(node) in ("add_argument", "option", "argument"):
            options += _declared(node)
        elif isinstance(node, ast.Compare) and isinstance(node.left, ast.Name):
            is_script = is_script or node.left.id == "__name__"
    if "typer" in imports:
        options += _of_typer(tree)
    unique = {one.name: one for one in reversed(options)}
    return Program(path, frozenset(imports), tuple(reversed(unique.values())), is_script)


def _called(call: ast.AST) -> str:
    """The last part of the name of what is called."""
    function = call.func if isinstance(call, ast.Call) else call
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def _declared(call: ast.Call) -> list[Option]:
    """The option of a call of argparse's `add_argument`, or of click's `option` or `argument`."""
    names = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    given = {one.arg: one.value for one in call.keywords if one.arg}
    flags = sorted((name for name in names if name.startswith("-")), key=lambda name: not name.startswith("--"))
    if not names or (_called(call) == "option" and not flags):
        return []
    flag = flags[0] if flags else ""
    is_flag = "/" in flag or _constant(given.get("is_flag")) is True
    action = _constant(given.get("action"))
    if is_flag or action not in (None, "store"):
        return [Option(flag.partition("/")[0], _name(flag), "flag")]
    name = _constant(given.get("dest")) or (flag or names[0])
    default = _number(given.get("default"))
    kind = _kind(given.get("type"), default if _called(call) == "option" else None)
    optional = _constant(given.get("nargs")) in ("?", "*", -1) or "default" in given
    required = _constant(given.get("required")) is True or (not flag and not optional)
    return [Option(flag, _name(str(name)), kind, default, _choices(given), required, _limits(given))]


def _of_typer(tree: ast.Module) -> Iterator[Option]:
    """The parameters of the functions that typer makes commands of."""
    run = {
        _called(call.args[0])
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and _called(call) == "run" and call.args
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        if node.name in run or any(_called(one) in ("command", "callback") for one in node.decorator_list):
            arguments = [*node.args.args, *node.args.kwonlyargs]
            defaults = [None] * (len(node.args.args) - len(node.args.defaults)) + [
                *node.args.defaults,
                *node.args.kw_defaults,
            ]
            yield from (_parameter(one, default) for one, default in zip(arguments, defaults, strict=True))


def _parameter(argument: ast.arg, default: ast.expr | None) -> Option:
    """`workers: int = 4`, `workers: int = typer.Option(4, "--workers")`, or `workers: Annotated[int, typer.Option()] = 4`."""
    annotation, declared = argument.annotation, default if isinstance(default, ast.Call) else None
    if (
        isinstance(annotation, ast.Subscript)
        and _called(annotation.value) == "Annotated"
        and isinstance(annotation.slice, ast.Tuple)
    ):
        annotation, *more = annotation.slice.elts
        declared = next((one for one in more if isinstance(one, ast.Call)), declared)
    texts = [one.value for one in (declared.args if declared else []) if isinstance(one, ast.Constant)]
    flags = [one for one in texts if isinstance(one, str) and one.startswith("--")]
    value = default if not isinstance(default, ast.Call) else next(iter(default.args), None)
    is_required = value is None or (isinstance(value, ast.Constant) and value.value is ...)
    is_argument = (default is None and declared is None) or (declared is not None and _called(declared) == "Argument")
    flag = "" if is_argument else (flags or [f"--{argument.arg.replace('_', '-')}"])[0]
    named = _called(annotation) if annotation is not None else ""
    kind = "flag" if named == "bool" else _NUMBERS.get(named, "text")
    choices = (
        _texts(annotation.slice)
        if isinstance(annotation, ast.Subscript) and _called(annotation.value) == "Literal"
        else ()
    )
    limits = _between({one.arg: one.value for one in declared.keywords if one.arg} if declared else {})
    return Option(flag.partition("/")[0], argument.arg, kind, _number(value), choices, is_required, limits)


def _kind(declared: ast.expr | None, default: float | None) -> str:
    """The type of a value; click takes it from the default."""
    if declared is None:
        return "text" if default is None else "int" if isinstance(default, int) else "float"
    return _NUMBERS.get(_called(declared), "text")


def _choices(given: Mapping[str, ast.expr]) -> tuple[str, ...]:
    """`choices=[…]` of argparse, `type=click.Choice([…])` of click."""
    declared = given.get("type")
    if isinstance(declared, ast.Call) and _called(declared) == "Choice" and declared.args:
        return _texts(declared.args[0])
    return _texts(given["choices"]) if "choices" in given else ()


def _limits(given: Mapping[str, ast.expr]) -> tuple[int, int] | None:
    """`choices=range(1, 10)` of argparse, `type=click.IntRange(1, 19)` of click."""
    choices, declared = given.get("choices"), given.get("type")
    if isinstance(choices, ast.Call) and _called(choices) == "range":
        ends = [_number(one) for one in choices.args]
        first, end = ends if len(ends) == 2 else (0, ends[0] if len(ends) == 1 else None)
        return (first, end - 1) if isinstance(first, int) and isinstance(end, int) and end > first else None
    if isinstance(declared, ast.Call) and _called(declared) == "IntRange":
        by_place = dict(zip(("min", "max"), declared.args, strict=False))
        return _between({**by_place, **{one.arg: one.value for one in declared.keywords if one.arg}})
    return None


def _between(given: Mapping[str, ast.expr]) -> tuple[int, int] | None:
    least, most = _number(given.get("min")), _number(given.get("max"))
    return (least, most) if isinstance(least, int) and isinstance(most, int) and most >= least else None


def _texts(node: ast.expr) -> tuple[str, ...]:
    elements: Sequence[ast.expr] = node.elts if isinstance(node, (ast.List, ast.Tuple, ast.Set)) else [node]
    values = [_constant(one) for one in elements]
    return tuple(str(value) for value in values) if all(isinstance(one, (str, int, float)) for one in values) else ()


def _constant(node: ast.expr | None) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def _number(node: ast.expr | None) -> int | float | None:
    value = _constant(node)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _name(flag: str) -> str:
    return flag.partition("/")[0].lstrip("-").replace("-", "_")
