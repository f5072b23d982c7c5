"""`lynceus best`, `explain` and `whatif`: conclusions from runs that are already paid for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lynceus.cli.output import Output, OutputOption, StorageOption, StudyArgument, console, percent, print_json, words

if TYPE_CHECKING:
    from rich.console import Console

    from lynceus.cli.opened import Opened
    from lynceus.insight import Verdict
    from lynceus.problem import Problem

EXIT_NOTHING_FEASIBLE = 3


def best(
    study: StudyArgument = None,
    deadline: Annotated[str | None, typer.Option(help="The answer under another deadline, such as 30m.")] = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """The configuration to use, what a run of it costs and saves, and how sure that is. Exit code 3: none keeps the limits."""
    from lynceus.cli.opened import open_study
    from lynceus.insight import deadline_limits, verdict
    from lynceus.units import parse_duration

    one = open_study(study, storage)
    problem = one.study.problem
    if deadline is not None:
        problem = deadline_limits(problem, parse_duration(deadline, "--deadline"))
    found = verdict(
        problem, one.study.policy, one.known, all_runs=one.study.history, baseline=one.baseline, seed=one.study.seed
    )
    if output is Output.JSON:
        print_json(None if found is None else verdict_facts(one, found))
    elif found is None:
        limits = ", ".join(str(limit) for limit in problem.limits) or "no limits"
        typer.echo(f"{one.name}: none of the {len(one.study.history)} trials so far is known to keep {limits}.")
    else:
        print_verdict(console(), one, problem, found)
    if found is None:
        raise typer.Exit(EXIT_NOTHING_FEASIBLE)


def verdict_facts(one: Opened, found: Verdict) -> dict[str, Any]:
    """A verdict for programs."""
    from lynceus.job.execution import command_line

    answer = found.recommendation
    return {
        "study": one.name,
        "params": dict(answer.params),
        "command": command_line(one.prepared.job, answer.params),
        "measured": answer.measured,
        "value": answer.value,
        "runtime_s": answer.seconds,
        "cost_usd": answer.cost_usd,
        "cost_basis": found.cost_basis,
        "runs": found.runs,
        "runs_that_kept_limits": found.kept,
        "probability_to_keep_limits": answer.probability,
        "baseline_usd": found.baseline_usd,
        "baseline_measured": found.baseline_measured,
        "saving": found.saving,
        "pays_back_after_runs": found.pays_back_after,
        "spent_usd": answer.spent_usd,
        "trials": answer.trials,
    }


def print_verdict(out: Console, one: Opened, problem: Problem, found: Verdict) -> None:
    """A verdict for people."""
    from rich.markup import escape
    from rich.table import Table

    from lynceus.job.execution import command_line

    answer = found.recommendation
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("configuration", f"[bold green]{escape(words(answer.params))}[/]")
    table.add_row("command", escape(command_line(one.prepared.job, answer.params)))
    table.add_row("cost of a run", escape(found.cost_basis))
    for name, text in verdict_lines(one, problem, found):
        table.add_row(name, escape(text))
    out.print(table)


def verdict_lines(one: Opened, problem: Problem, found: Verdict) -> list[tuple[str, str]]:
    """What else there is to say of an answer: (name, sentence)."""
    from lynceus.cli.look import goal_text
    from lynceus.units import format_duration, format_money

    answer = found.recommendation
    lines = [("time of a run", f"{format_duration(answer.seconds)} ({'measured' if answer.measured else 'predicted'})")]
    if problem.kind == "metric":
        lines.append((problem.goal.metric, goal_text(str(problem.goal), answer.value)))
    if one.baseline is not None:
        lines.append(("saving", _saving(found)))
    lines.append(("how sure", _sure(problem, found)))
    lines.append(
        ("search", f"{format_money(answer.spent_usd)} for {answer.trials} trials, {answer.stopped_early} stopped early")
    )
    return lines


def _saving(found: Verdict) -> str:
    from lynceus.units import format_money

    if math.isnan(found.baseline_usd):
        return "nothing is known of the baseline configuration yet"
    how = "measured" if found.baseline_measured else "predicted"
    against = f"the baseline's {format_money(found.baseline_usd)} ({how})"
    if found.saving <= 0:
        return f"none against {against}"
    saved = format_money(found.baseline_usd - found.recommendation.cost_usd)
    return f"{saved} a run, {percent(found.saving)} of {against}; the search pays back after {math.ceil(found.pays_back_after):,} runs"


def _sure(problem: Problem, found: Verdict) -> str:
    probability = found.recommendation.probability
    believed = (
        "" if math.isnan(probability) else f"the model gives it a chance of {percent(probability)} to keep every limit"
    )
    if not problem.limits:
        return f"{found.runs} finished run{'s' * (found.runs != 1)}; there are no limits to keep"
    seen = (
        f"{found.kept} of {found.runs} run{'s' * (found.runs != 1)} kept every limit" if found.runs else "not run yet"
    )
    return f"{seen}; {believed}" if believed else seen


def explain(
    study: StudyArgument = None,
    most: Annotated[int, typer.Option("--candidates", min=1, help="How many candidates to show.")] = 5,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Why the next suggestion: expected gain, cost, chance to be feasible; which parameters matter; predicted against seen."""
    from lynceus.cli.opened import open_study
    from lynceus.insight import calibration, candidates, importance, rank_agreements
    from lynceus.policy import Stopped, decide

    one = open_study(study, storage)
    problem, policy, known = one.study.problem.with_budget(one.study.budget_usd), one.study.policy, one.known
    step = decide(problem, policy, known, one.study.pending, seed=one.study.seed)
    found = candidates(problem, policy, known, one.study.pending, seed=one.study.seed, most=most)
    matter = importance(problem, policy, known, seed=one.study.seed)
    seen = calibration(problem, one.study.history)
    ranks = rank_agreements(problem, known)
    if output is Output.JSON:
        print_json(
            {
                "next": {"stop": step.reason}
                if isinstance(step, Stopped)
                else {"params": problem.space.point(step.row), "timeout_s": step.cap_s, "plan": step.plan},
                "candidates": found,
                "importance": matter,
                "calibration": {
                    "coverage_of_80_percent_intervals": seen.coverage,
                    "typical_factor": seen.typical_factor,
                    "predictions": seen.predictions,
                },
                "ranks_between_fractions": ranks,
            }
        )
        return
    from lynceus.cli.explained import print_explanation, print_ranks

    print_explanation(console(), problem, step, found, matter, seen)
    print_ranks(console(), ranks)


