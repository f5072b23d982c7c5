"""What all pictures have in common: axes, colours, units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lynceus.errors import MissingExtraError
from lynceus.problem.problem import Problem
from lynceus.problem.units import format_bytes, format_duration, format_metric, format_money

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#595959"
"""Colours of Okabe and Ito, which suit any kind of colour vision."""
MARKS = {
    "COMPLETE": ("o", BLUE, "finished"),
    "broken": ("x", ORANGE, "finished, breaks a limit"),
    "TIMEOUT": ("^", GREY, "stopped early: a lower bound"),
}
"""How a run appears: mark, colour, words."""
_TIME_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 43200)
"""Between two numbers of an axis of time."""


def new_axes(axes: Axes | None, title: str, across: str, up: str) -> Axes:
    """Axes with a title and labels: those given, or new ones."""
    found = _subplots(1)[0] if axes is None else axes
    found.set_title(title, loc="left")
    found.set_xlabel(across)
    found.set_ylabel(up)
    return _decorated(found)


def new_panels(title: str, count: int) -> list[Axes]:
    """New axes side by side that share the vertical one."""
    found = _subplots(count)
    found[0].set_title(title, loc="left")
    return [_decorated(one) for one in found]


def _subplots(count: int) -> list[Axes]:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingExtraError("Plots", "plot") from None
    size = (max(7.0, 3.0 * count), 3.8)
    _, found = pyplot.subplots(1, count, figsize=size, layout="constrained", sharey=True, squeeze=False)
    return list(found[0])


def _decorated(axes: Axes) -> Axes:
    """Axes with a light grid behind the marks."""
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def empty(axes: Axes, sentence: str) -> Axes:
    """Axes that say why there is nothing to draw."""
    axes.text(0.5, 0.5, sentence, ha="center", va="center", transform=axes.transAxes, color=GREY)
    axes.set_xticks([])
    axes.set_yticks([])
    return axes


def in_units(axis: Axis, unit: str) -> None:
    """Write the numbers of an axis, once everything is drawn, as dollars, durations or bytes; other units stay plain numbers."""
    from matplotlib.ticker import LogLocator, MultipleLocator

    formats: dict[str, Callable[[float], str]] = {"cost": _dollars, "time": format_duration, "size": format_bytes}
    if unit not in formats:
        return
    low, high = sorted(axis.get_view_interval())
    if axis.get_scale() == "log":
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high / low < 1e3 else (1.0,)))
    elif unit == "time":
        axis.set_major_locator(MultipleLocator(next((step for step in _TIME_STEPS_S if high - low <= 7 * step), 86400)))
    axis.set_major_formatter(lambda value, _: formats[unit](value) if value >= 0 else "")


def _dollars(value: float) -> str:
    """An amount on an axis: neighbours differ in digits that `format_money` would round away.

    >>> _dollars(0.225), _dollars(12.0)
    ('$0.225', '$12')
    """
    return f"${value:.4g}"


def objective_name(problem: Problem) -> str:
    """The objective in words."""
    return {"cost": "cost of a run", "time": "time of a run"}.get(problem.kind, problem.objective.metric)


def objective_text(problem: Problem, value: float) -> str:
    """A value of the objective with its unit."""
    kind = problem.kind
    return format_money(value) if kind == "cost" else format_duration(value) if kind == "time" else format_metric(value)


def words(params: Mapping[str, object]) -> str:
    """A configuration in a line."""
    return " ".join(f"{name}={value}" for name, value in params.items())


def legend(axes: Axes) -> None:
    """Name what is drawn, each once."""
    handles, labels = axes.get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    if named:
        axes.legend(named.values(), named.keys(), frameon=False, fontsize="small")
