"""`${name}` in the texts of a job file: replaced by the values of a configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lynceus.errors import InputError, did_you_mean
from lynceus.space.table import Space

PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][\w.\-]*)\}")
_ANY_NAME = re.compile(r"\$\{([^{}]*)\}")


def as_text(value: object) -> str:
    """The value of a parameter as jobs and schedulers read it.

    >>> as_text(True), as_text(4), as_text(0.1), as_text("a b")
    ('true', '4', '0.1', 'a b')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def fill(text: str, values: Mapping[str, object]) -> str:
    """A text with values in place of `${name}`; unknown names stay as they are.

    >>> fill("--lr=${lr} ${other}", {"lr": 0.1})
    '--lr=0.1 ${other}'
    """

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        return as_text(values[name]) if name in values else match.group(0)

    return PLACEHOLDER.sub(value, text)


def names_in(text: object) -> list[str]:
    """What stands between `${` and `}`, whether or not it can be a name; no names if this is not a text."""
    return _ANY_NAME.findall(text) if isinstance(text, str) else []


def check_column(name: str, space: Space, field: str) -> None:
    """Raise `InputError` if `${name}` in a field of the job file is not a column of the space."""
    if name not in space.columns:
        hint = did_you_mean(name, space.columns) or f" Columns are {', '.join(space.columns)}."
        raise InputError(f"{field}: ${{{name}}} is not a column of the space.{hint}")


def row_values(space: Space, row: int) -> dict[str, object]:
    """Every column of a row as Python values, not NumPy ones."""
    return {
        name: column[row].item() if hasattr(column[row], "item") else column[row]
        for name, column in space.columns.items()
    }
