"""One sentence for a validation error of pydantic: the given value, the expected one, and the nearest known name."""

from __future__ import annotations

import typing
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from lynceus.errors import hint, shown
from lynceus.jobfile.yaml.lines import Path

_EXPECTED = {
    "string_type": "a string",
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
    "none_required": "no value",
}


class FieldError(ValueError):
    """An error that a validator of a whole section raises about one of its fields, at whose line it is reported."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def first_error(error: ValidationError, model: type[BaseModel], value: Any) -> tuple[Path, str]:
    """The path of the most specific error in `value` and a sentence about it."""
    found = [(_place(_location(detail), detail["type"], value), detail) for detail in error.errors(include_url=False)]
    # A misspelt field is also a missing one; report it at its own line.
    found.sort(key=lambda pair: pair[1]["type"] == "missing" or (not pair[0] and bool(pair[1]["loc"])))
    # Of a union, the alternative that fits best fails at the deepest path.
    deepest = max(len(path) for path, _ in found if path[:1] == found[0][0][:1])
    path = next(path for path, _ in found if len(path) == deepest and path[:1] == found[0][0][:1])
    details = [detail for other, detail in found if other == path]
    kinds = [detail["type"] for detail in details]
    given = shown(_value(value, path))
    if "extra_forbidden" in kinds:
        known = _known_fields(model, path[:-1])
        sections = [name for name in known if len(path) == 1 and path[0] in _known_fields(model, (name,))]
        if len(sections) == 1:
            example = "…" if isinstance(_value(value, path), dict | list) else given
            there = f"{sections[0]}: {{{path[0]}: {example}}}"
            return path, f"'{path[0]}' is a field of {sections[0]}; write it there: {there}."
        return path, f"there is no field '{path[-1]}'{hint(str(path[-1]), known)}"
    if "missing" in kinds:
        return path, f"the field '{path[-1]}' is missing; add it."
    explained = next((detail for detail in details if detail["type"] == "value_error"), None)
    if explained is not None and not isinstance(_value(value, path), dict | list):
        return path, str(explained["ctx"]["error"])
    expected = list(dict.fromkeys(_EXPECTED[kind] for kind in kinds if kind in _EXPECTED))
    if len(expected) == len(set(kinds)) or (expected and len(details) > 1):
        return (
            path,
            f"got {given}; expected {' or '.join(expected)}{_example(model, path, expected, _value(value, path))}.",
        )
    literal = next((detail for detail in details if detail["type"] in ("literal_error", "enum")), None)
    if literal is not None:
        words = [word.strip("'") for word in str(literal["ctx"]["expected"]).replace(" or ", ", ").split(", ")]
        return path, f"got {given}{hint(str(_value(value, path)), words)}"
    detail = details[-1]
    if explained is not None:
        return path, str(explained["ctx"]["error"])
    message = detail["msg"][0].lower() + detail["msg"][1:]
    return path, f"got {given}; {message.replace('input should be', 'it should be')}."


def _example(model: type[BaseModel], path: Path, expected: list[str], given: Any) -> str:
    """What to write instead: the one text as a list of one, or the fields of a mapping."""
    if expected == ["a list"] and isinstance(given, str):
        return f": [{given!r}]"
    if expected == ["a mapping of fields"] and path and given is not None:
        fields = ", ".join(_known_fields(model, path))
        return f": {fields}" if fields else ""
    return ""


def _location(detail: ErrorDetails) -> tuple[int | str, ...]:
    """Where pydantic found it, and the field that the validator of a section names."""
    cause = detail.get("ctx", {}).get("error")
    return (*detail["loc"], cause.field) if isinstance(cause, FieldError) else detail["loc"]


def _place(loc: tuple[int | str, ...], kind: str, value: Any) -> Path:
    """The part of pydantic's location that exists in the document, without the names of union members."""
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
    """Fields of the sections at `path`."""
    here = [model]
    for step in path:
        below = [one.model_fields[str(step)].annotation for one in here if str(step) in one.model_fields]
        if below:
            here = [found for annotation in below for found in _models(annotation)]
        # Otherwise the step is an index of a list or a key of a mapping of sections, whose models are in `here` already.
    return [field.alias or name for one in here for name, field in one.model_fields.items()]


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for inner in typing.get_args(annotation) for found in _models(inner)]
