"""Pictures from summaries, as PNG and SVG."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from lynceus.errors import MissingExtraError
from lynceus.lab.statistics import unwritten

_WIDE, _HIGH = 4.2, 3.2
"""Inches of a panel."""
_COLUMNS = 3
_COLOURS = 10
_STYLES = ("-", "--", "-.", ":")
_MARKERS = ("o", "s", "^", "D")


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
        picture = _picture(figure, panels, _places(summary, panels))
        for ending in formats:
            path = folder / f"{summary['name']}-{number}.{ending}"
            metadata = {"Date": None} if ending == "svg" else {"Software": None}
            picture.savefig(path, dpi=80, metadata=metadata)
            if ending == formats[0]:
                made.append(path)
        _close(picture)
    return made


def _places(summary: dict[str, Any], panels: list[dict[str, Any]]) -> dict[str, int]:
    """Every label's number, which is its look: a competitor's place in the experiment, whoever else is shown."""
    drawn = [line["label"] for panel in panels for line in panel["lines"]]
    policies = summary.get("policies", [])
    known = policies if any(label in policies for label in drawn) else []
    return {label: place for place, label in enumerate(dict.fromkeys([*known, *drawn]))}


def _picture(figure: dict[str, Any], panels: list[dict[str, Any]], places: dict[str, int]) -> Any:
    from matplotlib import pyplot

    columns = min(_COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    picture, axes = pyplot.subplots(
        rows, columns, figsize=(_WIDE * columns + 1.6, _HIGH * rows + 0.5), squeeze=False, layout="constrained"
    )
    for place, axis in enumerate(axes.flat):
        if place < len(panels):
            _draw(axis, figure, panels[place], places)
        else:
            axis.axis("off")
    if figure["kind"] != "bars":
        shown = {
            label: handle for axis in axes.flat for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        labels = sorted(shown, key=lambda label: places[label])
        handles = [shown[label] for label in labels]
        picture.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8)
    picture.suptitle(figure["title"], fontsize=10)
    return picture


def _draw(axis: Any, figure: dict[str, Any], panel: dict[str, Any], places: dict[str, int]) -> None:
    for number, line in enumerate(panel["lines"]):
        place = places[line["label"]]
        colour, turn = f"C{place % _COLOURS}", place // _COLOURS
        if figure["kind"] == "bars":
            axis.bar([number], _gaps(line["y"]), color=colour)
            if unwritten(line["y"][0]) == math.inf:
                axis.text(
                    number, 0.03, "never", transform=axis.get_xaxis_transform(), rotation=90, ha="center", fontsize=7
                )
        elif figure["kind"] == "by-variant":
            axis.errorbar(
                line["x"],
                _gaps(line["y"]),
                yerr=_errors(line),
                color=colour,
                linestyle=_STYLES[turn % len(_STYLES)],
                marker=_MARKERS[turn % len(_MARKERS)],
                ms=3,
                lw=1.2,
                capsize=2,
                label=line["label"],
            )
        else:
            style = _STYLES[turn % len(_STYLES)]
            axis.plot(
                line["x"], _gaps(line["y"]), style, color=colour, lw=1.4, label=line["label"], drawstyle="steps-post"
            )
    if figure["log"]:
        # A distance from the optimum may be 0, of which there is no logarithm.
        drawn = [value for line in panel["lines"] for value in _gaps(line["y"]) if not math.isnan(value)]
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


def _gaps(values: list[float | str | None]) -> list[float]:
    """What is not finite cannot be drawn."""
    return [value if math.isfinite(value) else math.nan for value in map(unwritten, values)]


def _errors(line: dict[str, Any]) -> list[list[float]]:
    """Distances from a point to the ends of its interval; none where an end is infinite or unknown."""
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
