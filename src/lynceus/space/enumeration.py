"""From parameters to rows: every combination once, or the rows of a table, as codes.

A code is the position of a row's value in its parameter's ``values``; -1 means that the parameter is inactive there.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from lynceus.errors import InputError, did_you_mean, shown
from lynceus.space.column import BoolArray, Cell, Column, IntArray, as_column, is_number, listed, plain
from lynceus.space.expression import Expression
from lynceus.space.parameter import Categorical, Ordinal, Parameter

MOST_COMBINATIONS = 5_000_000
"""A product of parameters with more combinations than this, before any is forbidden, is an error."""
_NAMED = 12
"""Parameters that a message names."""
INACTIVE = -1


def check_parameters(parameters: Sequence[Parameter]) -> None:
    """Raise an error for an empty list, other types and repeated names."""
    if not parameters:
        raise InputError("A space needs at least one parameter: list what a configuration may choose.")
    seen: set[str] = set()
    for parameter in parameters:
        if not isinstance(parameter, Parameter):
            raise InputError(f"{shown(parameter)} is not a parameter: use Categorical, Ordinal, Integer or Float.")
        if parameter.name in seen:
            raise InputError(f"Two parameters are named {shown(parameter.name)}: rename one of them.")
        seen.add(parameter.name)


def enumerate_codes(parameters: Sequence[Parameter]) -> IntArray:
    """Codes ``[q, p]`` of all combinations, the last parameter changing fastest.

    A conditional parameter multiplies only the rows in which it is active; the others stay one row each, so no
    configuration appears twice.
    """
    if math.prod(len(one.values) for one in parameters if one.when is None) > MOST_COMBINATIONS:
        _refuse_size(parameters)  # before half of them fill the memory
    codes: list[IntArray] = []
    size = 1
    for index, parameter in enumerate(parameters):
        choices = len(parameter.values)
        if parameter.when is None:
            counts: IntArray = (
                np.full(size, choices, dtype=np.int64) if size * choices <= MOST_COMBINATIONS else np.array([])
            )
            total = size * choices
        else:
            active = _active(parameters, index, codes)
            counts = np.where(active, choices, 1)
            total = int(counts.sum())
        if total > MOST_COMBINATIONS:
            _refuse_size(parameters)
        origin = np.repeat(np.arange(size), counts)
        first = np.cumsum(counts) - counts
        position = np.arange(total) - first[origin]
        if parameter.when is not None:
            position = np.where(active[origin], position, INACTIVE)
        codes = [code[origin] for code in codes]
        codes.append(position)
        size = total
    return np.stack(codes, axis=1)


def codes_of_table(parameters: Sequence[Parameter], columns: Mapping[str, Sequence[Cell]]) -> IntArray:
    """Codes ``[q, p]`` of the rows of a table; a value that its parameter does not list is an error."""
    codes: list[IntArray] = []
    for index, parameter in enumerate(parameters):
        position: dict[Cell, int] = {value: code for code, value in enumerate(parameter.values)}
        cells = columns[parameter.name]
        if parameter.when is not None:
            position[None] = INACTIVE
        code = np.array([position.get(cell, -2) for cell in cells], dtype=np.int64)
        unknown = np.flatnonzero(code == -2)
        if unknown.size:
            value = cells[int(unknown[0])]
            hint = did_you_mean(value, parameter.values) or f" It may be {listed(parameter.values)}."
            raise InputError(
                f"Column {shown(parameter.name)} holds {shown(value)} in {row_numbers(unknown)}, "
                f"which the parameter does not list.{hint}"
            )
        if parameter.when is not None:
            wrong = np.flatnonzero(_active(parameters, index, codes) != (code != INACTIVE))
            if wrong.size:
                state = (
                    "has a value where it is inactive" if code[wrong[0]] != INACTIVE else "is empty where it is active"
                )
                raise InputError(
                    f"Column {shown(parameter.name)} {state} in {row_numbers(wrong)}: "
                    f"it is active when {shown(parameter.when)}."
                )
        codes.append(code)
    return np.stack(codes, axis=1)


def parameter_of_column(name: str, cells: Sequence[Cell]) -> Parameter:
    """The parameter that a table's column is: numbers are ordinal, in their order; anything else is categorical.

    >>> parameter_of_column("nodes", [8, 4, 8])
    Ordinal(name='nodes', values=(4, 8), when=None)
    """
    distinct = [cell for cell in dict.fromkeys(cells) if cell is not None]
    if all(is_number(cell) for cell in distinct):
        return Ordinal(name, tuple(sorted(distinct, key=lambda number: float(number))))
    return Categorical(name, tuple(distinct))


def parameter_column(parameter: Parameter, codes: IntArray) -> Column:
    """The values ``[q]`` behind one parameter's codes ``[q]``; None where it is inactive."""
    values = as_column(parameter.values)
    if not (codes == INACTIVE).any():
        return values[codes]
    with_none = np.empty(len(values) + 1, dtype=object)  # the code -1 reads the last place
    with_none[:-1] = values.tolist()
    return with_none[codes]