def whatif(
    study: StudyArgument = None,
    deadline: Annotated[str | None, typer.Option(help="Deadlines, with commas between them: 20m,30m,60m.")] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(help="Other prices: dollars per hour as an expression; 'price' is today's. May be repeated."),
    ] = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """The answer under other deadlines or prices, from runs already paid for, with the front of cost against time."""
    from lynceus.cli.opened import open_study
    from lynceus.insight import deadline_limits, finished_points, pareto_front, repriced
    from lynceus.insight import whatif as ask
    from lynceus.units import format_duration, parse_duration

    one = open_study(study, storage)
    base = one.study.problem
    cases: list[tuple[str, Problem]] = [("as it is", base)]
    for text in [part for part in (deadline or "").split(",") if part.strip()]:
        seconds = parse_duration(text.strip(), "--deadline")
        cases.append((f"runtime <= {format_duration(seconds)}", deadline_limits(base, seconds)))
    cases += [(f"price {text}", repriced(base, text)) for text in price or ()]
    answers = [ask(problem, one.study.policy, one.known, label=label, seed=one.study.seed) for label, problem in cases]
    front = pareto_front(finished_points(base.with_limits(base.metric_limits), one.known))
    front = [point for point in front if point.keeps_limits]
    if output is Output.JSON:
        print_json({"study": one.name, "answers": answers, "front": front})
        return
    from lynceus.cli.explained import print_whatif

    print_whatif(console(), str(base.goal), answers, front)
