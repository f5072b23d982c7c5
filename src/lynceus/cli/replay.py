"""`lynceus replay`: compare policies on a table of measured runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lynceus.cli.output import Output, OutputOption, console, counted, params_text, print_json, safe
from lynceus.errors import InputError

if TYPE_CHECKING:
    from lynceus.policy.policy import Policy
    from lynceus.replay.campaign import Campaign
    from lynceus.replay.run import Replay
    from lynceus.replay.summary import Level, Quantiles, Summary


class Noise(StrEnum):
    """How runs of one configuration differ."""

    NONE = "none"
    MEASURED = "measured"


def replay(
    spec: Annotated[str | None, typer.Argument(help="A shipped job (example/nightly-etl) or a YAML file.")] = None,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", "-p", help="A preset or a policy file; may be repeated.")
    ] = None,
    lookahead: Annotated[int | None, typer.Option(help="How many runs the policy looks ahead.")] = None,
    timeout: Annotated[str | None, typer.Option(help="When runs are stopped: none, tg, linear, ideal, …")] = None,
    budget: Annotated[str | None, typer.Option(help="Dollars for a whole search.")] = None,
    deadline_quantile: Annotated[
        float | None, typer.Option(help="The deadline as a quantile of the measured times.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Replays of each policy.")] = 10,
    first_seed: Annotated[int, typer.Option(min=0, max=2**62, help="The first random seed.")] = 0,
    workers: Annotated[int, typer.Option(help="Processes.")] = 1,
    parallel: Annotated[int, typer.Option(help="Trials that run at the same time.")] = 1,
    noise: Annotated[
        Noise, typer.Option(help="Whether a run takes the time of its row, or one of its measured repeats.")
    ] = Noise.NONE,
    to_end: Annotated[
        bool, typer.Option("--to-end", help="Continue after the optimum was run, until the policy stops.")
    ] = False,
    trace: Annotated[Path | None, typer.Option(help="Write every trial to this file, as JSON lines.")] = None,
    output: OutputOption = Output.TABLE,
    listing: Annotated[bool, typer.Option("--list", help="List the shipped jobs, and exit.")] = False,
) -> None:
    """Replay policies on a table of measured runs, and compare what they spend until they are near the optimum."""
    from lynceus.replay.campaign import Campaign, run_campaign
    from lynceus.replay.job import load_job

    if listing:
        _list_jobs(output)
        return
    if spec is None:
        raise InputError(
            "replay: no job was named; 'lynceus replay --list' lists the shipped jobs, or give a YAML file."
        )
    chosen = tuple(_policy(name, lookahead, timeout) for name in policy or ["lynceus"])
    job = load_job(spec, deadline_quantile=deadline_quantile, budget=budget)
    campaign = Campaign(job, chosen, seeds, "end" if to_end else "optimum", parallel, first_seed, noise.value)
    with _trace_file(trace, campaign) as keep, _progress_bars(campaign) as progress:
        replays = run_campaign(campaign, workers, progress)
        keep(replays)
    _print_result(campaign, replays, output)


def _policy(name: str, lookahead: int | None, timeout: str | None) -> Policy:
    from lynceus.jobfile.yaml.document import Document
    from lynceus.policy.policy_file import compose
    from lynceus.policy.presets import preset

    if not name.lower().endswith((".yaml", ".yml")):
        return preset(name, lookahead, timeout)
    if lookahead is not None or timeout is not None:
        raise InputError(f"{name}: --lookahead and --timeout belong to presets; write them into the policy file.")
    document = Document.read(name)
    return compose(document.tree.value, at=document.at, default_name=Path(name).stem)


@contextmanager
def _trace_file(path: Path | None, campaign: Campaign) -> Iterator[Callable[[list[Replay]], None]]:
    """A function that writes the trace, whole or not at all. The folder is checked before the replays start."""
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
def _progress_bars(campaign: Campaign) -> Iterator[Callable[[Replay], None]]:
    """Progress bars on stderr, if it is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    out = console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[last]}"),
    )
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        tasks = {one.name: bar.add_task(one.name, total=campaign.seeds, last="") for one in campaign.policies}

        def report(done: Replay) -> None:
            trials = counted(len(done.steps), "trial")
            spent = f"seed {done.seed}: ${done.steps[-1].spent_usd:.3g}, {trials}" if done.steps else ""
            bar.update(tasks[done.policy], advance=1, last=spent)

        yield report


