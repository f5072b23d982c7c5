"""`lynceus lab`: declared experiments, run, and judged against what was published."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.errors import InfrastructureError, InputError

if TYPE_CHECKING:
    from lynceus.lab.cell import Done
    from lynceus.lab.engines import Crashed
    from lynceus.lab.experiment import Experiment

STORE = Path(".lynceus/lab")
"""Where traces are kept unless another folder is named."""
_FEW_SEEDS = 2
"""Of `--quick` for an experiment that is not part of the quick set."""
_EVERY_S = 30.0
"""Seconds between two lines of progress when nobody looks at a bar."""

lab = typer.Typer(
    name="lab",
    help="Reproduce published experiments on measured tables.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Names = Annotated[
    list[str] | None, typer.Argument(help="Experiments that ship (see 'lynceus lab list') or YAML files.")
]
StoreFolder = Annotated[Path, typer.Option("--store", help="The folder of traces.")]


@lab.command("list")
def listing() -> None:
    """List the experiments."""
    from rich.table import Table

    from lynceus.cli.result import console
    from lynceus.lab.experiment import load_experiment, shipped_experiments

    table = Table("experiment", "source", "what it shows", "cells", "quick seeds")
    for name in shipped_experiments():
        experiment = load_experiment(name)
        spec = experiment.spec
        table.add_row(name, spec.source, spec.title, f"{len(experiment.cells()):,}", str(spec.quick or "–"))
    console().print(table)


@lab.command("run")
def run(
    names: Names = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help=f"The quick set, or of the named ones as many seeds as it has of them; {_FEW_SEEDS} of those it does not have.",
        ),
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="Every experiment that ships.")] = False,
    seeds: Annotated[int | None, typer.Option(help="Other than the experiment's own number of seeds.")] = None,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", "-p", help="Only this competitor, by its label; may be repeated.")
    ] = None,
    engine: Annotated[str, typer.Option(help="local, ray, or ray://HOST:PORT.")] = "local",
    workers: Annotated[int, typer.Option(help="Processes of the local engine.")] = 1,
    store: StoreFolder = STORE,
) -> None:
    """Run what is missing of experiments; interrupt it at any time, the next call goes on."""
    from lynceus.lab.campaign import run_cells
    from lynceus.lab.engines import engine_named
    from lynceus.lab.store import Store

    chosen = chosen_experiments(names, quick=quick, everything=everything)
    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds: {seeds} came; give at least 1.")
    _known(policy or [], chosen)
    cells = [
        cell
        for each in chosen
        for cell in each.cells(
            seeds or (min(each.spec.quick or _FEW_SEEDS, each.spec.seeds) if quick else None), policy or ()
        )
    ]
    kept, how = Store(store), engine_named(engine, workers)
    missing = len(kept.missing(cells))
    with _progress(missing) as report:
        ran = run_cells(cells, how, kept, report)
    typer.echo(
        f"{ran.asked:,} cells: {ran.found:,} had been run, {ran.made:,} were run now, {len(ran.crashed)} crashed."
    )
    if ran.crashed:
        first = ran.crashed[0]
        raise InfrastructureError(
            f"lab: {len(ran.crashed)} cells crashed, the first on {first.cell.setting.job} with seed {first.cell.seed}: "
            f"{first.reason}; everything else is kept, run again to retry."
        )


def chosen_experiments(names: list[str] | None, *, quick: bool | None, everything: bool) -> list[Experiment]:
    """The experiments that a command line asks for; `quick` is nothing where a command has no such option."""
    from lynceus.lab.experiment import load_experiment, shipped_experiments

    _check_data_folder()
    if names:
        return [load_experiment(name) for name in names]
    if not (quick or everything):
        options = "--all" if quick is None else "--quick or --all"
        raise InputError(f"lab: no experiment was named; 'lynceus lab list' shows them, or give {options}.")
    every = [load_experiment(name) for name in shipped_experiments()]
    return every if everything else [each for each in every if each.spec.quick]


def _check_data_folder() -> None:
    """Tables that are looked for in the wrong place are missing one by one, after hours; the place itself is wrong at once."""
    named = os.environ.get("LYNCEUS_DATA")
    if named and not Path(named).is_dir():
        raise InputError(f"LYNCEUS_DATA: {Path(named).absolute()} is not a folder; set it to the folder of the tables.")


def _known(labels: list[str], experiments: list[Experiment]) -> None:
    from lynceus.document.complaint import hint

    known = list(dict.fromkeys(label for each in experiments for label in each.policies))
    for label in labels:
        if label not in known:
            raise InputError(f"--policy: no experiment that was named has a policy {label!r}{hint(label, known)}")


@contextmanager
def _progress(total: int) -> Iterator[Callable[[Done | Crashed], None]]:
    """A bar with the time left on a terminal, a line now and then elsewhere; both on stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(total)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda result: bar.update(
            task, advance=1, description=f"{result.cell.setting.job}, seed {result.cell.seed}"
        )