def plain_table(columns: Mapping[str, Sequence[object]]) -> dict[str, list[Cell]]:
    """The columns of a table as lists of plain scalars, all of one length; NaN is an error that names the rows."""
    table: dict[str, list[Cell]] = {}
    for name, values in columns.items():
        if isinstance(values, str) or not hasattr(values, "__len__"):
            raise InputError(
                f"Column {shown(name)} is {shown(values)}, but a list with one value per configuration is needed."
            )
        cells = values.tolist() if isinstance(values, np.ndarray) else list(values)
        odd = np.array(
            [isinstance(cell, float | np.floating) and not math.isfinite(cell) for cell in cells], dtype=np.bool_
        )
        if odd.any():
            rows = np.flatnonzero(odd)
            raise InputError(
                f"Column {shown(name)} holds {cells[int(rows[0])]} in {row_numbers(rows)}, but finite values are "
                "needed: fill them in or remove the rows."
            )
        table[str(name)] = [plain(cell, f"Column {shown(name)}, row {row}") for row, cell in enumerate(cells, start=1)]
    lengths = {name: len(cells) for name, cells in table.items()}
    if len(set(lengths.values())) > 1:
        one, other = min(lengths, key=lambda name: lengths[name]), max(lengths, key=lambda name: lengths[name])
        raise InputError(
            f"Column {shown(one)} has {lengths[one]} rows and column {shown(other)} has {lengths[other]}: "
            "all columns need one value per configuration."
        )
    if not table or not next(iter(lengths.values())):
        raise InputError("The table has no rows: a space needs at least one configuration.")
    return table


def refuse_duplicates(parameters: Sequence[Parameter], codes: IntArray) -> None:
    """Raise an error if two rows of a table are the same configuration."""
    _, first, inverse = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    original = first[np.reshape(inverse, -1)]
    repeats = np.flatnonzero(original != np.arange(len(codes)))
    if repeats.size:
        names = ", ".join(parameter.name for parameter in parameters)
        raise InputError(
            f"The table lists a configuration twice: {row_numbers(repeats)} equals row {int(original[repeats[0]]) + 1} "
            f"in {names}; remove the repeats, or add the column that distinguishes them to the parameters."
        )


def row_numbers(rows: IntArray) -> str:
    """Row numbers from 1, the first three.

    >>> row_numbers(np.array([0, 4, 5, 9]))
    'rows 1, 5, 6 (4 in all)'
    """
    numbers = ", ".join(str(int(row) + 1) for row in rows[:3])
    more = f" ({len(rows)} in all)" if len(rows) > 3 else ""
    return f"row{'s' if len(rows) > 1 else ''} {numbers}{more}"


def _active(parameters: Sequence[Parameter], index: int, codes: Sequence[IntArray]) -> BoolArray:
    """Where parameter ``index`` is active ``[q]``, given the codes of those before it."""
    parameter = parameters[index]
    condition = Expression.parse(parameter.when, f"Parameter {shown(parameter.name)}: when")
    earlier = {other.name: place for place, other in enumerate(parameters[:index])}
    for name in condition.names:
        if name not in earlier and any(other.name == name for other in parameters):
            raise InputError(
                f"Parameter {shown(parameter.name)}: its condition {shown(parameter.when)} uses {shown(name)}, "
                "which is not listed before it: list that parameter first."
            )
    condition.check_names(earlier)
    size = len(codes[0]) if codes else 1
    columns = {name: parameter_column(parameters[earlier[name]], codes[earlier[name]]) for name in condition.names}
    return condition.mask(columns or {"": np.zeros(size, dtype=np.int64)})


def _refuse_size(parameters: Sequence[Parameter]) -> None:
    named = [f"{parameter.name} ({len(parameter.values):,})" for parameter in parameters]
    sizes = " x ".join(named[:_NAMED] + ["..."] * (len(named) > _NAMED))
    raise InputError(
        f"The parameters give more than {MOST_COMBINATIONS:,} combinations: {sizes}. Use fewer values or larger steps."
    )
