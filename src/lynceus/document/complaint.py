"""One sentence for what pydantic found: what came, what was expected, and the nearest word."""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ValidationError

from lynceus.document.tree import Path

_EXPECTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
    "none_required": "nothing",
}


def complaint(error: ValidationError, model: type[BaseModel], value: Any) -> tuple[Path, str]:
    """The place of the most specific mistake and a sentence about it."""
    found = [(_place(detail["loc"], detail["type"], value), detail) for detail in error.errors(include_url=False)]
    # A misspelt field is also a missing one; its own line is the better place to say so.
    found.sort(key=lambda pair: pair[1]["type"] == "missing")
    # Of a field that may be one thing or another, the alternative that fits best complains at the deepest place.
    deepest = max(len(path) for path, _ in found if path[:1] == found[0][0][:1])
    path = next(path for path, _ in found if len(path) == deepest and path[:1] == found[0][0][:1])
    details = [detail for other, detail in found if other == path]
    kinds = [detail["type"] for detail in details]
    came = shown(_value(value, path))
    if "extra_forbidden" in kinds:
        known = _known_fields(model, path[:-1])
        return path, f"there is no field '{path[-1]}'{hint(str(path[-1]), known)}"
    if "missing" in kinds:
        return path, f"the field '{path[-1]}' is missing; add it."
    worded = next((detail for detail in details if detail["type"] == "value_error"), None)
    if worded is not None and not isinstance(_value(value, path), dict | list):
        return path, str(worded["ctx"]["error"])
    expected = list(dict.fromkeys(_EXPECTED[kind] for kind in kinds if kind in _EXPECTED))
    if len(expected) == len(set(kinds)) or (expected and len(details) > 1):
        return path, f"{came} came, but {' or '.join(expected)} is needed."
    literal = next((detail for detail in details if detail["type"] in ("literal_error", "enum")), None)
    if literal is not None:
        words = [word.strip("'") for word in str(literal["ctx"]["expected"]).replace(" or ", ", ").split(", ")]
        return path, f"{came} came{hint(str(_value(value, path)), words)}"
    detail = details[-1]
    if worded is not None:
        return path, str(worded["ctx"]["error"])
    message = detail["msg"][0].lower() + detail["msg"][1:]
    return path, f"{came} came, but {message.replace('input should be', 'it should be')}."


def hint(word: str, known: Iterable[str]) -> str:
    """How a sentence about an unknown word ends: with the nearest known one, or with all of them.

    >>> hint("stepp", ["step", "low"]), hint("x", ["step", "low"])
    ("; did you mean 'step'?", '; known are step, low.')
    """
    words = list(known)
    close = difflib.get_close_matches(word, words, n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known are {', '.join(words)}." if words else "."


def shown(value: Any) -> str:
    """A value as it may stand in a sentence."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _place(loc: tuple[int | str, ...], kind: str, value: Any) -> Path:
    """The part of pydantic's location that exists in the document; names of union members in between are left out."""
    path: list[str | int] = []
    here = value
    for place, step in enumerate(loc):
        if (isinstance(here, dict) and step in here) or (isinstance(here, list) and step in range(len(here))):
            here = _value(here, (step,))
        elif kind != "missing" or place < len(loc) - 1:
            continue
        path.append(step)
    return tuple(path)


def _value(value: Any, path: Path) -> Any:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _known_fields(model: type[BaseModel], path: Path) -> list[str]:
    """Fields that the sections at `path` have."""
    here = [model]
    for step in path:
        below = [one.model_fields[str(step)].annotation for one in here if str(step) in one.model_fields]
        if below:
            here = [found for annotation in below for found in _models(annotation)]
        # Otherwise the step is a position in a list or a name in a mapping of sections: these were found already.
    return [name for one in here for name in one.model_fields]


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for inner in typing.get_args(annotation) for found in _models(inner)]
