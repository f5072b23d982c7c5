"""`lynceus demo`: a made-up job, tuned while one watches."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from lynceus.demo import Course, Job, Result

EXIT_NOTHING_FEASIBLE = 3
SEEDS = 4
"""Explorations per policy in the comparison; twice as many where decisions take no time."""
PATIENCE_S = 25.0
"""How long the demo waits for the comparison after its own exploration; a slow machine compares fewer seeds."""


class Output(enum.StrEnum):
    """How the demo is shown."""

    TEXT = "text"
    JSON = "json"


def demo(
    policy: Annotated[str, typer.Option("--policy", "-p", help="A preset, see 'lynceus policies'.")] = "lynceus",
    seed: Annotated[int, typer.Option(min=0, help="Fixes the job's noise and the policy's luck.")] = 0,
    budget: Annotated[str | None, typer.Option(help="Dollars for the exploration, a hard cap.")] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Do not pause to be watched, and do not compare.")] = False,
    compare: Annotated[bool, typer.Option(help="Compare with plain BO and random search, and plot.")] = True,
    plot: Annotated[Path, typer.Option(help="Where to save the plot.")] = Path("lynceus-demo.png"),
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TEXT,
) -> None:
    """Watch a synthetic Spark-like job being tuned: money, incumbent, and what is stopped early. Takes under a minute."""
    from rich.console import Console

    from lynceus.demo import BUDGET_USD, background, demo_job, tasks
    from lynceus.policy import preset
    from lynceus.units import parse_money

    preset(policy)  # a wrong name is said before anything is shown
    if compare and not fast and not plot.absolute().parent.is_dir():
        raise InputError(f"--plot: there is no folder {plot.parent}; make it, or choose another place.")
    budget_usd = BUDGET_USD if budget is None else parse_money(budget, "--budget")
    job = demo_job(seed, budget_usd)
    console = Console(quiet=output is Output.JSON, highlight=False)
    with ExitStack() as stack:
        others: Iterator[Course] = iter(())
        count = 0
        if compare and not fast:
            work = tasks(policy, seed, budget_usd, SEEDS)
            others, count = stack.enter_context(background(work)), len(work)
        result = _explore(job, policy, seed, console, paced=not fast)
        result = _compared(result, others, count, plot, console) if count else result
    if output is Output.JSON:
        _print_json(result)
    if result.answer is None:
        raise typer.Exit(EXIT_NOTHING_FEASIBLE)


def _explore(job: Job, policy: str, seed: int, console: Console, *, paced: bool) -> Result:
    from lynceus.demo import Result, Screen, Tally, course_of, header, plain_line, recommendation, run_study
    from lynceus.history import Observation

    console.print(header(job, policy, seed), width=min(console.width, 100))
    tally = Tally()
    if console.is_terminal:
        with Screen(job, console, paced=paced) as screen:
            study = run_study(job, policy, seed, screen.ordered, screen.settled)
        tally = screen.tally
    else:

        def settled(seen: Observation) -> None:
            nonlocal tally
            tally = tally.after(job, seen)
            console.print(plain_line(job, tally), soft_wrap=True, markup=False)

        study = run_study(job, policy, seed, settled=settled)
        console.print()
    course = course_of(job, policy, seed, study.history)
    result = Result(job, study, study.recommend(), tally, course)
    console.print(recommendation(result))
    console.print()
    return result


def _compared(result: Result, others: Iterator[Course], count: int, plot: Path, console: Console) -> Result:
    from dataclasses import replace

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from lynceus.demo import collect, comparison, in_order, summarise

    courses = [result.course]
    columns = (TextColumn("comparing with plain BO and random search"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=count)
        for course in collect(others, PATIENCE_S):
            courses.append(course)
            bar.update(task, advance=1)
    courses = in_order(courses)
    result = replace(result, summaries=tuple(summarise(courses, result.near, result.job.problem.budget.usd)))
    console.print(comparison(result))
    _plotted(result, courses, plot, console)
    return result


def _plotted(result: Result, courses: list[Course], plot: Path, console: Console) -> None:
    from lynceus.demo import draw
    from lynceus.errors import InputError, MissingExtraError

    try:
        draw(courses, result.job.problem.budget.usd, result.near, plot)
    except MissingExtraError as error:
        console.print(f"\n{error}", markup=False)
    except (OSError, ValueError) as error:
        raise InputError(f"--plot: {plot} cannot be written: {error}; choose another place or suffix.") from None
    else:
        console.print(f"\nThe plot is in {plot}.", markup=False)


def _print_json(result: Result) -> None:
    import json

    from lynceus.demo import as_record

    typer.echo(json.dumps(as_record(result), indent=2))
