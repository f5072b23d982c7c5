"""Pictures of what happened: no model is asked."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lynceus.analysis.pareto import cost_time_front, finished_points
from lynceus.analysis.study_context import StudyContext
from lynceus.analysis.trial_rows import TrialRow, trial_rows
from lynceus.library.recurring.job_documents import job_page
from lynceus.problem.problem import Problem
from lynceus.visualization.style import (
    BLUE,
    GREEN,
    GREY,
    MARKS,
    ORANGE,
    empty,
    in_units,
    legend,
    new_axes,
    new_panels,
    objective_name,
    objective_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lynceus.library.recurring.recurring_job import RecurringJob
    from lynceus.study.view import StudyView


def plot_optimization_history(study: StudyView, *, axes: Axes | None = None) -> Axes:
    """The best value so far over the money spent, and the value of each run."""
    problem, points = study.problem, StudyContext(study).progress.points
    axes = new_axes(axes, "Best so far, by money spent", "money spent on the search", objective_name(problem))
    if not points:
        return empty(axes, "no trial has ended yet")
    rows = {row.number: row for row in _ended_rows(study)}
    for point in points:
        row = rows[point.number]
        if (value := _value(problem, row)) is not None:
            mark, colour, label = MARKS[_how(row)]
            axes.plot(point.spent_usd, value, mark, color=colour, label=label, alpha=0.8)
    known = [point for point in points if not math.isnan(point.best_value)]
    if known:
        end = points[-1].spent_usd
        axes.step(
            [*(point.spent_usd for point in known), end],
            [*(point.best_value for point in known), known[-1].best_value],
            where="post",
            color=GREEN,
            linewidth=2,
            label=f"best so far: {objective_text(problem, known[-1].best_value)}",
        )
    if math.isfinite(study.budget_usd):
        axes.axvline(study.budget_usd, color=GREY, linestyle=":", label="budget")
    in_units(axes.xaxis, "cost")
    in_units(axes.yaxis, problem.kind)
    legend(axes)
    return axes


def plot_pareto_front(study: StudyView, *, axes: Axes | None = None) -> Axes:
    """Cost against time of the finished runs; those that no other run beats in both are joined."""
    problem, known = study.problem, StudyContext(study).known
    axes = new_axes(axes, "Cost against time", "time of a run", "cost of a run")
    points = finished_points(problem, known)
    if not points:
        return empty(axes, "no trial has finished yet")
    for point in points:
        mark, colour, label = MARKS["COMPLETE" if point.keeps_constraints else "broken"]
        axes.plot(point.runtime_s, point.cost_usd, mark, color=colour, label=label, alpha=0.8)
    front = cost_time_front(problem, known)
    line = ([one.runtime_s for one in front], [one.cost_usd for one in front])
    axes.step(*line, where="post", color=GREEN, linewidth=1.5, label="no run is both faster and cheaper")
    if math.isfinite(problem.deadline_s):
        axes.axvline(problem.deadline_s, color=ORANGE, linestyle=":", label="deadline")
    in_units(axes.xaxis, "time")
    in_units(axes.yaxis, "cost")
    legend(axes)
    return axes


def plot_slice(study: StudyView) -> list[Axes]:
    """The objective of every run over each parameter that varies."""
    problem, rows = study.problem, _ended_rows(study)
    varied = [one for one in problem.space.parameters if len(one.values) > 1]
    panels = new_panels("Runs by parameter", max(len(varied), 1))
    if not varied:
        return [empty(panels[0], "no parameter has several values")]
    for axes, parameter in zip(panels, varied, strict=True):
        place: dict[object, int] = {value: number for number, value in enumerate(parameter.values)}
        for row in rows:
            value = _value(problem, row)
            if value is not None and parameter.name in row.params:
                mark, colour, label = MARKS[_how(row)]
                at = place[row.params[parameter.name]]
                axes.plot(at, value, mark, color=colour, label=label, alpha=0.8)
        shown = range(0, len(place), max(1, len(place) // 8))
        axes.set_xticks(list(shown), [str(parameter.values[one]) for one in shown])
        axes.set_xlabel(parameter.name)
        in_units(axes.yaxis, problem.kind)
    panels[0].set_ylabel(objective_name(problem))
    legend(panels[-1])
    return panels


def plot_job_runs(job: RecurringJob, *, axes: Axes | None = None) -> Axes:
    """The runs of a recurring job: how long each took, beside what its input let expect."""
    page = job_page(job.store, job.name)
    runs = page["runs"]
    axes = new_axes(axes, f"Runs of {job.name}", "run", "time of a run")
    if not runs:
        return empty(axes, "no run is recorded yet")
    expected = [(at, run) for at, run in enumerate(runs) if run["low_s"] is not None]
    if expected:
        places = [at for at, _ in expected]
        low, high = ([run[name] for _, run in expected] for name in ("low_s", "high_s"))
        axes.fill_between(places, low, high, color=BLUE, alpha=0.15, linewidth=0, label="expected for its input")
    for at, run in enumerate(runs):
        colour = ORANGE if run["late"] or run["state"] != "COMPLETE" else BLUE
        what = "late or failed" if colour == ORANGE else "run"
        mark = "D" if run["canary"] else "o"
        axes.plot(at, run["runtime_s"], mark, color=colour, label=f"{what}{', canary' if run['canary'] else ''}")
    for at in (place for place in range(1, len(runs)) if runs[place]["version"] != runs[place - 1]["version"]):
        axes.axvline(at - 0.5, color=GREY, linestyle=":", label="another version")
    if page["deadline_s"] is not None:
        axes.axhline(page["deadline_s"], color=ORANGE, linestyle=":", label="deadline")
    in_units(axes.yaxis, "time")
    legend(axes)
    return axes


def _ended_rows(study: StudyView) -> list[TrialRow]:
    return trial_rows(study.problem, study.observations)


def _how(row: TrialRow) -> str:
    """The mark of a run that has a value."""
    return "TIMEOUT" if row.state == "TIMEOUT" else "COMPLETE" if row.keeps_constraints else "broken"


def _value(problem: Problem, row: TrialRow) -> float | None:
    """The objective of a finished run; of a stopped one the time or cost at which it was stopped; None otherwise."""
    if row.state == "COMPLETE":
        return row.value
    if row.state != "TIMEOUT" or problem.kind not in ("cost", "time"):
        return None
    seconds = row.runtime_s or 0.0
    return seconds if problem.kind == "time" else problem.cost(problem.space.row(dict(row.params)), seconds)
