"""Past measurements from a CSV file with one run per row."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lynceus.analysis.trial_rows import of_csv_cell
from lynceus.errors import InputError, did_you_mean
from lynceus.problem.problem import Problem
from lynceus.problem.units import parse_duration
from lynceus.space.column import listed
from lynceus.space.parameter import Parameter
from lynceus.space.user_file import read_file, table_text
from lynceus.study.study import Study

_TIMES = ("runtime_s", "runtime", "time_s", "time", "seconds", "duration")


@dataclass(frozen=True)
class Measurement:
    """One past run."""

    row: int
    seconds: float
    metrics: Mapping[str, float]


def read_measurements(path: Path, problem: Problem, *, skip_unknown: bool) -> tuple[list[Measurement], int]:
    """The runs in a file, and the number of rows that were left out because their configuration is not in the space.

    Columns: every parameter (its name or `params_…`), the running time (`runtime`, `runtime_s`, …), and every metric of objective and
    constraints (its name or `metrics_…`): a run without one would count as one that meets no limit.
    Rows with a state other than COMPLETE are ignored, so that files of `lynceus export --to csv` can be imported.
    """
    heading, rows = _table(path)
    place = {name: index for index, name in enumerate(heading)}
    time = next((name for name in _TIMES if name in place), None)
    if time is None:
        raise InputError(
            f"{path}: there is no column with the running time; name it 'runtime' (the file has {listed(heading)})."
        )
    columns = {one.name: _column(path, place, one) for one in problem.space.parameters}
    metrics = {name: _metric_column(path, place, name) for name in problem.metrics}
    found, skipped = [], 0
    for line, cells in rows:
        if "state" in place and cells[place["state"]] not in ("", "COMPLETE"):
            continue
        where = f"{path}:{line}"
        seconds = parse_duration(cells[place[time]], f"{where}: {time}")
        if not seconds > 0:
            raise InputError(f"{where}: {time} is {cells[place[time]]!r}, but a running time above 0 is needed.")
        reported = {name: _number(cells[index], f"{where}: {name}") for name, index in metrics.items() if cells[index]}
        try:
            point = {
                one.name: parsed_value(one, of_csv_cell(cells[index]))
                for one in problem.space.parameters
                if (index := columns[one.name]) is not None and cells[index]
            }
            row = problem.space.row(point)
        except InputError as error:
            if not skip_unknown:
                raise InputError(f"{where}: {error} (--skip-unknown leaves such rows out)") from None
            skipped += 1
            continue
        found.append(Measurement(row, seconds, reported))
    return found, skipped


def add_measurements(study: Study, found: Sequence[Measurement]) -> int:
    """Add measurements that the study does not have yet, all or none; returns how many are new."""
    point = study.problem.space.point
    with study.journal.exclusive():
        known = {(seen.row, seen.outcome.seconds) for seen in study.observations}
        new = [one for one in found if (one.row, one.seconds) not in known]
        study.add_trials((point(one.row), one.seconds, one.metrics) for one in new)
    return len(new)


def _table(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    try:
        reader = csv.reader(table_text(read_file(path), path))
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{path}: this is not a CSV file in UTF-8; save it as UTF-8.") from None
    if len(rows) < 2:
        raise InputError(f"{path}: the file has no rows below its header.")
    heading = rows[0][1]
    for line, cells in rows[1:]:
        if len(cells) != len(heading):
            raise InputError(f"{path}:{line}: the row has {len(cells)} cells and the header has {len(heading)}.")
    return heading, rows[1:]


def _column(path: Path, place: Mapping[str, int], parameter: Parameter) -> int | None:
    for name in (f"params_{parameter.name}", parameter.name):
        if name in place:
            return place[name]
    if parameter.when is not None:
        return None
    hint = did_you_mean(parameter.name, place) or f" The file has {listed(place)}."
    raise InputError(f"{path}: there is no column for the parameter {parameter.name!r}.{hint}")


def _metric_column(path: Path, place: Mapping[str, int], metric: str) -> int:
    for name in (f"metrics_{metric}", metric):
        if name in place:
            return place[name]
    hint = did_you_mean(metric, place) or f" The file has {listed(place)}."
    raise InputError(f"{path}: there is no column for the metric {metric!r} of the objective or a constraint.{hint}")


def parsed_value(parameter: Parameter, text: str) -> object:
    """The value of a parameter that a text names; the text itself when the parameter has no such value."""
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
    return int(number) if number.is_integer() else number  # a message should show 2 as 2, not as 2.0


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where} is {text!r}, but a finite number is needed.")
    return number
