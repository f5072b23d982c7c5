"""Pictures of what models say."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from lynceus.analysis.at_input import curve_over_size
from lynceus.analysis.calibration import calibration
from lynceus.analysis.contour import contour
from lynceus.analysis.explanation import best_candidates, param_importance
from lynceus.analysis.study_context import StudyContext
from lynceus.problem.job_input import SIZE
from lynceus.visualization.style import (
    BLUE,
    GREY,
    ORANGE,
    empty,
    in_units,
    legend,
    new_axes,
    objective_name,
    words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lynceus.study.view import StudyView

_TOO_FEW = "too few trials have ended for a model"


def plot_param_importances(study: StudyView, *, axes: Axes | None = None) -> Axes:
    """The share of the predicted variation of the objective that each parameter explains by itself."""
    found = param_importance(StudyContext(study))
    axes = new_axes(
        axes, "Which parameters matter", f"share of the variation of the {objective_name(study.problem)}", ""
    )
    if not found:
        return empty(axes, _TOO_FEW)
    bars = axes.barh([one.parameter for one in reversed(found)], [one.share for one in reversed(found)], color=BLUE)
    axes.bar_label(bars, [f"{one.share:.0%}" for one in reversed(found)], padding=3)
    axes.set_xlim(0, 1.1)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}" if value <= 1 else "")
    return axes


def plot_contour(study: StudyView, x: str | None = None, y: str | None = None, *, axes: Axes | None = None) -> Axes:
    """The best predicted objective for each pair of values of two parameters (by default the two most important ones).

    The number in a cell is the chance that the configuration keeps every limit.
    """
    found = contour(StudyContext(study), x, y)
    across, up = found.x, found.y
    title = f"Best predicted {objective_name(study.problem)}; in each cell the chance to keep every limit"
    axes = new_axes(axes, title, "" if across is None else across.parameter, "" if up is None else up.parameter)
    if across is None or up is None:
        return empty(axes, f"{_TOO_FEW}, or fewer than two parameters have several values")
    axes.grid(False)
    mesh = axes.pcolormesh(found.value, cmap="viridis")
    bar = axes.figure.colorbar(mesh, ax=axes)
    in_units(bar.ax.yaxis, study.problem.kind)
    axes.set_xticks([at + 0.5 for at in range(len(across.steps))], [str(step[0]) for step in across.steps])
    axes.set_yticks([at + 0.5 for at in range(len(up.steps))], [str(step[0]) for step in up.steps])
    known = [value for line in found.value for value in line if not math.isnan(value)]
    bright = min(known) + 0.6 * (max(known) - min(known))
    if len(across.steps) * len(up.steps) <= 100:
        for row, line in enumerate(found.probability):
            for column, chance in enumerate(line):
                if not math.isnan(chance):
                    colour = "black" if found.value[row][column] > bright else "white"
                    axes.text(column + 0.5, row + 0.5, f"{chance:.0%}", ha="center", va="center", color=colour)
    return axes


def plot_candidates(study: StudyView, most: int = 8, *, axes: Axes | None = None) -> Axes:
    """The open configurations with the largest expected improvement per dollar, best first."""
    found = best_candidates(StudyContext(study), most)
    axes = new_axes(axes, "What the next dollar may bring", "expected improvement per dollar of the search", "")
    if not found:
        return empty(axes, f"{_TOO_FEW}, or no configuration is left")
    names = [f"{words(one.params)}  ({one.probability:.0%})" for one in reversed(found)]
    axes.barh(names, [one.gain_per_usd for one in reversed(found)], color=BLUE)
    axes.set_ylabel("configuration (chance to keep every limit)")
    return axes


def plot_calibration(study: StudyView, *, axes: Axes | None = None) -> Axes:
    """Predicted against measured times: the median and the 80 % interval of each run that a model predicted."""
    found = calibration(study.problem, study.observations)
    axes = new_axes(axes, "Predicted and measured times", "measured", "predicted, 80 % interval")
    shown = [one for one in found.predictions if one.runtime_s > 0]
    if not shown:
        return empty(axes, "no run was predicted yet")
    for one in shown:
        axes.plot([one.runtime_s] * 2, [one.low_s, one.high_s], color=BLUE, alpha=0.35)
        mark, label = (">", "stopped early: it takes longer") if one.censored else ("o", "finished")
        axes.plot(one.runtime_s, one.middle_s, mark, color=GREY if one.censored else BLUE, label=label)
    limits = [min(one.runtime_s for one in shown), max(one.runtime_s for one in shown)]
    axes.plot(limits, limits, color=ORANGE, linestyle=":", label="as measured")
    axes.set(xscale="log", yscale="log")
    axes.minorticks_off()
    for axis in (axes.xaxis, axes.yaxis):
        in_units(axis, "time")
    if found.judged:
        axes.set_title(f"Predicted and measured times: {found.inside} of {found.judged} inside", loc="left")
    legend(axes)
    return axes


def plot_input_size(study: StudyView, *, axes: Axes | None = None) -> Axes:
    """The cost that is predicted for the best configuration over the size of the input; labels name configurations that change."""
    found = curve_over_size(study)
    axes = new_axes(axes, "The answer over the size of the input", "size of the input", "cost of a run, 80 % interval")
    if not found:
        return empty(axes, "no run says how much it read; give the study an input")
    sizes = [float(one.input[SIZE]) for one in found]
    low, high = zip(*(one.cost_interval_usd for one in found), strict=True)
    axes.fill_between(sizes, low, high, color=BLUE, alpha=0.15, linewidth=0)
    axes.plot(sizes, [one.cost_usd for one in found], "o-", color=BLUE)
    for before, one, size in zip([None, *found[:-1]], found, sizes, strict=True):
        if before is None or one.row != before.row:
            axes.annotate(
                words(one.params), (size, one.cost_usd), (0, 10), textcoords="offset points", fontsize="small"
            )
    axes.set(xscale="log", yscale="log")
    axes.minorticks_off()
    in_units(axes.xaxis, "size")
    in_units(axes.yaxis, "cost")
    return axes