def _lines(total: int) -> Callable[[Done | Crashed], None]:
    from lynceus.units import format_duration

    began = last = time.monotonic()
    count = 0

    def report(result: Done | Crashed) -> None:
        nonlocal last, count
        count += 1
        now = time.monotonic()
        if now - last >= _EVERY_S or count == total:
            last = now
            left = format_duration(round((now - began) / count * (total - count)))
            typer.echo(f"{count:,} of {total:,} cells, about {left} left", err=True)

    return report


@lab.command("verify")
def verify(
    names: Names = None,
    everything: Annotated[bool, typer.Option("--all", help="Every experiment that ships.")] = False,
    per: Annotated[
        int,
        typer.Option(help="Cells of every setting that are run again: the longest, and others down to the shortest."),
    ] = 2,
    store: StoreFolder = STORE,
) -> None:
    """Run some cells again that were made with other code; where they are equal, the others of their setting are adopted."""
    from lynceus.lab.store import Store
    from lynceus.lab.verify import Verified
    from lynceus.lab.verify import verify as verified

    if per < 1:
        raise InputError(f"--per: {per} came; give at least 1.")

    def told(one: Verified) -> None:
        if one.differing:
            name = one.setting.written()["policy"]
            label = name if isinstance(name, str) else name.get("name", "policy")
            typer.echo(f"{one.setting.job}, {label}, seed {one.differing[0]}: the code of now decides otherwise.")

    found = verified(chosen_experiments(names, quick=None, everything=everything), Store(store), per, told)
    same = [one for one in found if not one.differing]
    typer.echo(
        f"{len(found)} settings had traces of other code: {len(same)} give equal traces now "
        f"({sum(one.adopted for one in same):,} further traces adopted), {len(found) - len(same)} do not."
    )


@lab.command("report")
def report(
    names: Names = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only the experiments of the quick set.")] = False,
    store: StoreFolder = STORE,
    out: Annotated[Path, typer.Option(help="The folder of summaries, tables and pictures.")] = Path("docs/results"),
    page: Annotated[Path | None, typer.Option(help="The page; by default beside the folder, with its name.")] = None,
    svg: Annotated[bool, typer.Option("--svg/--no-svg", help="Pictures as SVG too.")] = True,
) -> None:
    """Summarise what was run, draw it, and put every published claim beside our number."""
    from lynceus.lab.experiment import shipped_experiments
    from lynceus.lab.report import write_page, write_summaries
    from lynceus.lab.store import Store

    shipped = list(shipped_experiments())
    chosen = chosen_experiments(names, quick=quick, everything=not quick)
    written = write_summaries(chosen, Store(store), out)
    target = page or out.with_suffix(".md")
    _make_folder(target.parent)
    write_page(out, target, shipped, ("png", "svg") if svg else ("png",))
    typer.echo(f"{len(written)} summaries in {out}, the page is {target}.")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--page: {folder} cannot be made: {error.strerror}; choose another folder.") from None
