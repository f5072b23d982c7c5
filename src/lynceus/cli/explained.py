"""Explanations and what-ifs as tables for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lynceus.cli.look import goal_text
from lynceus.cli.output import percent, words
from lynceus.history import Order
from lynceus.insight import Calibration, Candidate, Choice, Importance, Point, RankAgreement, WhatIf
from lynceus.policy import Stopped
from lynceus.problem import Problem
from lynceus.units import format_duration, format_money

_BAR = 24
"""Characters of the longest bar."""


def print_explanation(
    out: Console,
    problem: Problem,
    step: Order | Stopped,
    found: Sequence[Candidate],
    matter: Sequence[Importance],
    seen: Calibration,
) -> None:
    """The next suggestion with its reasons."""
    goal = str(problem.goal)
    if isinstance(step, Stopped):
        out.print(f"[bold]next[/]  nothing: {escape(step.reason)}")
    else:
        cap = "to its end" if math.isinf(step.cap_s) else f"for at most {format_duration(step.cap_s)}"
        out.print(f"[bold]next[/]  {escape(words(problem.space.point(step.row)))}, {cap} ({escape(step.plan.why)})")
    if found:
        table = Table(
            "candidate", "expected gain", "expected charge", "gain per $", "chance to keep limits", "expected time"
        )
        table.title, table.title_justify = "what the model thinks of the best open configurations", "left"
        for one in found:
            table.add_row(
                escape(words(one.params)), goal_text(goal, one.gain), format_money(one.charge_usd),
                f"{one.per_dollar:.3g}", percent(one.probability), format_duration(one.seconds),
            )  # fmt: skip
        out.print(table)
    if matter:
        out.print("[bold]which parameters matter[/] (share of the believed variation that each explains by itself)")
        width = max(len(known.parameter) for known in matter)
        for known in matter:
            bar = "█" * round(known.share * _BAR)
            low, high = min(known.effect, key=lambda pair: pair[1]), max(known.effect, key=lambda pair: pair[1])
            effect = f"{low[0]}: {goal_text(goal, low[1])}, {high[0]}: {goal_text(goal, high[1])}"
            out.print(
                f"  {escape(known.parameter):<{width}}  [cyan]{bar:<{_BAR}}[/] {known.share:4.0%}  {escape(effect)}"
            )
    _print_calibration(out, seen)


def _print_calibration(out: Console, seen: Calibration) -> None:
    if not seen.predictions:
        out.print("[bold]predicted against seen[/]  no run was predicted by a model yet")
        return
    off = (
        ""
        if math.isnan(seen.typical_factor)
        else f"; finished runs were off by a factor of {seen.typical_factor:.2g} (median)"
    )
    covered = (
        "no interval could be judged"
        if math.isnan(seen.coverage)
        else f"{seen.inside} of {seen.decided} runs lay in their 80 % interval"
    )
    out.print(f"[bold]predicted against seen[/]  {covered}{off}")
    table = Table("#", "predicted", "80 % interval", "seen")
    for one in seen.predictions[-8:]:
        mark = "≥ " if one.censored else ""
        style = {True: "green", False: "red", None: "dim"}[one.inside]
        interval = f"{format_duration(one.low_s)} to {format_duration(one.high_s)}"
        table.add_row(
            str(one.number), format_duration(one.middle_s), interval, f"[{style}]{mark}{format_duration(one.seen_s)}[/]"
        )
    out.print(table)


def print_ranks(out: Console, ranks: Sequence[RankAgreement]) -> None:
    """Whether samples of the data rank configurations alike; nothing without a data fraction."""
    if not ranks:
        return
    table = Table("on a share of", "against", "quantity", "rank correlation", "configurations")
    table.title, table.title_justify = "do samples rank configurations as more data do?", "left"
    for one in ranks:
        style = "yellow" if one.warning else "green"
        shown = "—" if math.isnan(one.correlation) else f"[{style}]{one.correlation:.2f}[/]"
        table.add_row(f"{one.share:.3g}", f"{one.against:.3g}", escape(one.quantity), shown, str(one.configurations))
    out.print(table)
    for warning in filter(None, (one.warning for one in ranks)):
        out.print(f"[yellow]warning[/]  {escape(warning)}")


def print_whatif(out: Console, goal: str, answers: Sequence[WhatIf], front: Sequence[Point]) -> None:
    """Answers under changed circumstances."""
    # A metric is a column of its own; cost and time have theirs already.
    metric = [] if goal.split()[-1] in ("cost", "time") else [goal.split()[-1]]
    table = Table("if", "best measured", *metric, "time", "cost of a run", "sure", "perhaps better, not tried")
    for one in answers:
        undecided = f" ({one.undecided} stopped runs cannot tell)" if one.undecided else ""
        if one.measured is None:
            cells = [f"none{undecided}", *["—"] * (3 + len(metric))]
        else:
            cells = [escape(words(one.measured.params)) + undecided, *_numbers(goal, one.measured)]
        hint = "" if one.predicted is None else escape(
            f"{words(one.predicted.params)}: {goal_text(goal, one.predicted.value)} predicted, {percent(one.predicted.probability)} sure"
        )  # fmt: skip
        table.add_row(escape(one.label), *cells, hint)
    out.print(table)
    if front:
        shown = Table("#", "configuration", "time", "cost of a run")
        shown.title, shown.title_justify = "cost against time: the finished runs that no other beats in both", "left"
        for point in front:
            shown.add_row(
                str(point.number),
                escape(words(point.params)),
                format_duration(point.seconds),
                format_money(point.cost_usd),
            )
        out.print(shown)


def _numbers(goal: str, choice: Choice) -> list[str]:
    metric = [] if goal.split()[-1] in ("cost", "time") else [goal_text(goal, choice.value)]
    return [
        *metric,
        format_duration(choice.seconds),
        format_money(choice.cost_usd),
        percent(choice.probability),
    ]
