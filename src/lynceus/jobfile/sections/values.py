"""Small values of a job file: memory, environment variables, references to secrets, names; each with its own error message."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, WithJsonSchema

_MEMORY = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]i?B?)\s*", re.IGNORECASE | re.ASCII)
_GIB = {"K": 2.0**-20, "M": 2.0**-10, "G": 1.0, "T": 2.0**10}
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STUDY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LONGEST_SHOWN = 60


def memory_gib(text: str) -> float | None:
    """GiB of a text such as `512 MB` or `2GiB` (both in powers of 1024); None when it is no amount of memory.

    >>> memory_gib("512 MB"), memory_gib("memory_gb * 2")
    (0.5, None)
    """
    matched = _MEMORY.fullmatch(text)
    return None if matched is None else float(matched[1]) * _GIB[matched[2][0].upper()]


def study_name(name: str) -> str:
    """A study name, which must also be a valid folder name."""
    if not _STUDY.fullmatch(name):
        raise ValueError(
            f"got {name!r}; use up to 100 letters, digits, '.', '_' and '-', starting with a letter or digit."
        )
    return name


def shortened(value: object) -> str:
    """A value as an error message shows it."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def as_list(value: Any) -> list[Any]:
    """A value that may also be written as a list of values, as a list; None is an empty one."""
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]


def short_form(schema: dict[str, Any]) -> ConfigDict:
    """The pydantic settings of a section that may also be written in the short form that `schema` describes."""

    def extra(long: dict[str, Any]) -> None:
        full = {"type": "object", "properties": long.pop("properties"), "additionalProperties": False}
        if "required" in long:
            full["required"] = long.pop("required")
        for key in ("type", "additionalProperties"):
            long.pop(key, None)
        long["anyOf"] = [schema, full]

    return ConfigDict(json_schema_extra=extra)


def _secret_source(value: object) -> str:
    if not isinstance(value, str) or not value.startswith(("env:", "file:")) or not value.split(":", 1)[1]:
        # The message never repeats the value: it may be the secret.
        raise ValueError(
            "a secret is given by reference only; write 'env:NAME' (a variable of your shell) or 'file:PATH', never its value."
        )
    return value


def _env_name(value: object) -> str:
    if not isinstance(value, str) or not _ENV_NAME.fullmatch(value):
        raise ValueError(f"{value!r} is not a valid environment variable name; use letters, digits and underscores.")
    return value


def _env_value(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} cannot be the value of an environment variable; write a string in quotes.")
    return str(value)


SecretSource = Annotated[
    str,
    BeforeValidator(_secret_source),
    WithJsonSchema(
        {"type": "string", "pattern": "^(env|file):.+", "description": "env:NAME or file:PATH, never the value"}
    ),
]
"""Where the value of a secret is read when a trial starts."""

EnvName = Annotated[
    str, BeforeValidator(_env_name), WithJsonSchema({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})
]
"""The name of an environment variable."""

EnvValue = Annotated[str, BeforeValidator(_env_value), WithJsonSchema({"type": ["string", "number"]})]
"""The value of an environment variable; `${name}` is replaced by a value of the configuration."""

Run = Annotated[
    str | list[str],
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "array", "items": {"type": ["string", "number"]}, "minItems": 1},
                {"type": "string", "minLength": 1},
            ],
            "description": "a list of arguments, or a script",
        }
    ),
]
"""A command: a list of arguments, or a script."""
