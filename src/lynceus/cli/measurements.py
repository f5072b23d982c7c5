"""Measurements from elsewhere: a CSV file with one run per row."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lynceus.errors import InputError
from lynceus.problem import Problem
from lynceus.space import Parameter
from lynceus.space.column import listed, nearest
from lynceus.units import parse_duration

_TIMES = ("runtime_s", "runtime", "time_s", "time", "seconds", "duration")


@dataclass(frozen=True)
class Measurement:
    """One past run."""

    row: int
    seconds: float
    metrics: Mapping[str, float]


def read_measurements(path: Path, problem: Problem, *, skip_unknown: bool) -> tuple[list[Measurement], int]:
    """The runs in a file, and how many were left out because their configuration is not in the space.

    Columns: every parameter (plain or as `params_…`), the running time (`runtime`, `runtime_s`, …), and the metrics that goal and
    limits speak of (plain or as `metrics_…`). Rows whose state is given and is not COMPLETE are left out, so that what
    `lynceus export --to csv` writes can be read again.
    """
    heading, rows = _table(path)
    place = {name: index for index, name in enumerate(heading)}
    time = next((name for name in _TIMES if name in place), None)
    if time is None:
        raise InputError(
            f"{path}: no column holds the running time; name one of them 'runtime' (it has {listed(heading)})."
        )
    columns = {one.name: _column(path, place, one) for one in problem.space.parameters}
    metrics = {name: place.get(f"metrics_{name}", place.get(name)) for name in problem.metrics}
    found, skipped = [], 0
    for line, cells in rows:
        if "state" in place and cells[place["state"]] not in ("", "COMPLETE"):
            continue
        where = f"{path}:{line}"
        seconds = parse_duration(cells[place[time]], f"{where}: {time}")
        if not seconds > 0:
            raise InputError(f"{where}: {time} is {cells[place[time]]!r}, but a running time above 0 is needed.")
        reported = {
            name: _number(cells[index], f"{where}: {name}")
            for name, index in metrics.items()
            if index is not None and cells[index]
        }
        try:
            point = {
                one.name: _value(one, cells[index])
                for one in problem.space.parameters
                if (index := columns[one.name]) is not None and cells[index]
            }
            row = problem.space.row(point)
        except InputError as error:
            if not skip_unknown:
                raise InputError(f"{where}: {error} (leave such rows out with --skip-unknown)") from None
            skipped += 1
            continue
        found.append(Measurement(row, seconds, reported))
    return found, skipped


def _table(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{path}: this is not a CSV file in UTF-8.") from None
    if len(rows) < 2:
        raise InputError(f"{path}: the file has no rows below its heading.")
    heading = rows[0][1]
    for line, cells in rows[1:]:
        if len(cells) != len(heading):
            raise InputError(f"{path}:{line}: the row has {len(cells)} cells where the heading has {len(heading)}.")
    return heading, rows[1:]


def _column(path: Path, place: Mapping[str, int], parameter: Parameter) -> int | None:
    for name in (f"params_{parameter.name}", parameter.name):
        if name in place:
            return place[name]
    if parameter.when is not None:
        return None
    hint = nearest(parameter.name, place) or f" It has {listed(place)}."
    raise InputError(f"{path}: there is no column for the parameter {parameter.name!r}.{hint}")


def _value(parameter: Parameter, text: str) -> object:
    """The parameter's value that a cell writes; the cell itself when there is none."""
    for value in parameter.values:
        if str(value) == text or (isinstance(value, bool) and str(value).lower() == text.lower()):
            return value
    try:
        number = float(text)
    except ValueError:
        return text
    for value in parameter.values:
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and math.isclose(value, number, rel_tol=1e-12)
        ):
            return value
    return number


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where} is {text!r}, but a finite number is needed.")
    return number
