"""Past runs from a table with one run per row: a CSV file, or what `lynceus export` wrote."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lynceus.analysis.trial_rows import of_csv_cell
from lynceus.errors import InputError, did_you_mean
from lynceus.library.run_table import read_table
from lynceus.problem.problem import Problem
from lynceus.problem.units import parse_duration
from lynceus.space.column import listed
from lynceus.space.parameter import Parameter
from lynceus.study.past_runs import PastRun
from lynceus.study.study import Study
from lynceus.trial.outcome import FailureReason
from lynceus.trial.trial import STATES, TrialState

_METRICS = "metrics_"
_TIMES = ("runtime_s", "runtime", "time_s", "time", "seconds", "duration")


_ENDED = (TrialState.COMPLETE, TrialState.TIMEOUT, TrialState.FAIL)


@dataclass(frozen=True)
class Found:
    """What a table has for a study."""

    runs: tuple[PastRun, ...]
    unknown: int = 0
    """Rows that were left out because their configuration is not in the space."""
    running: int = 0
    """Rows that were left out because they have not ended."""


def read_measurements(path: Path, problem: Problem, *, skip_unknown: bool) -> Found:
    """The runs in a file: CSV, or JSON and Parquet as `lynceus export` writes them.

    Columns: every parameter (its name or `params_…`), the running time (`runtime`, `runtime_s`, …), and every metric of objective and
    constraints (its name or `metrics_…`): a finished run without one would count as one that meets no limit. With a column `state`, runs
    that were stopped (`TIMEOUT`) or failed (`FAIL`, with `reason` and `detail`) count as such; those that still run are left out.
    """
    heading, rows = read_table(path)
    place = {name: index for index, name in enumerate(heading)}
    time = next((name for name in _TIMES if name in place), None)
    if time is None:
        raise InputError(
            f"{path}: there is no column with the running time; name it 'runtime' (the file has {listed(heading)})."
        )
    columns = {one.name: _column(path, place, one) for one in problem.space.parameters}
    metrics = _metric_columns(path, place, problem, ended=not _all_unfinished(place, rows))
    found, unknown, running = [], 0, 0
    for line, cells in rows:
        where = f"{path}:{line}"
        state = _state(cells[place["state"]], where) if "state" in place else TrialState.COMPLETE
        if state is TrialState.RUNNING:
            running += 1
            continue
        runtime = _runtime(cells[place[time]], f"{where}: {time}", state)
        reported = {name: _number(cells[index], f"{where}: {name}") for name, index in metrics.items() if cells[index]}
        reason = _reason(cells[place["reason"]], where) if state is TrialState.FAIL and "reason" in place else None
        detail = of_csv_cell(cells[place["detail"]]) if "detail" in place else ""
        try:
            point = {
                one.name: parsed_value(one, of_csv_cell(cells[index]))
                for one in problem.space.parameters
                if (index := columns[one.name]) is not None and cells[index]
            }
            problem.space.row(point)
        except InputError as error:
            if not skip_unknown:
                raise InputError(f"{where}: {error} (--skip-unknown leaves such rows out)") from None
            unknown += 1
            continue
        found.append(PastRun(point, runtime, reported, state, reason, detail))
    return Found(tuple(found), unknown, running)


def of_runs(runs: Sequence[PastRun], running: int, problem: Problem, where: str, *, skip_unknown: bool) -> Found:
    """Runs of another tool that fit a study: their configurations are in its space, and finished ones have their time and metrics."""
    found, unknown = [], 0
    for place, one in enumerate(runs):
        try:
            problem.space.row(dict(one.params))
        except InputError as error:
            if not skip_unknown:
                raise InputError(f"{where}: trial {place}: {error} (--skip-unknown leaves such trials out)") from None
            unknown += 1
            continue
        if one.state is not TrialState.FAIL and one.runtime is None:
            raise InputError(f"{where}: trial {place} has no running time; set its user attribute 'runtime_s'.")
        missing = [name for name in problem.metrics if name not in one.metrics]
        if one.state is TrialState.COMPLETE and missing:
            raise InputError(f"{where}: trial {place} has no metric {missing[0]!r}; set it as a user attribute.")
        found.append(one)
    return Found(tuple(found), unknown, running)


def add_measurements(study: Study, found: Sequence[PastRun]) -> int:
    """Add runs that the study does not have yet, all or none; returns how many are new.

    Runs of the same configuration, state and time are the same ones: as many of them as the study has are known.
    """
    space = study.problem.space
    with study.journal.exclusive():
        known = Counter((seen.row, STATES[seen.outcome.end], seen.outcome.seconds) for seen in study.observations)
        new = []
        for one in found:
            seconds = 0.0 if one.runtime is None else parse_duration(one.runtime, "runtime")
            same = (space.row(dict(one.params)), TrialState(one.state), seconds)
            if known[same]:
                known[same] -= 1
            else:
                new.append(one)
        study.add_trials(new)
    return len(new)


def _state(text: str, where: str) -> TrialState:
    if text == "":
        return TrialState.COMPLETE
    if text not in TrialState.__members__:
        raise InputError(
            f"{where}: state is {text!r}, but one of {', '.join((*_ENDED, TrialState.RUNNING))} is needed."
        )
    return TrialState(text)


def _reason(text: str, where: str) -> str | None:
    if text and text not in list(FailureReason):
        raise InputError(f"{where}: reason is {text!r}, but one of {', '.join(FailureReason)} is needed.")
    return text or None


def _runtime(text: str, where: str, state: TrialState) -> float | None:
    """The running time; a run that failed may have none, or have failed at once."""
    if state is TrialState.FAIL and not text:
        return None
    seconds = parse_duration(text, where)
    if not seconds > 0 and state is not TrialState.FAIL:
        raise InputError(f"{where} is {text!r}, but a running time above 0 is needed.")
    return seconds


def _all_unfinished(place: Mapping[str, int], rows: Sequence[tuple[int, list[str]]]) -> bool:
    """Whether no run finished, so that none could report anything."""
    return "state" in place and all(cells[place["state"]] not in ("", TrialState.COMPLETE) for _, cells in rows)


def _metric_columns(path: Path, place: Mapping[str, int], problem: Problem, *, ended: bool) -> dict[str, int]:
    """The columns of metrics: those of objective and constraints, and all that are called `metrics_…`."""
    needed = {name: _metric_column(path, place, name) for name in problem.metrics} if ended else {}
    others = {name.removeprefix(_METRICS): index for name, index in place.items() if name.startswith(_METRICS)}
    return {**others, **needed}


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
