"""The plot of the demo: best cost so far against money spent, one band per policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lynceus.demo.trajectory import Trajectory
from lynceus.errors import MissingExtraError
from lynceus.visualization.style import BLUE, GREEN, GREY, ORANGE

LINE_STYLES = ((BLUE, "-"), (ORANGE, "--"), (GREY, "-."), (GREEN, ":"))
"""Colours with line styles for print."""
NAMES = {"bo": "plain Bayesian optimization", "random": "random search", "lynceus": "Lynceus"}


def save_plot(trajectories: Sequence[Trajectory], budget_usd: float, near: float, path: Path) -> None:
    """Save the plot; the suffix of `path` sets its format."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("Plots", "plot") from None
    figure = Figure(figsize=(8, 4.8), dpi=130, layout="constrained")
    axes = figure.subplots()
    ends = [one.spent_usd[-1] for one in trajectories]
    # The plot starts where the first run meets the deadline.
    steps = [step for one in trajectories for step in zip(one.spent_usd, one.distance, strict=True)]
    start = min((usd for usd, distance in steps if np.isfinite(distance)), default=min(ends))
    grid = np.geomspace(start, max(*ends, budget_usd), 600)
    policies = list(dict.fromkeys(one.policy for one in trajectories))
    top = 1.0
    for policy, (colour, style) in zip(policies, LINE_STYLES, strict=False):
        own = [one for one in trajectories if one.policy == policy]
        money = grid[grid <= max(one.spent_usd[-1] for one in own)]
        known = [[one.distance_after(usd) for usd in money] for one in own]
        lower, middle, upper = np.quantile(known, (0.25, 0.5, 0.75), axis=0, method="nearest")
        shown = np.isfinite(middle)
        axes.fill_between(money, lower, upper, where=np.isfinite(upper), color=colour, alpha=0.16, linewidth=0)
        label = f"{NAMES.get(policy, policy)} ({len(own)} seeds)" if len(own) > 1 else NAMES.get(policy, policy)
        axes.plot(money[shown], middle[shown], style, color=colour, linewidth=2.2, label=label)
        top = max(top, *upper[np.isfinite(upper)], *middle[shown]) if shown.any() else top
    axes.axhline(near, color="#888888", linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(
        f"within {near - 1:.0%} of the optimum",
        (grid[0], near),
        (2, 4),
        textcoords="offset points",
        color="#555555",
        fontsize=9,
    )
    axes.axvline(budget_usd, color="#888888", linewidth=0.9, linestyle=(0, (1, 2)))
    axes.annotate(
        "budget",
        (budget_usd, 0.5),
        (4, 0),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        color="#555555",
        fontsize=9,
    )
    _label(axes, top, (float(grid[0]), float(grid[-1])))
    figure.savefig(path)


def _label(axes, top: float, money: tuple[float, float]) -> None:  # type: ignore[no-untyped-def]  # matplotlib is optional
    ticks = [tick for tick in (1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50) if tick <= top * 1.2]
    axes.set(xscale="log", yscale="log", ylim=(0.985, top * 1.08), xlim=(money[0] * 0.94, money[1] * 1.02))
    axes.set_yticks(ticks, [f"{tick:g}×" for tick in ticks])
    axes.minorticks_off()
    dollars = [usd for usd in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if money[0] <= usd <= money[1]]
    axes.set_xticks(dollars, [f"${usd:g}" for usd in dollars])
    axes.set_xlabel("money spent on the search (log)")
    axes.set_ylabel("best cost per run so far / optimum (log)")
    axes.set_title("Best configuration so far, by money spent", loc="left", fontsize=13, fontweight="bold")
    axes.grid(True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    title = "median, shaded: middle half of the seeds"
    axes.legend(loc="upper right", framealpha=1.0, edgecolor="white", title=title, title_fontsize=9)
