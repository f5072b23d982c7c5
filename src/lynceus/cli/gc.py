"""`lynceus gc`: what is left over of studies, wherever it runs, and an end to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.output import Output, OutputOption, StorageOption, StudyArgument, console, print_json

if TYPE_CHECKING:
    from lynceus.cli.leftovers import Leftover
    from lynceus.cli.opened import Opened

EXIT_INFRASTRUCTURE = 4


def gc(
    study: StudyArgument = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it; otherwise leftovers are only listed.")] = False,
    outputs: Annotated[
        bool, typer.Option("--outputs", help="Also what settled trials wrote (their results stay).")
    ] = False,
    abandoned: Annotated[
        bool, typer.Option("--abandoned", help="Also open trials that nobody works on; they count as stopped by you.")
    ] = False,
    strangers: Annotated[
        bool, typer.Option("--strangers", help="Also what belongs to studies that this storage does not hold.")
    ] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List jobs, processes, machines and directories that no open trial needs, of one study or of all; end them with --yes."""
    from lynceus.cli.leftovers import abandoned as abandoned_trials
    from lynceus.cli.leftovers import end_abandoned, find_leftovers, remove_leftovers
    from lynceus.job.secrets import known_secrets

    studies = _studies(study, storage)
    alone = {one.name: trials for one in studies if (trials := abandoned_trials(one))}
    if yes and abandoned:
        for one in studies:
            if one.name in alone:
                end_abandoned(one, known_secrets(one.prepared.job))
    unseen: dict[str, str] = {}
    found = find_leftovers(studies, unseen, outputs=outputs, strangers=strangers)
    if yes:
        remove_leftovers(found)
    leftovers = [one.leftover for one in found]
    if output is Output.JSON:
        print_json({"removed": yes, "leftovers": leftovers, "abandoned": alone, "unseen": unseen})
    else:
        _show(leftovers, alone, ended=abandoned, done=yes, name=studies[0].name if len(studies) == 1 else "all studies")
    for name, reason in unseen.items():
        typer.echo(f"lynceus: {name}: its executor cannot be asked what is left: {reason}", err=True)
    if unseen:
        raise typer.Exit(EXIT_INFRASTRUCTURE)


def _show(leftovers: list[Leftover], alone: dict[str, list[int]], *, ended: bool, done: bool, name: str) -> None:
    out = console()
    for study, trials in alone.items():
        what = ", ".join(map(str, trials))
        then = "ended" if done and ended else f"continue with 'lynceus resume {study}', or end them with --abandoned"
        out.print(f"{study}: open trials that nobody works on: {what} ({then})", markup=False)
    for left in leftovers:
        out.print(f"{left.study}: {left.kind} {left.where} ({left.why})", markup=False)
    if leftovers:
        out.print("ended and removed." if done else "nothing was touched; add --yes to end and remove them.")
    elif not alone:
        typer.echo(f"{name}: nothing is left over.")


def _studies(named: str | None, storage: str | None) -> list[Opened]:
    """The study that was named, or all that the storage holds."""
    from lynceus.cli.named import storage_url
    from lynceus.cli.opened import open_study, opened
    from lynceus.ledger.sql import Storage

    if named is not None:
        return [open_study(named, storage)]
    kept = Storage(storage_url(storage), create=False)
    return [opened(kept, record) for record in kept.studies()]
