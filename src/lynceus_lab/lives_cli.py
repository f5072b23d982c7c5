"""`lynceus lab lives`: simulated lives of recurring jobs, and how soon changes are found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lynceus.errors import InputError

STORE = Path(".lynceus/lab/lives.jsonl")

lives = typer.Typer(name="lives", help="Simulate recurring jobs in production.", no_args_is_help=True)


@lives.command("run")
def run(
    tables: Annotated[str, typer.Option(help="Tables, separated by commas; by default all measured ones.")] = "",
    kinds: Annotated[str, typer.Option(help="Kinds of lives, separated by commas; by default all.")] = "",
    seeds: Annotated[int, typer.Option(min=1, help="Lives of every kind with every table.")] = 3,
    runs: Annotated[int, typer.Option(min=30, help="Runs of a life.")] = 200,
    store: Annotated[Path, typer.Option(help="The file of results, one JSON line each.")] = STORE,
) -> None:
    """Live many lives under every policy, and compare money and late runs with an oracle. What the file has is not run again."""
    from lynceus_lab.life_campaign import late_table, money_table, run_lives
    from lynceus_lab.life_tables import MEASURED, SYNTHETIC
    from lynceus_lab.lives import KINDS

    chosen = _chosen("--tables", tables, (*MEASURED, *SYNTHETIC)) or MEASURED
    happening = _chosen("--kinds", kinds, KINDS) or KINDS
    found = run_lives(chosen, happening, range(seeds), store, runs, lambda line: typer.echo(line, err=True))
    found = [one for one in found if one.table in chosen and one.kind in happening and one.seed < seeds]
    typer.echo(f"Money after the first 20 runs, relative to the oracle:\n\n{money_table(found)}\n")
    typer.echo(f"Late runs beyond the best fixed configuration; changes and canaries per life:\n\n{late_table(found)}")


@lives.command("detection")
def detection(
    repeats: Annotated[int, typer.Option(min=1, help="Changes per cell of the table of delays.")] = 200,
    series: Annotated[int, typer.Option(min=1, help="Quiet series of 200 runs per row of the table of alarms.")] = 100,
) -> None:
    """Measure how soon a change of 20 % is found, and how often one is found where there is none, on made-up runs."""
    from lynceus_lab.life_detection import alarm_table, delay_table

    typer.echo(f"Runs until a change of 20 % is found (median, 90th percentile):\n\n{delay_table(repeats)}\n")
    typer.echo(f"False alarms:\n\n{alarm_table(series)}")


def _chosen(option: str, text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    for name in names:
        if name not in known:
            raise InputError(f"{option}: got {name!r}; expected some of {', '.join(known)}.")
    return names
