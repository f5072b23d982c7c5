"""The numbers behind figures: a few dozen points per line."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from lynceus.replay.run import Replay
from lynceus_lab.experiment import Place
from lynceus_lab.experiment_file import FigureSpec, Statistic, chosen
from lynceus_lab.measures import NAMES
from lynceus_lab.statistics import Estimate, FloatArray, estimate, quantiles, written
from lynceus_lab.table_facts import cno_of_all, disjoint

if TYPE_CHECKING:
    from lynceus_lab.summary import Evidence

_POINTS = 80
"""Largest number of points of a line."""

Line = dict[str, Any]
Panel = dict[str, Any]


def panels_of(evidence: Evidence, figure: FigureSpec) -> list[Panel]:
    """The panels of a figure: a title, axes, and lines of x and y."""
    kinds = {
        "cdf": _cdf,
        "cno-by-money": _cno_by_money,
        "by-variant": _by_variant,
        "bars": _bars,
        "table-cno": _table_cno,
        "disjoint": _disjoint,
    }
    return kinds[figure.kind](evidence, figure)


def _jobs(evidence: Evidence, figure: FigureSpec) -> list[str]:
    return chosen(evidence.jobs, figure.jobs)


def _places(evidence: Evidence, figure: FigureSpec, job: str, variant: str) -> list[Place]:
    labels = figure.policies or evidence.experiment.policies
    return [place for label in labels if evidence.kept(place := Place(job, label, variant))]


def _cdf(evidence: Evidence, figure: FigureSpec) -> list[Panel]:
    """Fraction of seeds that reached the level, by money; optionally pooled over jobs, in multiples of each job's optimum."""
    jobs, panels = _jobs(evidence, figure), []
    for variant in evidence.experiment.variants:
        if figure.together:
            panels.append(_pooled(evidence, figure, jobs, variant))
            continue
        for job in jobs:
            lines = [
                _share(place.policy, list(evidence.values(place, "money", figure.level).values()))
                for place in _places(evidence, figure, job, variant)
            ]
            panels.append(
                _panel(_name(evidence, job, variant), f"dollars until CNO {figure.level:g}", "share of seeds", lines)
            )
    return panels


def _pooled(evidence: Evidence, figure: FigureSpec, jobs: Sequence[str], variant: str) -> Panel:
    lines = []
    for label in figure.policies or evidence.experiment.policies:
        pooled: list[float] = []
        for job in jobs:
            place = Place(job, label, variant)
            if evidence.kept(place):
                unit = evidence.job(place).optimum.cost_usd
                pooled += [usd / unit for usd in evidence.values(place, "money", figure.level).values()]
        if pooled:
            lines.append(_share(label, pooled))
    return _panel(variant, f"money until CNO {figure.level:g}, in runs of the optimum", "share of seeds", lines)


def _cno_by_money(evidence: Evidence, figure: FigureSpec) -> list[Panel]:
    """p90 of the CNO by p90 of the money, after each run (Fig. 4 and 7)."""
    panels = []
    for variant in evidence.experiment.variants:
        for job in _jobs(evidence, figure):
            lines = []
            for place in _places(evidence, figure, job, variant):
                money, cno = money_and_cno([kept.replay for kept in evidence.kept(place)])
                shown = np.isfinite(cno)
                lines.append(_line(place.policy, money[shown], cno[shown]))
            panels.append(_panel(_name(evidence, job, variant), "dollars, p90", "CNO, p90", lines))
    return panels


def money_and_cno(replays: Sequence[Replay]) -> tuple[FloatArray, FloatArray]:
    """p90 over seeds of money and of CNO after each run; a replay that has ended keeps its last values."""
    longest = max(len(replay.steps) for replay in replays)
    money = np.array([_filled([step.spent_usd for step in replay.steps], longest) for replay in replays])
    cno = np.array([_filled([step.cno for step in replay.steps], longest) for replay in replays])
    return quantiles(money.T, 0.9), quantiles(cno.T, 0.9)


def _filled(values: Sequence[float], length: int) -> list[float]:
    return [*values, *[values[-1] if values else math.nan] * (length - len(values))]


