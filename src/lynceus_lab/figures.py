"""Figures from summaries, as PNG and SVG."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from lynceus.errors import MissingExtraError

_WIDE, _HIGH = 4.2, 3.2
"""Inches of a panel."""
_COLUMNS = 3
_COLOURS = 10
_STYLES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D")
_WIDTHS = {False: 1.1, True: 2.4}
"""Line widths in points, of other policies and of baselines."""
_DPI = 160
"""Dots per inch: sharp on high-resolution screens."""
_HANDLE, _LETTER = 0.6, 0.075
"""Inches that a legend needs for the sample of a line, and for a letter of its label."""
_SHORT = 4
"""Longest name on an axis that is not rotated."""


def draw(summary: dict[str, Any], folder: Path, formats: tuple[str, ...] = ("png", "svg")) -> list[Path]:
    """All figures of an experiment; returns the files of the first format."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("Figures of the lab", "lab") from None
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = summary["name"]  # equal figures give equal files
    made = []
    for number, figure in enumerate(summary["curves"], start=1):
        panels = [panel for panel in figure["panels"] if any(line["x"] for line in panel["lines"])]
        if not panels:
            continue
        picture = _picture(figure, panels, _places(summary, panels), _strong(summary))
        for ending in formats:
            path = folder / f"{summary['name']}-{number}.{ending}"
            metadata = {"Date": None} if ending == "svg" else {"Software": None}
            picture.savefig(path, dpi=_DPI, metadata=metadata)
            if ending == formats[0]:
                made.append(path)
        _close(picture)
    return made


def _places(summary: dict[str, Any], panels: list[dict[str, Any]]) -> dict[str, int]:
    """The index of every label, which sets its colour: the position of a policy in the experiment, in every figure."""
    drawn = [line["label"] for panel in panels for line in panel["lines"]]
    policies = summary["policies"]
    known = policies if any(label in policies for label in drawn) else []
    return {label: place for place, label in enumerate(dict.fromkeys([*known, *drawn]))}


def _strong(summary: dict[str, Any]) -> frozenset[str]:
    """The baselines, drawn with thicker lines."""
    return frozenset([summary["baseline"], *summary["also"]])


