"""A study in a notebook: a small card of plain HTML, without scripts, which untrusted notebooks do not run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING

from lynceus.errors import InputError, counted
from lynceus.problem.units import format_duration, format_metric, format_money
from lynceus.trial.incumbents import incumbents
from lynceus.trial.outcome import End, Observation
from lynceus.trial.trial import STATES

if TYPE_CHECKING:
    from lynceus.study.view import StudyView

_RECENT = 8
_WIDTH, _HEIGHT = 460, 120
_CELL = "text-align:left;padding:2px 12px 2px 0"


def study_card(study: StudyView) -> str:
    """A study at a glance: money, the best configuration, how it was found, the last trials."""
    problem, observations = study.problem, study.observations
    constraints = " · ".join([str(problem.objective), *(str(constraint) for constraint in problem.constraints)])
    parts = [
        f"<div style='font-weight:600'>{escape(study.name)}</div>",
        f"<div style='opacity:.75'>{escape(constraints)}</div>",
        f"<div>{escape(_money(study))}</div>",
        f"<div>{escape(_best(study))}</div>",
        _stair(study),
        _recent(study, observations[-_RECENT:]),
    ]
    if study.reason is not None:
        parts.insert(2, f"<div>{escape(f'over: {study.reason}')}</div>")
    return f"<div style='font-variant-numeric:tabular-nums;line-height:1.5;max-width:60em'>{''.join(parts)}</div>"


def study_text(study: StudyView) -> str:
    """A study in one line, for `repr`."""
    problem = study.problem
    goal = "; ".join([str(problem.objective), *(str(constraint) for constraint in problem.constraints)])
    end = "" if study.reason is None else f" · over: {study.reason}"
    return f"{study.name!r}: {goal} · {_money(study)} · {_best(study)}{end}"


def _money(study: StudyView) -> str:
    reserved = f" + {format_money(study.reserved_usd)} reserved" if study.pending else ""
    of = "" if math.isinf(study.budget_usd) else f" of {format_money(study.budget_usd)}"
    return f"{format_money(study.spent_usd)} spent{reserved}{of} · {counted(len(study.observations), 'trial')}, {len(study.pending)} open"


def _best(study: StudyView) -> str:
    try:
        which = (
            "best"
            if study.best_reaches_confidence
            else "no configuration is sure enough of the constraints; the nearest"
        )
        return f"{which}: {_words(study.best_params)} · {_goal(study, study.best_value)}"
    except InputError:
        return "no trial has kept every constraint yet"


def _goal(study: StudyView, value: float) -> str:
    kind = study.problem.kind
    return format_money(value) if kind == "cost" else format_duration(value) if kind == "time" else format_metric(value)


def _stair(study: StudyView) -> str:
    """Best so far against money spent as a picture; empty while there is no best."""
    spent, points = 0.0, list[tuple[float, float]]()
    for seen, best in zip(study.observations, incumbents(study.problem, study.observations), strict=True):
        spent += seen.outcome.charged_usd
        if best is not None and (not points or points[-1][1] != best.value):
            points.append((spent, best.value))
    if not points:
        return ""
    low, high = min(value for _, value in points), max(value for _, value in points)
    room = (high - low) or 1.0
    path = ""
    for place, (usd, value) in enumerate(points):
        x, y = _WIDTH * usd / (spent or 1.0), 6 + (_HEIGHT - 12) * (high - value) / room
        path += f"M{x:.1f} {y:.1f}" if place == 0 else f"H{x:.1f}V{y:.1f}"
    sign = -1.0 if study.problem.objective.maximise else 1.0
    first, last = _goal(study, sign * points[0][1]), _goal(study, sign * points[-1][1])
    said = f"Best so far against money spent: from {first} to {last} for {format_money(spent)}"
    return (
        f"<svg role='img' width='{_WIDTH}' height='{_HEIGHT}' viewBox='0 0 {_WIDTH} {_HEIGHT}' style='display:block;margin:6px 0'>"
        f"<title>{escape(said)}</title><path d='M0 {_HEIGHT - 1}H{_WIDTH}' stroke='currentColor' stroke-opacity='.25'/>"
        f"<path d='{path}H{_WIDTH}' fill='none' stroke='#2f8fce' stroke-width='2'/></svg>"
    )


def _recent(study: StudyView, seen: tuple[Observation, ...]) -> str:
    if not seen:
        return ""
    head = "".join(f"<th style='{_CELL}'>{name}</th>" for name in ("#", "configuration", "state", "time", "charged"))
    rows = "".join(
        f"<tr>{''.join(f'<td style={_CELL!r}>{escape(cell)}</td>' for cell in _row(study, one))}</tr>" for one in seen
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(study: StudyView, seen: Observation) -> list[str]:
    outcome = seen.outcome
    broken = outcome.end is End.FINISHED and not study.problem.meets_constraints(
        seen.row, outcome.seconds, outcome.metrics
    )
    state = str(STATES[outcome.end]) + (
        " (breaks a constraint)" if broken else f" ({outcome.reason})" if outcome.reason else ""
    )
    params = _words(study.problem.space.point(seen.row))
    return [str(seen.order.number), params, state, format_duration(outcome.seconds), format_money(outcome.charged_usd)]


def _words(params: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())
