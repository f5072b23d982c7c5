"""`lynceus explain`: the next trial and why, which parameters matter, and how good the model is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.arguments import StorageOption, StudyArgument, named_study
from lynceus.cli.at_input import print_inputs
from lynceus.cli.output import (
    Output,
    OutputOption,
    console,
    counted,
    objective_text,
    params_text,
    percent,
    print_json,
    safe,
)

if TYPE_CHECKING:
    from rich.console import Console

    from lynceus.analysis.calibration import Calibration
    from lynceus.analysis.candidates import Candidate
    from lynceus.analysis.explanation import NextStep
    from lynceus.analysis.importance import Importance
    from lynceus.analysis.past_jobs import PastJobs
    from lynceus.analysis.rank_agreement import RankAgreement

_BAR = 24
"""Characters of the longest bar."""
_PREDICTIONS = 8
"""Predictions in the table; JSON has them all."""
_LEAST_GAIN = 1e-12
"""An expected improvement below it is what computations err by."""


def explain(
    study: StudyArgument = None,
    most: Annotated[int, typer.Option("--candidates", min=1, help="How many candidates to show.")] = 5,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Explain the next trial: expected improvement, cost, chance to be feasible; parameter importance; predicted against measured times."""
    from lynceus.analysis.calibration import calibration
    from lynceus.analysis.documents.insight import explanation_document
    from lynceus.analysis.explanation import explain as explain_study
    from lynceus.library.study_context import study_context

    one = named_study(study, storage)
    context = study_context(one)
    if output is Output.JSON:
        print_json(explanation_document(context, most))
        return
    found, objective, out = explain_study(context, most), str(one.study.problem.objective), console()
    print_next(out, found.next)
    print_past_jobs(out, found.history)
    if found.infeasible is not None:
        out.print(f"[bold]no answer yet[/]  {safe(found.infeasible.summary)}")
        out.print(f"[bold]what to do[/]  {safe(found.infeasible.advice)}")
    if found.shortfall is not None:
        out.print(f"[bold]no answer yet[/]  {safe(found.shortfall)}")
    print_candidates(out, objective, found.candidates)
    print_importance(out, objective, found.importance)
    print_calibration(out, calibration(one.study.problem, one.study.observations))
    print_rank_agreement(out, found.rank_agreement)
    print_inputs(out, found.over_input_size)
    if found.approximate is not None:
        out.print(found.approximate, markup=False, style="dim")


def print_next(out: Console, step: NextStep) -> None:
    """Print the next trial, or why there is none."""
    from lynceus.problem.units import format_duration

    if step.trial is None:
        out.print(f"[bold]next[/]  none: {safe(step.reason or '')}")
        return
    trial = step.trial
    until = "to its end" if math.isinf(trial.timeout_s) else f"for at most {format_duration(trial.timeout_s)}"
    out.print(f"[bold]next[/]  {safe(params_text(trial.params))}, {until} ({safe(trial.plan.why)})")


def print_past_jobs(out: Console, found: PastJobs | None) -> None:
    """Print how much each earlier job counts, and what they saved."""
    from rich.table import Table

    from lynceus.problem.units import format_money

    if found is None:
        return
    table = Table("earlier job", "weight", "believed at first", "runs", "from")
    table.title, table.title_justify = "what earlier jobs count", "left"
    for one in found.jobs:
        weight = percent(one.weight) if one.note is None else f"none: {one.note}"
        table.add_row(safe(one.name), safe(weight), percent(one.credibility), str(one.runs), safe(one.source))
    out.print(table)
    if found.suggested:
        saved = ""
        if found.saved_usd is not None:
            effect = "saved" if found.saved_usd >= 0 else "cost"
            saved = f"; history {effect} about {format_money(abs(found.saved_usd))} of search"
        trials = counted(found.suggested, "trial")
        out.print(f"[bold]history[/]  suggested {trials} for {format_money(found.suggested_usd)}{saved}")


def print_candidates(out: Console, objective: str, found: Sequence[Candidate]) -> None:
    """Print the best open configurations."""
    from rich.table import Table

    from lynceus.problem.units import format_duration, format_money

    if not found:
        return
    table = Table(
        "candidate", "expected improvement", "expected charge", "improvement per $", "feasible", "expected time"
    )
    table.title, table.title_justify = "the best open configurations by the model", "left"
    for one in found:
        table.add_row(
            safe(params_text(one.params)),
            objective_text(objective, one.gain) if one.gain >= _LEAST_GAIN else "none",
            format_money(one.charge_usd),
            f"{one.gain_per_usd:.3g}",
            percent(one.probability),
            format_duration(one.runtime_s),
        )
    out.print(table)


def print_importance(out: Console, objective: str, found: Sequence[Importance]) -> None:
    """Print how much each parameter matters, as bars."""
    if not found:
        return
    out.print("[bold]which parameters matter[/] (share of the predicted variation that each explains by itself)")
    width = max(len(one.parameter) for one in found)
    for one in found:
        bar = "█" * round(one.share * _BAR)
        low, high = min(one.effect, key=lambda pair: pair[1]), max(one.effect, key=lambda pair: pair[1])
        effect = f"{low[0]}: {objective_text(objective, low[1])}, {high[0]}: {objective_text(objective, high[1])}"
        out.print(f"  {safe(one.parameter):<{width}}  [cyan]{bar:<{_BAR}}[/] {one.share:4.0%}  {safe(effect)}")


def print_calibration(out: Console, found: Calibration) -> None:
    """Print how well the model predicted the times of runs."""
    from rich.table import Table

    from lynceus.problem.units import format_duration

    if not found.predictions:
        out.print("[bold]predicted against measured[/]  no run was predicted by a model yet")
        return
    factor = found.median_factor
    off = "" if math.isnan(factor) else f"; finished runs were off by a factor of {factor:.2g} (median)"
    covered = "no interval can be judged yet"
    if found.judged:
        covered = f"{found.inside} of {counted(found.judged, 'run')} lay in {'its' if found.judged == 1 else 'their'} 80 % interval"
    out.print(f"[bold]predicted against measured[/]  {covered}{off}")
    table = Table("#", "predicted", "80 % interval", "measured")
    for one in found.predictions[-_PREDICTIONS:]:
        mark = "≥ " if one.censored else ""
        style = {True: "green", False: "red", None: "dim"}[one.inside]
        interval = f"{format_duration(one.low_s)} to {format_duration(one.high_s)}"
        measured = f"[{style}]{mark}{format_duration(one.runtime_s)}[/]"
        table.add_row(str(one.number), format_duration(one.middle_s), interval, measured)
    out.print(table)


def print_rank_agreement(out: Console, found: Sequence[RankAgreement]) -> None:
    """Print whether samples of the data rank configurations alike; nothing without a data fraction."""
    from rich.table import Table

    if not found:
        return
    table = Table("data fraction", "against", "quantity", "rank correlation", "configurations")
    table.title, table.title_justify = "do samples rank configurations as more data do?", "left"
    for one in found:
        style = "yellow" if one.warning else "green"
        shown = "—" if math.isnan(one.correlation) else f"[{style}]{one.correlation:.2f}[/]"
        table.add_row(f"{one.fraction:.3g}", f"{one.against:.3g}", safe(one.quantity), shown, str(one.configurations))
    out.print(table)
    for warning in filter(None, (one.warning for one in found)):
        out.print(f"[yellow]warning[/]  {safe(warning)}")
