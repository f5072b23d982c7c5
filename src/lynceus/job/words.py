"""The small values of a job file: memory, environment variables, references to secrets, each with its own sentence when wrong."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

_MEMORY = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]i?B?)\s*", re.IGNORECASE | re.ASCII)
_GIB = {"K": 2.0**-20, "M": 2.0**-10, "G": 1.0, "T": 2.0**10}
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STUDY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def memory_gib(text: str) -> float | None:
    """GiB of a text such as `512 MB` or `2GiB` (both count in powers of 1024); nothing when it is none.

    >>> memory_gib("512 MB"), memory_gib("memory_gb * 2")
    (0.5, None)
    """
    matched = _MEMORY.fullmatch(text)
    return None if matched is None else float(matched[1]) * _GIB[matched[2][0].upper()]


def _secret_source(value: object) -> str:
    if not isinstance(value, str) or not value.startswith(("env:", "file:")) or not value.split(":", 1)[1]:
        # The value itself is never repeated: it may be the secret.
        raise ValueError(
            "a secret is given by reference only: write 'env:NAME' (a variable of your shell) or 'file:PATH', never its value."
        )
    return value


def _env_name(value: object) -> str:
    if not isinstance(value, str) or not _ENV_NAME.fullmatch(value):
        raise ValueError(f"{value!r} is no name for an environment variable: use letters, digits and underscores.")
    return value


def _env_value(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} cannot be the value of an environment variable: write a text in quotes.")
    return str(value)


SecretSource = Annotated[
    str,
    BeforeValidator(_secret_source),
    WithJsonSchema(
        {"type": "string", "pattern": "^(env|file):.+", "description": "env:NAME or file:PATH, never the value"}
    ),
]
"""Where a secret's value is found when a trial starts."""

EnvName = Annotated[
    str, BeforeValidator(_env_name), WithJsonSchema({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"})
]
"""The name of an environment variable."""

EnvValue = Annotated[str, BeforeValidator(_env_value), WithJsonSchema({"type": ["string", "number"]})]
"""The value of an environment variable; `${name}` stands for a value of the configuration."""


def study_name(name: str) -> str:
    """A name that can also be the name of a folder."""
    if not _STUDY.fullmatch(name):
        raise ValueError(
            f"{name!r} came: use up to 100 letters, digits, '.', '_' and '-', with a letter or digit first."
        )
    return name
