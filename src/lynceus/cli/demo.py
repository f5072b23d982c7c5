"""`lynceus demo`: watch the search on a synthetic job."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli import exit_codes
from lynceus.cli.arguments import LARGEST_SEED
from lynceus.cli.output import console, print_json
from lynceus.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from rich.console import Console

    from lynceus.demo.job import Job
    from lynceus.demo.report import Result
    from lynceus.demo.trajectory import Trajectory

SEEDS = 4
"""Searches per policy in the comparison; twice as many for policies that decide at once."""
COMPARISON_S = 25.0
"""How long the demo waits for the comparison after its own search; a slow machine compares fewer seeds."""


class DemoFormat(enum.StrEnum):
    """How the demo prints its result."""

    TEXT = "text"
    JSON = "json"


def demo(
    policy: Annotated[str, typer.Option("--policy", "-p", help="A preset, see 'lynceus policies'.")] = "lynceus",
    seed: Annotated[
        int, typer.Option(min=0, max=LARGEST_SEED, help="The random seed of the job and of the policy.")
    ] = 1,
    budget: Annotated[str | None, typer.Option(help="Dollars for the search, a hard limit.")] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Do not pause for the viewer, and do not compare.")] = False,
    compare: Annotated[bool, typer.Option(help="Compare with plain BO and random search, and plot.")] = True,
    plot: Annotated[Path, typer.Option(help="Where to save the plot.")] = Path("lynceus-demo.png"),
    output: Annotated[DemoFormat, typer.Option("--output", "-o", help="How to print.")] = DemoFormat.TEXT,
) -> None:
    """Watch the search for the best configuration of a synthetic Spark-like job: money, incumbent, early stops. Takes under a minute."""
    from lynceus.demo.compare import background, searches
    from lynceus.demo.job import BUDGET_USD, demo_job
    from lynceus.demo.report import as_record
    from lynceus.policy.presets import preset
    from lynceus.problem.units import parse_money

    preset(policy)  # an unknown name is an error before anything is shown
    if compare and not fast and not plot.absolute().parent.is_dir():
        raise InputError(f"--plot: there is no folder {plot.parent}; create it, or choose another path.")
    budget_usd = BUDGET_USD if budget is None else parse_money(budget, "--budget")
    job = demo_job(seed, budget_usd)
    out = console(quiet=output is DemoFormat.JSON)
    with ExitStack() as stack:
        others: Iterator[Trajectory] = iter(())
        count = 0
        if compare and not fast:
            work = searches(policy, seed, budget_usd, SEEDS)
            others, count = stack.enter_context(background(work)), len(work)
        result = _search(job, policy, seed, out, paced=not fast)
        result = _compare(result, others, count, plot, out) if count else result
    if output is DemoFormat.JSON:
        print_json(as_record(result))
    if result.answer is None:
        raise typer.Exit(exit_codes.INFEASIBLE)


def _search(job: Job, policy: str, seed: int, out: Console, *, paced: bool) -> Result:
    from lynceus.demo.report import Result, recommendation
    from lynceus.demo.screen import Screen, header
    from lynceus.demo.trajectory import run_study, trajectory_of
    from lynceus.demo.trial_lines import Tally, plain_line
    from lynceus.trial.outcome import Observation

    out.print(header(job, policy, seed), width=min(out.width, 100))
    tally = Tally()
    if out.is_terminal:
        with Screen(job, out, paced=paced) as screen:
            study = run_study(job, policy, seed, screen.ordered, screen.settled)
        tally = screen.tally
    else:

        def settled(seen: Observation) -> None:
            nonlocal tally
            tally = tally.after(job, seen)
            out.print(plain_line(job, tally), soft_wrap=True, markup=False)

        study = run_study(job, policy, seed, settled=settled)
        out.print()
    trajectory = trajectory_of(job, policy, seed, study.observations)
    result = Result(job, study, study.recommend(), tally, trajectory)
    out.print(recommendation(result))
    out.print()
    return result


def _compare(result: Result, others: Iterator[Trajectory], count: int, plot: Path, out: Console) -> Result:
    from dataclasses import replace

    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from lynceus.demo.compare import collect, in_order, summarise
    from lynceus.demo.report import comparison

    trajectories = [result.trajectory]
    columns = (TextColumn("comparing with plain BO and random search"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("", total=count)
        for trajectory in collect(others, COMPARISON_S):
            trajectories.append(trajectory)
            bar.update(task, advance=1)
    trajectories = in_order(trajectories)
    summaries = summarise(trajectories, result.near, result.job.problem.budget.usd)
    result = replace(result, summaries=tuple(summaries))
    out.print(comparison(result))
    _plot(result, trajectories, plot, out)
    return result


def _plot(result: Result, trajectories: list[Trajectory], plot: Path, out: Console) -> None:
    from lynceus.demo.plot import save_plot

    try:
        save_plot(trajectories, result.job.problem.budget.usd, result.near, plot)
    except MissingExtraError as error:
        out.print(f"\nThe plot is left out: {error}", markup=False)
    except (OSError, ValueError) as error:
        raise InputError(f"--plot: {plot} cannot be written: {error}; choose another path or suffix.") from None
    else:
        out.print(f"\nThe plot is in {plot}.", markup=False)
