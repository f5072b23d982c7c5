"""A replayable job: a problem, and the measurements that answer for the real world."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lynceus.document import Document
from lynceus.document.complaint import hint
from lynceus.errors import InputError
from lynceus.executor import Measurements
from lynceus.fraction import Fraction
from lynceus.problem import Budget, Goal, Limit, Problem, Tariff
from lynceus.replay.past import past_runs
from lynceus.replay.score import Optimum, optimum
from lynceus.replay.shipped import shipped_jobs
from lynceus.replay.spec import DeadlineSpec, ParameterSpec, ReplaySpec
from lynceus.replay.tables import Table, find_table, read_table
from lynceus.space import Categorical, Cell, Expression, Float, FloatArray, Integer, Ordinal, Parameter, Space
from lynceus.surrogate.past_pairs import PastRuns
from lynceus.units import format_duration, format_money, parse_money


@dataclass(frozen=True)
class ReplayJob:
    """What a policy is asked, what really happens, and the best that could have been found."""

    name: str
    problem: Problem
    measurements: Measurements
    optimum: Optimum
    target: float | None = None
    """Progress at which the job is done; nothing when progress was not recorded."""
    past: PastRuns | None = None
    """Runs of other jobs; nothing when the file names none, or their table is not there."""


def load_job(
    spec: str | Path,
    *,
    deadline_quantile: float | None = None,
    budget: str | float | None = None,
    deadline_fastest: float | None = None,
    budget_means: float | None = None,
    where: str | None = None,
    tariff: Tariff | None = None,
) -> ReplayJob:
    """A job from a YAML file or by the name of one that ships; what is given here replaces what the file says.

    `deadline_fastest` is a deadline in multiples of the fastest run, `budget_means` a budget in multiples of the mean cost of a
    run (both as in the thesis), `where` an expression over the columns that keeps some of the rows.
    """
    path = job_path(spec)
    document = Document.read(path)
    model = document.check(ReplaySpec)
    table_path = find_table(document, path, model.table)
    build = _Build(document, model, read_table(table_path), table_path.name)
    if where is not None:
        build = build.kept(where)
    seconds, space = build.seconds(), build.space()
    deadline = build.deadline(seconds, deadline_quantile)
    if deadline_fastest is not None:
        deadline = deadline_fastest * float(seconds.min())
    limits = ((Limit("time", deadline),) if deadline is not None else ()) + build.constraints()
    metrics = build.metrics()
    billing = model.billing
    tariff = tariff or Tariff(billing.granularity, billing.minimum, billing.boot, billing.fee)
    problem = build.with_fraction(Problem(space, build.goal(), limits, Budget(), tariff))
    best = build.reachable(problem, Measurements(seconds, metrics))
    money, named = math.inf if model.budget is None else model.budget, document.at("budget")
    if budget is not None:
        money, named = parse_money(budget, "--budget"), "--budget"
    if budget_means is not None:
        money, named = budget_means * float(tariff.charges(seconds, problem.price).mean()), "budget in means"
    if money <= 0 or money < best.cheapest_run_usd * (1 - 1e-9):
        raise InputError(
            f"{named}: {format_money(money)} is below the cheapest run of the table, "
            f"{format_money(best.cheapest_run_usd)}; raise the budget."
        )
    every = model.progress.every if model.progress else 30.0
    return ReplayJob(
        model.name or path.stem,
        problem.with_budget(money),
        Measurements(seconds, metrics, build.progress(), every),
        best,
        model.progress.target if model.progress else None,
        past_runs(document, model, build.table),
    )


def job_path(spec: str | Path) -> Path:
    """The file of a job that was named, or given as a path."""
    shipped = shipped_jobs()
    if str(spec) in shipped:
        return shipped[str(spec)]
    path = Path(spec)
    if path.suffix.lower() in (".yaml", ".yml") or path.is_file():
        return path
    known = hint(str(spec), shipped)
    if known.startswith("; known"):
        known = "; 'lynceus replay --list' shows the jobs that ship, or give the path of a YAML file."
    raise InputError(f"replay: there is no job {str(spec)!r}{known}")


def table_present(spec: str | Path) -> bool:
    """Whether the table of a job is where it is looked for."""
    path = job_path(spec)
    document = Document.read(path)
    try:
        find_table(document, path, document.check(ReplaySpec).table)
    except InputError:
        return False
    return True


@dataclass(frozen=True)
class _Build:
    """Reads one column after the other, and knows where each was asked for."""

    document: Document
    model: ReplaySpec
    table: Table
    table_name: str

    def column(self, name: str, *path: str | int) -> list[Cell]:
        if name not in self.table:
            raise InputError(
                f"{self.document.at(*path)}: the table {self.table_name} has no column '{name}'{hint(name, self.table)}"
            )
        return self.table[name]

    def numbers(self, name: str, *path: str | int) -> FloatArray:
        """A column of numbers `[q]`, NaN where a cell is empty."""
        cells = self.column(name, *path)
        for row, cell in enumerate(cells, start=1):
            if isinstance(cell, str | bool):
                raise InputError(
                    f"{self.document.at(*path)}: column '{name}' of {self.table_name} holds {cell!r} in row {row}; numbers are needed."
                )
        return np.array([math.nan if cell is None else float(cell) for cell in cells])

    def kept(self, where: str) -> _Build:
        """The same table with only those rows where an expression over its columns is true."""
        mask = Expression.parse(where, "where").mask(self.table)
        if not mask.any():
            raise InputError(f"where: no row of {self.table_name} has {where}; relax the expression.")
        table = {
            name: [cell for cell, kept in zip(cells, mask, strict=True) if kept] for name, cells in self.table.items()
        }
        return replace(self, table=table)

    def seconds(self) -> FloatArray:
        seconds = self.numbers(self.model.time, "time")
        self._refuse(seconds, f"{self.document.at('time')}: column '{self.model.time}'", "a time above 0 seconds")
        return seconds

    def _refuse(self, values: FloatArray, where: str, needed: str) -> None:
        wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
        if wrong.size:
            value = values[wrong[0]]
            came = "nothing" if np.isnan(value) else f"{value:g}"
            more = f" (and {wrong.size - 1} more rows)" if wrong.size > 1 else ""
            raise InputError(
                f"{where} of {self.table_name} holds {came} in row {wrong[0] + 1}{more}; "
                f"every configuration needs {needed}: correct or remove it."
            )

    def space(self) -> Space:
        given = self.model.parameters
        named = given if isinstance(given, dict) else dict.fromkeys(given)
        if not named:
            raise InputError(f"{self.document.at('parameters')}: the list is empty; name the columns that were varied.")
        if isinstance(given, list) and len(named) < len(given):
            twice = next(name for place, name in enumerate(given) if name in given[:place])
            raise InputError(f"{self.document.at('parameters')}: '{twice}' is listed twice; keep one of them.")
        parameters: list[Parameter] = []
        for place, (name, how) in enumerate(named.items()):
            path = ("parameters", name if isinstance(given, dict) else place)
            parameters.append(self._parameter(name, self.column(name, *path), how or ParameterSpec(), path))
        for place, name in enumerate(self.model.features):
            self.column(name, "features", place)
        price = self.model.price
        if isinstance(price, str) and price.isidentifier():
            self._refuse(
                self.numbers(price, "price"), f"{self.document.at('price')}: column '{price}'", "a price above 0"
            )
        features = [*named, *(name for name in self.model.features if name not in named)]
        try:
            return Space.from_table(self.table, parameters, features, price)
        except InputError as error:
            raise InputError(f"{self.document.name} ({self.table_name}): {error}") from None

    def _parameter(
        self, name: str, cells: Sequence[Cell], how: ParameterSpec, path: tuple[str | int, ...]
    ) -> Parameter:
        where = self.document.at(*path)
        values = [cell for cell in dict.fromkeys(cells) if cell is not None]
        numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        kind = how.kind or ("numeric" if how.log else "ordinal" if numeric or how.order else "categorical")
        if not values:
            raise InputError(f"{where}: column '{name}' of {self.table_name} is empty; leave it out.")
        if (kind == "numeric" and not numeric) or (how.log and kind != "numeric"):
            odd = next((value for value in values if isinstance(value, str | bool)), kind)
            raise InputError(f"{where}: {odd!r} in '{name}' is not a number; numeric and log parameters need numbers.")
        if how.order is not None and (kind != "ordinal" or set(how.order) != set(values)):
            raise InputError(
                f"{where}: order lists {', '.join(map(str, how.order))}, but the ordinal column '{name}' "
                f"holds {', '.join(map(str, values))}; list each value once."
            )
        if numeric and kind != "categorical":
            values.sort(key=float)
        try:
            if kind == "categorical":
                return Categorical(name, tuple(values))
            if kind == "ordinal":
                return Ordinal(name, tuple(how.order or values))
            if all(isinstance(value, int) for value in values):
                return Integer(name, log=how.log, values=tuple(int(value) for value in values))
            return Float(name, log=how.log, values=tuple(float(value) for value in values))
        except InputError as error:
            raise InputError(f"{where}: {error}") from None

    def deadline(self, seconds: FloatArray, override: float | None) -> float | None:
        if override is not None:
            if not 0 <= override <= 1:
                raise InputError(f"--deadline-quantile: {override:g} came; give a number from 0 to 1, such as 0.5.")
            return quantile_of(seconds, override)
        deadline = self.model.deadline
        if isinstance(deadline, DeadlineSpec):
            return quantile_of(seconds, deadline.quantile)
        if deadline is not None and deadline <= 0:
            raise InputError(f"{self.document.at('deadline')}: nothing runs in no time; give a positive duration.")
        return deadline

    def constraints(self) -> tuple[Limit, ...]:
        limits = []
        for place, text in enumerate(self.model.constraints):
            try:
                limit = Limit.parse(text)
            except InputError as error:
                raise InputError(f"{self.document.at('constraints', place)}: {_unprefixed(error)}") from None
            self._need_metric(limit.metric, "constraints", place)
            limits.append(limit)
        return tuple(limits)

    def goal(self) -> Goal:
        try:
            goal = Goal.parse(self.model.objective)
        except InputError as error:
            raise InputError(f"{self.document.at('objective')}: {_unprefixed(error)}") from None
        self._need_metric(goal.metric, "objective")
        return goal

    def _need_metric(self, metric: str, *path: str | int) -> None:
        known = ["time", "cost", *self.model.metrics]
        if metric not in known:
            raise InputError(
                f"{self.document.at(*path)}: the metric '{metric}' has no column under 'metrics'{hint(metric, known)}"
            )

    def metrics(self) -> dict[str, FloatArray]:
        named = {name: self.numbers(column, "metrics", name) for name, column in self.model.metrics.items()}
        return {**self.details(), **named}

    def details(self) -> dict[str, FloatArray]:
        """Columns of the further table, row by row of the main one; NaN where it has no such row."""
        wanted = self.model.details
        if wanted is None:
            return {}
        try:
            table = read_table(find_table(self.document, Path(self.document.name), wanted.table))
        except InputError:
            return {}
        other = replace(self, table=table, table_name=wanted.table)
        place_of = {
            key: i for i, key in enumerate(zip(*(other.column(c, "details", "on") for c in wanted.on), strict=True))
        }
        keys = zip(*(self.column(column, "details", "on") for column in wanted.on), strict=True)
        places = np.array([place_of.get(key, -1) for key in keys])
        numbers = {name: other.numbers(name, "details", "table") for name in table if name not in wanted.on}
        return {name: np.where(places >= 0, values[places], math.nan) for name, values in numbers.items()}

    def with_fraction(self, problem: Problem) -> Problem:
        """The problem with its masks, when a column is the share of the data."""
        given = self.model.fraction
        if given is None:
            return problem
        known = [parameter.name for parameter in problem.space.parameters]
        if given.column not in known:
            raise InputError(
                f"{self.document.at('fraction', 'column')}: '{given.column}' is not among the parameters{hint(given.column, known)}"
            )
        try:
            return problem.with_fraction(Fraction(given.column, given.test, given.answer))
        except InputError as error:
            raise InputError(f"{self.document.at('fraction')}: {_unprefixed(error)}") from None

    def progress(self) -> tuple[tuple[float, ...], ...] | None:
        if self.model.progress is None:
            return None
        name, traces = self.model.progress.column, []
        for row, cell in enumerate(self.column(name, "progress", "column"), start=1):
            try:
                traces.append(tuple(float(word) for word in ("" if cell is None else str(cell)).split()))
            except ValueError:
                raise InputError(
                    f"{self.document.at('progress', 'column')}: column '{name}' of {self.table_name} holds {str(cell)[:40]!r} "
                    f"in row {row}; numbers separated by blanks are needed."
                ) from None
        return tuple(traces)

    def reachable(self, problem: Problem, measured: Measurements) -> Optimum:
        """The optimum; a mistake when no configuration of the table keeps the limits."""
        best = optimum(problem, measured)
        if best is not None:
            return best
        fastest = float(measured.seconds.min())
        if fastest > problem.deadline_s:
            where = self.document.at("deadline" if self.model.deadline is not None else "constraints")
            raise InputError(
                f"{where}: no configuration of the table finishes within {format_duration(problem.deadline_s)}; "
                f"the fastest needs {format_duration(fastest)}; raise the deadline."
            )
        limits = " and ".join(str(limit) for limit in problem.limits)
        raise InputError(
            f"{self.document.at('constraints')}: no configuration of the table keeps {limits} together; relax one of them."
        )


def quantile_of(seconds: FloatArray, q: float) -> float:
    """The value at 0-based index round(n·q), halves up, of the sorted times: with q = 0.5 the deadline of the papers.

    >>> quantile_of(np.array([4.0, 1.0, 3.0, 2.0]), 0.5)
    3.0
    """
    return float(np.sort(seconds)[min(math.floor(len(seconds) * q + 0.5), len(seconds) - 1)])


def _unprefixed(error: InputError) -> str:
    """A message of the problem's own parsers without the field that they name; the document names it with its line."""
    text = str(error)
    for prefix in ("constraints: ", "objective: ", "fraction: "):
        text = text.removeprefix(prefix)
    return text
