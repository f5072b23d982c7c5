"""A replayable job: a problem, and the measurements that stand for its runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lynceus.errors import InputError, explained_in, hint
from lynceus.executors.table import Measurements
from lynceus.jobfile.yaml.document import Document
from lynceus.models.past_pairs import PastRuns
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.data_fraction import Fraction
from lynceus.problem.formula import PRICE, QUANTITY_WORDS
from lynceus.problem.goal import refuse_price
from lynceus.problem.history import PastJob
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.problem.units import format_duration, format_money, parse_money
from lynceus.replay.job_file import DeadlineSpec, ReplaySpec
from lynceus.replay.job_table import JobTable
from lynceus.replay.past import past_runs
from lynceus.replay.score import Optimum, optimum
from lynceus.replay.shipped import shipped_jobs
from lynceus.replay.tables import find_table
from lynceus.space.column import FloatArray


@dataclass(frozen=True)
class ReplayJob:
    """The problem that a policy sees, the measurements behind it, and the best configuration of the table."""

    name: str
    problem: Problem
    measurements: Measurements
    optimum: Optimum
    target: float | None = None
    """Progress at which the job is done; None when progress was not recorded."""
    past: PastRuns | None = None
    """Runs of other jobs; None when the file names none, or their table is missing."""


@dataclass(frozen=True, slots=True)
class RowSample:
    """A random part of a table: another job of the same kind, of which nothing was chosen on its exact rows."""

    share: float
    """Of the rows, above 0 and at most 1."""
    seed: int


@explained_in("replay.md#your-own-table")
def load_job(
    spec: str | Path,
    *,
    deadline_quantile: float | None = None,
    budget: str | float | None = None,
    deadline_fastest: float | None = None,
    budget_means: float | None = None,
    where: str | None = None,
    billing: Billing | None = None,
    price: str | None = None,
    objective: str | None = None,
    time: str | None = None,
    history: Sequence[str] | None = None,
    rows: RowSample | None = None,
) -> ReplayJob:
    """A job from a YAML file, or by the name of a shipped one; arguments override the fields of the file.

    `deadline_fastest` is a deadline in multiples of the fastest run, `budget_means` a budget in multiples of the mean cost of a
    run (both as in the thesis), `where` an expression over the columns that selects rows, `price` one for dollars per hour.
    `time` is another column or expression for seconds. `objective` is another objective: of the columns that it reads, those that are
    neither parameters nor features are reported by runs. `history` are other jobs whose whole tables a policy may learn from.
    `rows` draws some rows of the table; deadlines and the optimum are those of the rows that are left.
    """
    path = job_path(spec)
    table = JobTable.read(path)
    table = _overridden(table, price, time, objective)
    if where is not None:
        table = table.where(where)
    if rows is not None:
        table = table.sampled(rows.share, rows.seed)
    measurements = table.measurements()
    deadline = _deadline(table.spec, deadline_quantile, deadline_fastest)
    deadline_s = _deadline_s(table, measurements.seconds, deadline)
    problem = _problem(table, deadline_s, billing or table.spec.billing.billing())
    best = _optimum(table, problem, measurements)
    usd = _budget_usd(table, problem, measurements, best, budget, budget_means)
    return ReplayJob(
        table.spec.name or path.stem,
        replace(problem.with_budget(usd), history=_history(path, table, history)),
        measurements,
        best,
        table.spec.progress.target if table.spec.progress else None,
        past_runs(table.document, table.spec, table.table),
    )


def _budget_usd(
    table: JobTable,
    problem: Problem,
    measured: Measurements,
    best: Optimum,
    budget: str | float | None,
    means: float | None,
) -> float:
    """The budget in dollars: of the arguments (an amount, or multiples of the mean cost of a run), else of the file."""
    usd, field = math.inf if table.spec.budget is None else table.spec.budget, table.document.at("budget")
    if budget is not None:
        usd, field = parse_money(budget, "--budget"), "--budget"
    if means is not None:
        usd = means * float(problem.billing.charges(measured.seconds, problem.price).mean())
        field = "budget in means"
    if usd <= 0 or usd < best.cheapest_run_usd * (1 - 1e-9):
        raise InputError(
            f"{field}: {format_money(usd)} is below the cheapest run of the table, "
            f"{format_money(best.cheapest_run_usd)}; raise the budget."
        )
    return usd


def _overridden(table: JobTable, price: str | None, time: str | None, objective: str | None) -> JobTable:
    """The table with fields of its document replaced by those that are given."""
    given = {name: value for name, value in (("price", price), ("time", time)) if value is not None}
    changed = replace(table, spec=table.spec.model_copy(update=given)) if given else table
    return changed if objective is None else _with_objective(changed, objective)


def _with_objective(table: JobTable, text: str) -> JobTable:
    """The table under another objective, with the metrics that runs have to report for it."""
    spec = table.spec
    known = {*spec.parameters, *spec.features, *spec.metrics}
    told = {name: name for name in Objective.parse(text).names if name in table.table and name not in known}
    return replace(table, spec=spec.model_copy(update={"objective": text, "metrics": {**spec.metrics, **told}}))


def table_as_history(spec: str | Path, family: str | None = None, where: str | None = None) -> PastJob:
    """A whole table as the history of another job of `family`; `where` is an expression over the columns that selects rows."""
    path = job_path(spec)
    table = JobTable.read(path)
    if where is not None:
        table = table.where(where)
    measured = table.measurements()
    seconds = tuple(float(one) for one in measured.seconds)
    columns = {name: tuple(cells.tolist()) for name, cells in table.space().columns.items()}
    metrics = {
        name: tuple(None if math.isnan(one) else float(one) for one in values)
        for name, values in measured.metrics.items()
        if name in table.spec.metrics
    }
    return PastJob(
        table.spec.name or path.stem,
        columns,
        seconds,
        (False,) * len(seconds),
        f"table {path.name}",
        metrics,
        _deadline_s(table, measured.seconds, table.spec.deadline),
        related=not (family and table.spec.family) or family == table.spec.family,
        input=table.input,
    )


def _history(path: Path, table: JobTable, given: Sequence[str] | None) -> tuple[PastJob, ...]:
    found = []
    for place, name in enumerate(table.spec.history if given is None else given):
        beside = path.parent / name
        try:
            found.append(table_as_history(beside if beside.is_file() else name, table.spec.family))
        except InputError as error:
            raise InputError(f"{table.document.at('history', place)}: {error}") from None
    return tuple(found)


def job_path(spec: str | Path) -> Path:
    """The file of a job, given by the name of a shipped job or by a path."""
    shipped = shipped_jobs()
    if str(spec) in shipped:
        return shipped[str(spec)]
    path = Path(spec)
    if path.suffix.lower() in (".yaml", ".yml") or path.is_file():
        return path
    known = hint(str(spec), shipped)
    if known.startswith("; known"):
        known = "; 'lynceus replay --list' shows the shipped jobs, or give the path of a YAML file."
    raise InputError(f"replay: there is no job {str(spec)!r}{known}")


def table_present(spec: str | Path) -> bool:
    """Whether the table of a job is installed."""
    path = job_path(spec)
    document = Document.read(path)
    try:
        find_table(document, path, document.check(ReplaySpec).table)
    except InputError:
        return False
    return True


def quantile_of(seconds: FloatArray, q: float) -> float:
    """The value at 0-based index round(n·q), halves up, of the sorted times `[n]`; q = 0.5 is the deadline of the papers.

    >>> quantile_of(np.array([4.0, 1.0, 3.0, 2.0]), 0.5)
    3.0
    """
    return float(np.sort(seconds)[min(math.floor(len(seconds) * q + 0.5), len(seconds) - 1)])


def _deadline(spec: ReplaySpec, quantile: float | None, fastest: float | None) -> float | DeadlineSpec | None:
    """The deadline of the arguments, else of the file."""
    if fastest is not None:
        return DeadlineSpec(fastest=fastest)
    if quantile is None:
        return spec.deadline
    if not 0 <= quantile <= 1:
        raise InputError(f"--deadline-quantile: got {quantile:g}; give a number from 0 to 1, such as 0.5.")
    return DeadlineSpec(quantile=quantile)


def _deadline_s(table: JobTable, seconds: FloatArray, deadline: float | DeadlineSpec | None) -> float | None:
    if isinstance(deadline, DeadlineSpec):
        if deadline.quantile is not None:
            return quantile_of(seconds, deadline.quantile)
        return (deadline.fastest or math.inf) * float(seconds.min())
    if deadline is not None and deadline <= 0:
        raise InputError(f"{table.document.at('deadline')}: got {deadline:g} seconds; give a duration above 0.")
    return deadline


def _problem(table: JobTable, deadline_s: float | None, billing: Billing) -> Problem:
    """The problem of the file, with an unlimited budget."""
    objective = _objective(table)
    for field, names in (("parameters", table.spec.parameters), ("metrics", table.spec.metrics)):
        try:
            refuse_price(names)
        except InputError as error:
            raise InputError(f"{table.document.at(field)}: {error}") from None
    space = table.space(_known_columns(table, objective))
    try:
        _ = Problem(space, objective).goal.formula
    except InputError as error:
        raise InputError(f"{table.document.at('objective')}: {_without_field(error)}") from None
    deadline = () if deadline_s is None else (Constraint("time", deadline_s),)
    problem = Problem(
        space, objective, deadline + _constraints(table), Budget(), billing, units=table.spec.units, input=table.input
    )
    fraction = table.spec.fraction
    if fraction is None:
        return problem
    known = [parameter.name for parameter in space.parameters]
    if fraction.column not in known:
        raise InputError(
            f"{table.document.at('fraction', 'column')}: '{fraction.column}' is not a parameter{hint(fraction.column, known)}"
        )
    try:
        return Fraction(fraction.column, fraction.test, fraction.answer).apply(problem)
    except InputError as error:
        raise InputError(f"{table.document.at('fraction')}: {_without_field(error)}") from None


def _objective(table: JobTable) -> Objective:
    try:
        objective = Objective.parse(table.spec.objective)
    except InputError as error:
        raise InputError(f"{table.document.at('objective')}: {_without_field(error)}") from None
    known = (PRICE, *QUANTITY_WORDS, *table.table) if objective.is_formula else ()
    for name in objective.names:
        if name not in known:
            _check_metric(table, name, "objective")
    return objective


def _known_columns(table: JobTable, objective: Objective) -> list[str]:
    """Columns of the table that a formula reads and that no run has to report."""
    reported = {*table.spec.metrics, *QUANTITY_WORDS}
    return [name for name in objective.names if objective.is_formula and name in table.table.keys() - reported]


def _constraints(table: JobTable) -> tuple[Constraint, ...]:
    constraints = []
    for place, text in enumerate(table.spec.constraints):
        try:
            constraint = Constraint.parse(text, table.spec.units)
        except InputError as error:
            raise InputError(f"{table.document.at('constraints', place)}: {_without_field(error)}") from None
        _check_metric(table, constraint.metric, "constraints", place)
        constraints.append(constraint)
    return tuple(constraints)


def _check_metric(table: JobTable, metric: str, *path: str | int) -> None:
    known = ["time", "cost", *table.spec.metrics]
    if metric not in known:
        raise InputError(
            f"{table.document.at(*path)}: the metric '{metric}' has no column under 'metrics'{hint(metric, known)}"
        )


def _optimum(table: JobTable, problem: Problem, measurements: Measurements) -> Optimum:
    """The best configuration; an error when no configuration of the table meets the constraints."""
    best = optimum(problem, measurements)
    if best is not None:
        return best
    fastest_s = float(measurements.seconds.min())
    if fastest_s > problem.deadline_s:
        where = table.document.at("deadline" if table.spec.deadline is not None else "constraints")
        raise InputError(
            f"{where}: no configuration of the table finishes within {format_duration(problem.deadline_s)}; "
            f"the fastest needs {format_duration(fastest_s)}; raise the deadline."
        )
    constraints = " and ".join(str(constraint) for constraint in problem.constraints)
    raise InputError(
        f"{table.document.at('constraints')}: no configuration of the table meets {constraints} together; relax one of them."
    )


def _without_field(error: InputError) -> str:
    """The message of a parser without the field that it names; the document names the field with its line."""
    text = str(error)
    for prefix in ("constraints: ", "objective: ", "fraction: "):
        text = text.removeprefix(prefix)
    return text
