"""Parse YAML into plain values, each with its line number.

Scalars follow YAML 1.2: `no` and `on` are strings, `1e-3` is a number, `12:30` and `2024-01-01` are strings. The other readings of
YAML 1.1 only cause surprises in a file full of names and numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from lynceus.errors import InputError
from lynceus.jobfile.yaml.reasons import reason
from lynceus.space.column import is_storable

Path = tuple[str | int, ...]
"""The path of a value in a document: keys of mappings and indices of lists."""

MAX_BYTES = 1 << 20
"""Documents are written by hand; a larger file is something else."""
MAX_VALUES = 20_000
"""Limit on values after aliases are expanded; a few nested aliases can expand to billions."""
MAX_DEPTH = 64


@dataclass(frozen=True)
class Tree:
    """The values of a document and their line numbers."""

    value: Any
    lines: dict[Path, int]
    """The line of every value, from 1; for a value in a mapping, the line of its key."""


class _Loader(yaml.SafeLoader):
    """Scalars of the YAML 1.2 core schema only; a document that is nested too deeply is not even parsed."""

    depth = 0
    count = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        self.count += 1
        if self.depth > MAX_DEPTH + 1:
            raise RecursionError
        if self.count > 2 * MAX_VALUES:  # keys are nodes, too
            raise OverflowError
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
    """Parse one YAML document.

    >>> read_tree("a:\\n  b: [1, no]", "job.yaml").lines
    {(): 1, ('a',): 1, ('a', 'b'): 2, ('a', 'b', 0): 2, ('a', 'b', 1): 2}
    """
    try:
        loader = _Loader(text)
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        line, why = reason(error, text)
        raise InputError(f"{name}{'' if line is None else f':{line}'}: invalid YAML: {why}.") from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position].count("\n")
        raise InputError(
            f"{name}:{before + 1}: invalid YAML: it contains the unprintable character {error.character:#x}; remove it."
        ) from None
    except OverflowError:
        raise InputError(f"{name}: the document has more than {MAX_VALUES:,} values; put them into a table.") from None
    except RecursionError:
        raise InputError(f"{name}: values are nested too deeply; a document has at most {MAX_DEPTH} levels.") from None
    lines: dict[Path, int] = {}
    if root is None:
        return Tree(None, {(): 1})
    return Tree(_Converter(loader, lines, name).value(root, (), root.start_mark.line + 1, 0), lines)


@dataclass
class _Converter:
    """Converts the node tree to values and collects their lines."""

    loader: _Loader
    lines: dict[Path, int]
    name: str
    count: int = 0

    def value(self, node: yaml.Node, path: Path, line: int, depth: int) -> Any:
        self.count += 1
        if self.count > MAX_VALUES:
            raise InputError(
                f"{self.name}:{line}: the document has more than {MAX_VALUES:,} values once its aliases are expanded; "
                "use fewer aliases."
            )
        if depth > MAX_DEPTH:
            raise InputError(
                f"{self.name}:{line}: values are nested too deeply; a document has at most {MAX_DEPTH} levels, "
                "and an alias may not contain itself."
            )
        self.lines[path] = line
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [
                self.value(item, (*path, place), item.start_mark.line + 1, depth + 1)
                for place, item in enumerate(node.value)
            ]
        return self._scalar(node, line)

    def _mapping(self, node: yaml.MappingNode, path: Path, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise InputError(f"{self.name}:{line}: got a list or a mapping in place of a field name; write a name.")
            key = str(key_node.value)
            self._check_text(key, line)
            if key in values:
                first = self.lines[(*path, key)]
                raise InputError(
                    f"{self.name}:{line}: the field '{key}' was given on line {first} already; keep one of them."
                )
            values[key] = self.value(value_node, (*path, key), line, depth + 1)
        return values

    def _check_text(self, text: str, line: int) -> None:
        if not is_storable(text):
            raise InputError(
                f"{self.name}:{line}: {text[:60]!r} has a character that cannot be stored (NUL, or half a surrogate pair); "
                "remove it."
            )

    def _scalar(self, node: yaml.Node, line: int) -> Any:
        self._check_text(str(node.value), line)
        try:
            # YAML 1.1 reads 010 as eight; users who write leading zeros mean ten.
            if node.tag.endswith(":int") and re.fullmatch(r"[-+]?[0-9]+", str(node.value)):
                return int(node.value)
            return self.loader.construct_object(node)
        except yaml.MarkedYAMLError:
            raise InputError(
                f"{self.name}:{line}: the tag '{node.tag}' is not supported; write plain strings and numbers."
            ) from None
        except ValueError:
            raise InputError(f"{self.name}:{line}: {str(node.value)[:60]!r} cannot be read as a number.") from None