def _picture(
    figure: dict[str, Any], panels: list[dict[str, Any]], places: dict[str, int], strong: frozenset[str]
) -> Any:
    from matplotlib import pyplot

    columns = min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    labels = sorted({line["label"] for panel in panels for line in panel["lines"]}, key=places.__getitem__)
    wide = max(_WIDE * columns, 6.4)
    beside = min(len(labels), 5, max(1, int(wide / (_HANDLE + _LETTER * max(map(len, labels))))))
    legend = 0 if figure["kind"] == "bars" else math.ceil(len(labels) / beside)
    picture, axes = pyplot.subplots(
        rows,
        columns,
        figsize=(wide, _HIGH * rows + 0.4 + 0.2 * legend),
        squeeze=False,
        layout="constrained",
    )
    for place, axis in enumerate(axes.flat):
        if place < len(panels):
            _draw(axis, figure, panels[place], places, strong)
        else:
            axis.axis("off")
    if legend:
        shown = {
            label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        picture.legend(
            [shown[label] for label in labels if label in shown],
            [label for label in labels if label in shown],
            loc="outside lower center",
            ncols=beside,
            frameon=False,
            fontsize=8,
        )
    picture.suptitle(figure["title"], fontsize=10)
    return picture


def _draw(
    axis: Any, figure: dict[str, Any], panel: dict[str, Any], places: dict[str, int], strong: frozenset[str]
) -> None:
    for number, line in enumerate(panel["lines"]):
        place = places[line["label"]]
        _LINES.get(figure["kind"], _draw_steps)(axis, line, number, place, strong=line["label"] in strong)
    if figure["log"]:
        _set_log_scales(axis, figure["kind"], panel)
    if panel["y"].startswith("share"):
        axis.set_ylim(0, 1.03)
    axis.set_title(panel["title"], fontsize=9)
    axis.set_xlabel(panel["x"], fontsize=8)
    axis.set_ylabel(panel["y"], fontsize=8)
    axis.tick_params(labelsize=7, which="both")
    if figure["kind"] == "bars":
        axis.set_xticks(range(len(panel["lines"])), [line["label"] for line in panel["lines"]])
        axis.set_xlim(-0.6, len(panel["lines"]) - 0.4)
    names = [tick.get_text() for tick in axis.get_xticklabels()] if figure["kind"] in ("bars", "by-variant") else []
    if any(len(name) > _SHORT for name in names):
        axis.set_xticks(axis.get_xticks(), names, rotation=25, ha="right", rotation_mode="anchor")
    axis.grid(alpha=0.25)


def _draw_point(axis: Any, line: dict[str, Any], number: int, place: int, *, strong: bool) -> None:
    """One value with its interval: a point, because the length of a bar means nothing on a logarithmic axis."""
    axis.errorbar([number], _gaps(line["y"]), yerr=_errors(line), color=_colour(place), fmt="o", ms=6, capsize=3)
    if float(line["y"][0]) == math.inf:
        axis.text(number, 0.5, "never", transform=axis.get_xaxis_transform(), ha="center", fontsize=9)


def _draw_intervals(axis: Any, line: dict[str, Any], number: int, place: int, *, strong: bool) -> None:
    turn = place // _COLOURS
    axis.errorbar(
        line["x"],
        _gaps(line["y"]),
        yerr=_errors(line),
        color=_colour(place),
        linestyle=_STYLES[turn % len(_STYLES)],
        marker=_MARKERS[turn % len(_MARKERS)],
        ms=3,
        lw=_WIDTHS[strong],
        capsize=2,
        label=line["label"],
    )


def _draw_steps(axis: Any, line: dict[str, Any], number: int, place: int, *, strong: bool) -> None:
    style = _STYLES[place // _COLOURS % len(_STYLES)]
    axis.plot(
        line["x"],
        _gaps(line["y"]),
        style,
        color=_colour(place),
        lw=_WIDTHS[strong],
        label=line["label"],
        drawstyle="steps-post",
    )


_LINES = {"bars": _draw_point, "by-variant": _draw_intervals}


def _colour(place: int) -> str:
    return f"C{place % _COLOURS}"


def _set_log_scales(axis: Any, kind: str, panel: dict[str, Any]) -> None:
    # A distance from the optimum may be 0, which has no logarithm.
    drawn = [value for line in panel["lines"] for value in _gaps(line["y"]) if not math.isnan(value)]
    if kind not in ("cdf", "disjoint") and min(drawn, default=0) > 0:
        axis.set_yscale("log")
        _plain(axis.yaxis)
    if kind in ("cdf", "cno-by-money"):
        axis.set_xscale("log")
        _plain(axis.xaxis)


def _plain(axis: Any) -> None:
    """Plain tick labels such as 0.5 and 200; also between powers of ten if there are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    few = high / low < 100
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def _gaps(values: list[float | str]) -> list[float]:
    """Values with NaN in place of infinity, which cannot be drawn."""
    return [value if math.isfinite(value) else math.nan for value in map(float, values)]


def _errors(line: dict[str, Any]) -> list[list[float]]:
    """Distances from a point to the ends of its interval; 0 where an end is infinite or unknown."""
    values = _gaps(line["y"])
    return [
        [_length(value - low) for value, low in zip(values, _gaps(line["low"]), strict=True)],
        [_length(high - value) for value, high in zip(values, _gaps(line["high"]), strict=True)],
    ]


def _length(difference: float) -> float:
    return 0.0 if math.isnan(difference) else max(difference, 0.0)


def _close(picture: Any) -> None:
    from matplotlib import pyplot

    pyplot.close(picture)
