"""`lynceus best`: the configuration to use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli import exit_codes
from lynceus.cli.arguments import StorageOption, StudyArgument, named_study
from lynceus.cli.at_input import best_for_input
from lynceus.cli.output import (
    Output,
    OutputOption,
    console,
    counted,
    echo,
    fact_table,
    objective_text,
    params_text,
    percent,
    print_json,
    safe,
)

if TYPE_CHECKING:
    from rich.console import Console

    from lynceus.analysis.answer import Answer
    from lynceus.analysis.savings import Uses
    from lynceus.problem.objective import Constraint
    from lynceus.problem.problem import Problem


def best(
    study: StudyArgument = None,
    deadline: Annotated[str | None, typer.Option(help="The answer for another deadline, such as 30m.")] = None,
    input: Annotated[
        str | None, typer.Option(help="The answer for another input, run or not: 240GB, or size=240GB,files=8000.")
    ] = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Show the configuration to use, what a run costs and saves, and how certain that is.

    Exit code 3: no configuration is known to meet every constraint, or none with the confidence that it demands.
    """
    from lynceus.analysis.answer import answer
    from lynceus.analysis.infeasibility import infeasibility
    from lynceus.analysis.whatif import with_deadline
    from lynceus.library.study_context import study_context
    from lynceus.problem.units import parse_duration

    one = named_study(study, storage)
    problem = one.study.problem
    if deadline is not None:
        problem = with_deadline(problem, parse_duration(deadline, "--deadline"))
    context = study_context(one)
    if input is not None:
        best_for_input(context, input, problem, output)
        return
    found = answer(context, problem)
    if found is None:
        constraints = ", ".join(str(constraint) for constraint in problem.constraints) or "no constraints"
        why = infeasibility(context, problem)
        trials = len(one.study.observations)
        which = "the only trial so far is not" if trials == 1 else f"none of the {trials:,} trials so far is"
        echo(
            f"{one.name}: {which} known to meet {constraints}.\nWhy: {why.summary}.\nWhat to do: {why.advice}.",
            err=output is Output.JSON,
        )
    if output is Output.JSON:
        print_json(found)
    elif found is not None:
        asked = [limit for limit in problem.constraints if limit not in one.study.problem.constraints]
        print_answer(console(), problem, found, scratch=one.prepared.job.spec.trial.scratch, asked=asked)
    if found is None or not found.reaches_confidence:
        raise typer.Exit(exit_codes.INFEASIBLE)


def print_answer(
    out: Console, problem: Problem, found: Answer, *, scratch: str, asked: Sequence[Constraint] = ()
) -> None:
    """Print an answer as a table, and where trials were started (`trial.scratch`): what they left there is not in the way of the next.

    `asked` are limits that are not those of the study, but were asked about.
    """
    table = fact_table()
    if found.shortfall is not None:
        out.print(_shortfall(problem, found, asked), markup=False, style="yellow", soft_wrap=True)
    name, colour = ("configuration", "green") if found.reaches_confidence else ("nearest", "yellow")
    table.add_row(name, f"[bold {colour}]{safe(params_text(found.params))}[/]")
    for name, text in _facts(problem, found):
        table.add_row(safe(name), safe(text))
    out.print(table)
    if found.command is not None:
        place = "in the job's working directory"
        if scratch == "cwd":
            place += " (every trial was started in a new directory of its own, scratch: cwd)"
        out.print(f"To run it, {place}:", style="dim", soft_wrap=True)
        echo(found.command)  # not broken into lines and not indented, so that it can be pasted into a shell


def _shortfall(problem: Problem, found: Answer, asked: Sequence[Constraint]) -> str:
    """What no configuration reaches, in a sentence of its own above everything else."""
    from lynceus.analysis.infeasibility_text import asked_options

    limits = ", ".join(str(constraint) for constraint in problem.constraints)
    search = f"Search on with lynceus resume{asked_options(asked)}, or change a limit with its --constraint."
    return f"Not an answer to {limits}: {found.shortfall}. {search}"