def _judged_variants(evidence: Evidence) -> list[str]:
    """The variants under the reading by which claims are judged."""
    experiment = evidence.experiment
    return experiment.variants_under(experiment.readings[0])


def _by_variant(evidence: Evidence, figure: FigureSpec) -> list[Panel]:
    """A quantity of every policy over the variants (budgets, worlds), with intervals."""
    panels = []
    for job in _jobs(evidence, figure):
        lines = []
        for label in figure.policies or evidence.experiment.policies:
            places = [Place(job, label, variant) for variant in _judged_variants(evidence)]
            found = {place.variant: one for place in places if (one := _estimated(evidence, figure, place))}
            if found:
                lines.append(_with_intervals(label, found))
        panels.append(_panel(_name(evidence, job, ""), figure.x, _axis_label(figure), lines))
    return panels


def _bars(evidence: Evidence, figure: FigureSpec) -> list[Panel]:
    """A quantity of every policy."""
    panels = []
    for variant in evidence.experiment.variants:
        for job in _jobs(evidence, figure):
            lines = [
                _with_intervals(place.policy, {place.policy: found})
                for place in _places(evidence, figure, job, variant)
                if (found := _estimated(evidence, figure, place))
            ]
            panels.append(_panel(_name(evidence, job, variant), "", _axis_label(figure), lines))
    return panels


_STATISTICS: Mapping[Statistic, str] = MappingProxyType(
    {
        "p50": "median",
        "p90": "90th percentile",
        "mean": "mean",
        "found": "mean of the seeds that reached it",
    }
)


def _axis_label(figure: FigureSpec) -> str:
    """The quantity with its unit, and the statistic over seeds."""
    if figure.statistic == "share":
        return f"share of seeds that reached it\n({NAMES[figure.quantity].format(level=figure.level)})"
    return f"{NAMES[figure.quantity].format(level=figure.level)}\n{_STATISTICS[figure.statistic]}"


def _estimated(evidence: Evidence, figure: FigureSpec, place: Place) -> Estimate | None:
    """The quantity of a figure at a place; None where it was not run or has no value."""
    values = evidence.values(place, figure.quantity, figure.level)
    return estimate([values], figure.statistic) if values else None


def _with_intervals(label: str, found: Mapping[str, Estimate]) -> Line:
    return {
        "label": label,
        "x": list(found),
        "y": [written(one.value) for one in found.values()],
        "low": [written(one.low) for one in found.values()],
        "high": [written(one.high) for one in found.values()],
    }


def _table_cno(evidence: Evidence, figure: FigureSpec) -> list[Panel]:
    lines = []
    for job in _jobs(evidence, figure):
        cno = cno_of_all(evidence.plain_job(job))
        lines.append(_line(_name(evidence, job, ""), np.arange(1.0, len(cno) + 1), cno))
    return [_panel("", "configurations, cheapest first", "cost relative to the optimum", lines)]


def _disjoint(evidence: Evidence, figure: FigureSpec) -> list[Panel]:
    lines = [
        _share(_name(evidence, job, ""), disjoint(evidence.plain_job(job)).tolist()) for job in _jobs(evidence, figure)
    ]
    return [_panel("", "cost of the result relative to the joint optimum", "share of reference clusters", lines)]


def _share(label: str, values: Sequence[float]) -> Line:
    """An empirical distribution; seeds that did not reach the level are missing at its end."""
    ordered = np.sort(np.array(values, dtype=float))
    share = np.arange(1, len(ordered) + 1) / len(ordered)
    known = np.isfinite(ordered)
    return _line(label, ordered[known], share[known])


def _line(label: str, x: FloatArray, y: FloatArray) -> Line:
    keep = np.unique(np.linspace(0, len(x) - 1, min(_POINTS, len(x))).astype(int)) if len(x) else np.zeros(0, dtype=int)
    return {"label": label, "x": [written(v) for v in x[keep]], "y": [written(v) for v in y[keep]]}


def _panel(title: str, x: str, y: str, lines: list[Line]) -> Panel:
    return {"title": title, "x": x, "y": y, "lines": lines}


def _name(evidence: Evidence, job: str, variant: str) -> str:
    """The name of a job, which is shorter than the path of its file, and the variant."""
    name = evidence.plain_job(job).name
    return f"{name}, {variant}" if variant else name
