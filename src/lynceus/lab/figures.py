"""Pictures from summaries, as PNG and SVG."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from lynceus.errors import MissingExtraError

_WIDE, _HIGH = 4.2, 3.2
"""Inches of a panel."""
_COLUMNS = 3
_STYLES = ("-", "--", "-.", ":")


def draw(summary: dict[str, Any], folder: Path, formats: tuple[str, ...] = ("png", "svg")) -> list[Path]:
    """Every picture of an experiment; returns the files, those of the first format only."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("Pictures of the lab", "lab") from None
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = summary["name"]  # equal pictures become equal files
    made = []
    for number, figure in enumerate(summary["curves"], start=1):
        panels = [panel for panel in figure["panels"] if any(line["x"] for line in panel["lines"])]
        if not panels:
            continue
        picture = _picture(figure, panels)
        for ending in formats:
            path = folder / f"{summary['name']}-{number}.{ending}"
            metadata = {"Date": None} if ending == "svg" else {"Software": None}
            picture.savefig(path, dpi=80, metadata=metadata)
            if ending == formats[0]:
                made.append(path)
        _close(picture)
    return made


def _picture(figure: dict[str, Any], panels: list[dict[str, Any]]) -> Any:
    from matplotlib import pyplot

    columns = min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    picture, axes = pyplot.subplots(
        rows, columns, figsize=(_WIDE * columns + 1.6, _HIGH * rows + 0.5), squeeze=False, layout="constrained"
    )
    for place, axis in enumerate(axes.flat):
        if place < len(panels):
            _draw(axis, figure, panels[place])
        else:
            axis.axis("off")
    handles, labels = axes.flat[0].get_legend_handles_labels()
    if figure["kind"] != "bars":
        picture.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
    picture.suptitle(figure["title"], fontsize=10)
    return picture


def _draw(axis: Any, figure: dict[str, Any], panel: dict[str, Any]) -> None:
    for number, line in enumerate(panel["lines"]):
        if figure["kind"] == "bars":
            axis.bar([number], _gaps(line["y"]), color=f"C{number}")
            if line["y"] == [None]:
                axis.text(
                    number, 0.03, "never", transform=axis.get_xaxis_transform(), rotation=90, ha="center", fontsize=7
                )
        elif figure["kind"] == "by-variant":
            axis.errorbar(
                line["x"],
                _gaps(line["y"]),
                yerr=_errors(line),
                marker="o",
                ms=3,
                lw=1.2,
                capsize=2,
                label=line["label"],
            )
        else:
            style = _STYLES[number // 10 % len(_STYLES)]
            axis.plot(line["x"], line["y"], style, lw=1.4, label=line["label"], drawstyle="steps-post")
    if figure["log"]:
        # A distance from the optimum may be 0, of which there is no logarithm.
        drawn = [value for line in panel["lines"] for value in line["y"] if value is not None]
        if figure["kind"] not in ("cdf", "disjoint") and min(drawn, default=0) > 0:
            axis.set_yscale("log")
        if figure["kind"] in ("cdf", "cno-by-money"):
            axis.set_xscale("log")
    axis.set_title(panel["title"], fontsize=9)
    axis.set_xlabel(panel["x"], fontsize=8)
    axis.set_ylabel(panel["y"], fontsize=8)
    axis.tick_params(labelsize=7)
    if figure["kind"] == "bars":
        axis.set_xticks(range(len(panel["lines"])), [line["label"] for line in panel["lines"]], rotation=20)
    axis.grid(alpha=0.25)


def _gaps(values: list[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def _errors(line: dict[str, Any]) -> list[list[float]]:
    """Distances from a point to the ends of its interval; none where an end is infinite or unknown."""
    below, above = [], []
    for value, low, high in zip(line["y"], line["low"], line["high"], strict=True):
        below.append(max(value - low, 0.0) if value is not None and low is not None else 0.0)
        above.append(max(high - value, 0.0) if value is not None and high is not None else 0.0)
    return [below, above]


def _close(picture: Any) -> None:
    from matplotlib import pyplot

    pyplot.close(picture)