def _print_result(campaign: Campaign, replays: list[Replay], output: Output) -> None:
    from lynceus.replay.summary import summarise

    size, job = campaign.seeds, campaign.job
    groups = [replays[start : start + size] for start in range(0, len(replays), size)]
    summaries = [summarise(group, job.optimum.cost_usd) for group in groups]
    if output is Output.TABLE:
        _print_table(campaign, summaries)
        return
    print_json(
        {
            "job": job.name,
            "configurations": len(job.problem.space),
            "objective": str(job.problem.objective),
            "constraints": [str(constraint) for constraint in job.problem.constraints],
            "deadline_s": job.problem.deadline_s,
            "budget_usd": job.problem.budget.usd,
            "optimum": {"params": job.problem.space.point(job.optimum.row), "cost_usd": job.optimum.cost_usd},
            "until": campaign.until,
            "policies": summaries,
        }
    )


def _print_table(campaign: Campaign, summaries: Sequence[Summary]) -> None:
    from rich.table import Table

    from lynceus.problem.units import format_duration

    out, ended = console(), campaign.until == "end"
    for line in _job_lines(campaign):
        out.print(line)
    table = Table(caption_justify="left", show_lines=True)
    table.caption = (
        "p50 / p90 over seeds: dollars, multiples of one run of the optimum, and trials until the best run "
        "costs at most that many times as much as the optimum (CNO)"
    )
    table.add_column("policy", style="bold")
    headings = ["seeds", *(f"to CNO ≤ {level.cno:g}" for level in summaries[0].levels), "stopped trials"]
    for heading in [*headings, "time of a decision", *(["CNO at stop"] if ended else [])]:
        table.add_column(heading, justify="right")
    for summary in summaries:
        cells = [str(summary.seeds), *(_level(level, summary.seeds) for level in summary.levels)]
        cells += [_quantiles(summary.stopped, _short), _quantiles(summary.decision_s, format_duration)]
        if ended:
            at_stop = summary.cno_at_stop
            cells.append("not asked" if at_stop is None else _quantiles(at_stop, lambda cno: f"{cno:.3g}"))
        table.add_row(safe(summary.policy), *cells)
    out.print(table)


def _job_lines(campaign: Campaign) -> list[str]:
    """What was replayed, in two lines."""
    from lynceus.problem.units import format_money

    job, problem = campaign.job, campaign.job.problem
    constraints = " and ".join(str(constraint) for constraint in problem.constraints) or "no constraints"
    facts = f"{counted(len(problem.space), 'configuration')}, {problem.objective}, {constraints}"
    best = safe(params_text(problem.space.point(job.optimum.row)))
    return [
        f"[bold]{safe(job.name)}[/]: {safe(facts)}, budget {format_money(problem.budget.usd)}",
        f"optimum: {best} at ${job.optimum.cost_usd:.6g} a run",
    ]


def _level(level: Level, seeds: int) -> str:
    from lynceus.problem.units import format_money

    lines = [_quantiles(level.usd, format_money)]
    if math.isfinite(level.usd.p50):
        lines += [f"{_quantiles(level.multiples, _short)} ×", f"{_quantiles(level.trials, _short)} trials"]
    if level.unreached:
        lines.append(f"{level.unreached} of {seeds} unreached")
    return "\n".join(lines)


def _quantiles(quantiles: Quantiles, shown: Callable[[float], str]) -> str:
    if math.isinf(quantiles.p50):
        return "not reached"
    return f"{shown(quantiles.p50)} / {shown(quantiles.p90) if math.isfinite(quantiles.p90) else 'not reached'}"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.5 else f"{value:.3g}"


def _list_jobs(output: Output) -> None:
    from rich.table import Table

    rows = _shipped_jobs()
    if output is Output.JSON:
        print_json(rows)
        return
    headings = ("job", "configurations", "optimum", "deadline", "table")
    table = Table(*headings)
    for row in rows:
        table.add_row(*(safe(str(row[heading])) for heading in headings))
    console().print(table)


def _shipped_jobs() -> list[dict[str, Any]]:
    from lynceus.problem.units import format_duration, format_money
    from lynceus.replay.job import load_job, table_present
    from lynceus.replay.shipped import shipped_jobs

    rows: list[dict[str, Any]] = []
    for name in shipped_jobs():
        row: dict[str, Any] = {"job": name, "configurations": "", "optimum": "", "deadline": "", "table": "missing"}
        if table_present(name):
            job = load_job(name)
            row |= {
                "configurations": len(job.problem.space),
                "optimum": format_money(job.optimum.cost_usd),
                "deadline": format_duration(job.problem.deadline_s),
                "table": "present",
            }
        rows.append(row)
    return rows