def _facts(problem: Problem, found: Answer) -> list[tuple[str, str]]:
    """(name, sentence) pairs."""
    from lynceus.problem.units import format_duration, format_money

    how = "measured" if found.measured else "predicted"
    if found.noise is not None:
        how = f"expected; runs differ by about {percent(found.noise)}"
    facts = [("cost of a run", found.cost_basis), ("time of a run", f"{format_duration(found.runtime_s)} ({how})")]
    if problem.kind == "metric":
        facts.append((problem.objective.metric, objective_text(str(problem.objective), found.value)))
    if found.baseline is not None:
        facts.append(("saving", _saving(found)))
    facts.append(("future use", _future(found)))
    facts.append(("certainty", _certainty(problem, found)))
    search = (
        f"{format_money(found.spent_usd)} for {counted(found.trials, 'trial')}, {found.stopped_early} stopped early"
    )
    again = [] if found.check_again is None else [("as the input grows", found.check_again)]
    return [*facts, *again, ("search", search)]


def uses_text(uses: Uses) -> str:
    """How often the result will be used, and whether anybody said so."""
    return f"{uses} (assumed, as no 'future' was given)" if uses.assumed else str(uses)


def _saving(found: Answer) -> str:
    """What a use saves, measured or as a range, and after how many uses the search has paid for itself."""
    from lynceus.problem.units import format_money

    if math.isnan(found.baseline_usd):
        return "the cost of the baseline configuration is not known yet"
    if found.baseline_interval_usd is None:
        against = f"the baseline's {format_money(found.baseline_usd)} ({found.baseline_basis})"
        saved, share, some = format_money(found.saved_usd), percent(found.saving), found.saved_usd > 0
    else:
        low, high = found.baseline_interval_usd
        against = f"the baseline's {_span(low, high)} (predicted, with a probability of 80 %; it was not run)"
        saved_low, saved_high = found.saved_interval_usd or (math.nan, math.nan)
        shares = found.saving_interval or (math.nan, math.nan)
        saved, some = _span(max(saved_low, 0.0), saved_high), saved_high > 0
        share = " to ".join(dict.fromkeys(percent(max(each, 0.0)) for each in shares))
    if not some:
        return f"none against {against}"
    return f"{saved} {_each(found)}, {share} of {against}; the search pays for itself after {_pay_back(found)}"


def _future(found: Answer) -> str:
    """What all future uses save together, or cost where nothing is known of a baseline."""
    from lynceus.problem.units import format_money

    uses = uses_text(found.future)
    if math.isnan(found.saved_usd):
        return uses
    if found.future_saving_interval_usd is None and found.future_saving_usd < 0:
        return f"{uses} cost {format_money(-found.future_saving_usd)} more in all than with the baseline"
    saved = format_money(found.future_saving_usd)
    if found.future_saving_interval_usd is not None:
        saved = _span(*found.future_saving_interval_usd)
    return f"{uses} save {saved} in all, before the {format_money(found.spent_usd)} of the search"


def _pay_back(found: Answer) -> str:
    """`2 of 100 runs`, or a range where the baseline's cost is predicted."""
    from lynceus.problem.future_use import format_count

    fewest, most = found.pays_back_interval_runs or (found.pays_back_after_runs, found.pays_back_after_runs)
    uses = found.future
    first, last = math.ceil(fewest), math.inf if math.isinf(most) else math.ceil(most)
    beyond = (
        "" if last <= uses.count else ", more than expected" if first > uses.count else ", perhaps more than expected"
    )
    span = f"{first:,}" if first == last else f"{first:,} to {last:,}" if math.isfinite(last) else f"{first:,} or more"
    return f"{span} of {format_count(uses.count)} future {uses.unit}{beyond}"


def _each(found: Answer) -> str:
    return "a run" if found.future.unit == "runs" else f"per {found.future.unit}"


def _span(low: float, high: float) -> str:
    from lynceus.problem.units import format_money

    return " to ".join(dict.fromkeys((format_money(low), format_money(high))))


def _certainty(problem: Problem, found: Answer) -> str:
    if not problem.constraints:
        return f"{counted(found.runs, 'finished run')}; there are no constraints"
    seen = (
        f"{found.feasible_runs} of {counted(found.runs, 'run')} met every constraint" if found.runs else "not run yet"
    )
    if math.isnan(found.probability):
        return seen
    each = "" if len(found.limits) < 2 else f" ({_chances(found)})"
    return f"{seen}; the model predicts a {percent(found.probability)} chance that a run meets every constraint{each}"


def _chances(found: Answer) -> str:
    """The chance of every limit by itself."""
    return ", ".join(f"{one.constraint}: {percent(one.chance)}" for one in found.limits if not math.isnan(one.chance))
