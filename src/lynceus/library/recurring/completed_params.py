"""A configuration of which some values are given, and the others come from one that is known."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lynceus.errors import InputError
from lynceus.space.column import BoolArray
from lynceus.space.enumeration import INACTIVE
from lynceus.space.parameter import Parameter, values_listed
from lynceus.space.table import Space

Known = Callable[[], Mapping[str, Any] | None]
"""The configuration that other values are taken from; None where there is none. Finding it may take a model."""


def completed_row(space: Space, given: Mapping[str, Any], known: Known, command: Sequence[str]) -> int:
    """The row of the one configuration that has the given values, and the known ones for all other parameters.

    Where it is not the only one, an error names the missing parameters and completes `command`, the command line that lacks them.
    """
    required = {one.name for one in space.parameters if one.when is None}
    given = {name: value for name, value in given.items() if value is not None or name not in required}
    rows = _having(space, given, {})
    if not rows.any():
        return space.row({**space.point(0), **given})  # its error says what is wrong
    base: Mapping[str, Any] = {}
    if rows.sum() > 1:
        names = {one.name for one in space.parameters} - given.keys()
        base = {name: value for name, value in (known() or {}).items() if name in names}
        rows = _having(space, given, base)
        if not rows.any():
            return space.row({**base, **given})  # its error names the nearest configuration
    if rows.sum() == 1:
        return int(np.flatnonzero(rows)[0])
    missing = [one for one, codes in zip(space.parameters, space.codes[rows].T, strict=True) if len(set(codes)) > 1]
    listed, are, them = " and ".join(one.name for one in missing), "is", "it"
    if len(missing) > 1:
        are, them = "are", "them"
    values = "; ".join(f"{one.name} may be {values_listed(one)}" for one in missing)
    options = [f"--param {shlex.quote(f'{name}={value}')}" for name, value in given.items()]
    line = " ".join([shlex.join(command), *options, *(f"--param {one.name}=VALUE" for one in missing)])
    why = "there is no configuration yet to take" if not base else "the configuration of the other values does not have"
    raise InputError(
        f"{listed} {are} not given, and {why} {them}{'' if base else ' from'}; give every value: {line} ({values})."
    )


def _having(space: Space, given: Mapping[str, Any], base: Mapping[str, Any]) -> BoolArray:
    """The rows `[q]` that have the given values, and those of `base` unless these are inactive."""
    rows = np.ones(len(space), dtype=bool)
    names = {one.name for one in space.parameters}
    if any(name not in names for name in given):
        return ~rows
    for parameter, codes in zip(space.parameters, space.codes.T, strict=True):
        if given.get(parameter.name) is not None:
            rows &= codes == _code(parameter, given[parameter.name])
        elif parameter.name in given and parameter.when is not None:
            rows &= codes == INACTIVE
        elif parameter.name in base:
            rows &= (codes == _code(parameter, base[parameter.name])) | (codes == INACTIVE)
    return rows


def _code(parameter: Parameter, value: object) -> int:
    """The position of a value; -2, which no row has, where the parameter cannot have it."""
    return parameter.values.index(value) if value in parameter.values else INACTIVE - 1
