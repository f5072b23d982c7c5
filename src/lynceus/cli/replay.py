"""`lynceus replay`: policies on a measured table, compared."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.errors import InputError

if TYPE_CHECKING:
    from lynceus.policy import Policy
    from lynceus.replay import Campaign, Replay


class Output(enum.StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"


def replay(
    spec: Annotated[str | None, typer.Argument(help="A job that ships (tensorflow/cnn) or a YAML file.")] = None,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", "-p", help="A preset or a policy file; may be repeated.")
    ] = None,
    lookahead: Annotated[int | None, typer.Option(help="Runs that the policy looks ahead.")] = None,
    timeout: Annotated[str | None, typer.Option(help="When runs are stopped: none, tg, linear, ideal, …")] = None,
    budget: Annotated[str | None, typer.Option(help="Dollars for a whole exploration.")] = None,
    deadline_quantile: Annotated[
        float | None, typer.Option(help="The deadline as a quantile of the table's times.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many replays of each policy.")] = 10,
    first_seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes.")] = 1,
    parallel: Annotated[int, typer.Option(help="Trials under way at the same time.")] = 1,
    to_end: Annotated[
        bool, typer.Option("--to-end", help="Go on after the optimum was run, until the policy stops.")
    ] = False,
    trace: Annotated[Path | None, typer.Option(help="Write every trial to this file, as JSON lines.")] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print the result.")] = Output.TABLE,
    listing: Annotated[bool, typer.Option("--list", help="List the jobs that ship, and leave.")] = False,
) -> None:
    """Replay policies on a table of measured runs and compare what they spend until they are good enough."""
    from lynceus.replay import Campaign, load_job, run_campaign

    if listing:
        _list_jobs(output)
        return
    if spec is None:
        raise InputError(
            "replay: no job was named; 'lynceus replay --list' shows the jobs that ship, or give a YAML file."
        )
    chosen = tuple(_policy(name, lookahead, timeout) for name in policy or ["lynceus"])
    job = load_job(spec, deadline_quantile=deadline_quantile, budget=budget)
    campaign = Campaign(job, chosen, seeds, "end" if to_end else "optimum", parallel, first_seed)
    with _traced_into(trace, campaign) as keep, _live(campaign) as progress:
        replays = run_campaign(campaign, workers, progress)
        keep(replays)
    _print(campaign, replays, output)


def _policy(name: str, lookahead: int | None, timeout: str | None) -> Policy:
    from lynceus.policy import preset

    if not name.lower().endswith((".yaml", ".yml")):
        return preset(name, lookahead, timeout)
    from lynceus.document import Document
    from lynceus.policy.compose import compose

    if lookahead is not None or timeout is not None:
        raise InputError(f"{name}: --lookahead and --timeout belong to presets; write them into the policy file.")
    document = Document.read(name)
    return compose(document.tree.value, at=document.at, default_name=Path(name).stem)


@contextmanager
def _traced_into(path: Path | None, campaign: Campaign) -> Iterator[Callable[[list[Replay]], None]]:
    """A function that writes the trace: whole or not at all. That the folder can be written to is tested before, not after, the work."""
    import json
    import os
    import tempfile

    from lynceus.replay.campaign import traced

    if path is None:
        yield lambda replays: None
        return
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise InputError(f"--trace: {path} cannot be written: {error.strerror}; choose another folder.") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:

            def keep(replays: list[Replay]) -> None:
                for record in traced(campaign, replays):
                    file.write(json.dumps(record) + "\n")

            yield keep
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def _live(campaign: Campaign) -> Iterator[Callable[[Replay], None]]:
    """Live progress on stderr, if somebody is looking."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.fields[last]}")
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks = {one.name: bar.add_task(one.name, total=campaign.seeds, last="") for one in campaign.policies}

        def report(done: Replay) -> None:
            spent = f"seed {done.seed}: ${done.steps[-1].spent_usd:.3g}, {len(done.steps)} trials" if done.steps else ""
            bar.update(tasks[done.policy], advance=1, last=spent)

        yield report


def _print(campaign: Campaign, replays: list[Replay], output: Output) -> None:
    from lynceus.cli.result import as_json, as_table
    from lynceus.replay import summarise

    size = campaign.seeds
    groups = [replays[place : place + size] for place in range(0, len(replays), size)]
    summaries = [summarise(group, campaign.job.optimum.cost_usd) for group in groups]
    if output is Output.JSON:
        typer.echo(as_json(campaign, summaries))
    else:
        as_table(campaign, summaries)


def _list_jobs(output: Output) -> None:
    from lynceus.cli.result import jobs_as_json, jobs_as_table

    if output is Output.JSON:
        typer.echo(jobs_as_json())
    else:
        jobs_as_table()
