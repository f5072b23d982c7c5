"""From the text of a YAML document to plain values, each with the line on which it stands.

Words are read as YAML 1.2 reads them: `no` and `on` are texts, `1e-3` is a number, `12:30` and `2024-01-01` are texts. A
configuration full of names and numbers has no use for the other readings of YAML 1.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from lynceus.errors import InputError

Path = tuple[str | int, ...]
"""Where a value stands in a document: keys of mappings and positions in lists."""

MOST_BYTES = 1 << 20
"""A document is written by a person; a larger file is something else."""
MOST_VALUES = 100_000
"""Values after aliases are written out; a few nested aliases can stand for billions."""
MOST_DEEP = 64
_ANOTHER_BLOCK = ("expected <block end>, but found '<block", "expected <block end>, but found '-'")
"""How the parser calls a line that begins neither where the others do nor deeper."""


@dataclass(frozen=True)
class Tree:
    """The values of a document and their lines."""

    value: Any
    lines: dict[Path, int]
    """The line, from 1, of every value; of a value in a mapping it is the line of its key."""


class _Loader(yaml.SafeLoader):
    """Scalars by the core schema of YAML 1.2; nothing else is ever constructed, and nothing too deep is even parsed."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > MOST_DEEP + 1:
            raise RecursionError
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))


def read_tree(text: str, name: str) -> Tree:
    """The values of one YAML document.

    >>> read_tree("a:\\n  b: [1, no]", "job.yaml").lines
    {(): 1, ('a',): 1, ('a', 'b'): 2, ('a', 'b', 0): 2, ('a', 'b', 1): 2}
    """
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise InputError(f"{name}{line}: this is not YAML: {_reason(error, text)}.") from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position].count("\n")
        raise InputError(
            f"{name}:{before + 1}: this is not YAML: the unprintable character {error.character:#x} came; remove it."
        ) from None
    except RecursionError:
        raise InputError(f"{name}: values are nested too deeply; a document has at most {MOST_DEEP} levels.") from None
    lines: dict[Path, int] = {}
    if root is None:
        return Tree(None, {(): 1})
    return Tree(_Walk(loader, lines, name).value(root, (), root.start_mark.line + 1, 0), lines)


def _reason(error: yaml.MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark
    if mark is not None and "\t" in "".join(text.splitlines()[mark.line : mark.line + 1]):
        return "a tab stands where YAML wants blanks; indent with blanks"
    problem = str(error.problem or error.context or "it cannot be read").rstrip(".")
    line = "" if mark is None else "".join(text.splitlines()[mark.line : mark.line + 1])
    if problem == "mapping values are not allowed here" and mark is not None and ": " in line[: mark.column]:
        return "a text that holds ': ' looks like a field; put quotes around it"
    if problem == "mapping values are not allowed here" or problem.startswith(_ANOTHER_BLOCK):
        return "the indentation differs from the lines before; begin fields of one section in the same column"
    return problem


@dataclass
class _Walk:
    """One walk over the node tree; a plain class because every step needs the loader, the lines and the count."""

    loader: _Loader
    lines: dict[Path, int]
    name: str
    seen: int = 0

    def value(self, node: yaml.Node, path: Path, line: int, deep: int) -> Any:
        self.seen += 1
        if self.seen > MOST_VALUES:
            raise InputError(
                f"{self.name}:{line}: the document has more than {MOST_VALUES:,} values once its aliases are written out; "
                "use fewer aliases."
            )
        if deep > MOST_DEEP:
            raise InputError(
                f"{self.name}:{line}: values are nested too deeply; a document has at most {MOST_DEEP} levels, "
                "and an alias may not contain itself."
            )
        self.lines[path] = line
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, deep)
        if isinstance(node, yaml.SequenceNode):
            return [
                self.value(item, (*path, place), item.start_mark.line + 1, deep + 1)
                for place, item in enumerate(node.value)
            ]
        return self._scalar(node, line)

    def _mapping(self, node: yaml.MappingNode, path: Path, deep: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise InputError(f"{self.name}:{line}: a list or a mapping stands where the name of a field is needed.")
            key = str(key_node.value)
            if key in values:
                first = self.lines[(*path, key)]
                raise InputError(
                    f"{self.name}:{line}: the field '{key}' was given on line {first} already; keep one of them."
                )
            values[key] = self.value(value_node, (*path, key), line, deep + 1)
        return values

    def _scalar(self, node: yaml.Node, line: int) -> Any:
        try:
            # YAML 1.1 reads 010 as eight; people who write zeros in front mean ten.
            if node.tag.endswith(":int") and re.fullmatch(r"[-+]?[0-9]+", str(node.value)):
                return int(node.value)
            return self.loader.construct_object(node)
        except yaml.MarkedYAMLError:
            raise InputError(
                f"{self.name}:{line}: the tag '{node.tag}' is not known here; write plain texts and numbers."
            ) from None
        except ValueError:
            raise InputError(f"{self.name}:{line}: {str(node.value)[:60]!r} cannot be read as a number.") from None
