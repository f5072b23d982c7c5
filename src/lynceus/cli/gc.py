"""`lynceus gc`: find and remove what trials left behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli import exit_codes
from lynceus.cli.arguments import StorageOption, StudyArgument, named_study
from lynceus.cli.output import Output, OutputOption, console, print_json

if TYPE_CHECKING:
    from lynceus.library.leftovers import Leftover
    from lynceus.library.open_study import OpenStudy


def gc(
    study: StudyArgument = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove them; otherwise leftovers are only listed.")] = False,
    outputs: Annotated[
        bool, typer.Option("--outputs", help="Also the output of settled trials (their results stay).")
    ] = False,
    abandoned: Annotated[
        bool, typer.Option("--abandoned", help="Also open trials without a worker; they count as stopped by the user.")
    ] = False,
    strangers: Annotated[
        bool, typer.Option("--strangers", help="Also what belongs to studies that this storage does not have.")
    ] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List jobs, processes, machines and directories that no open trial needs, of one study or of all; remove them with --yes."""
    from lynceus.jobfile.secrets import known_secrets
    from lynceus.library.leftovers import abandoned_trials, end_abandoned, find_leftovers, remove_leftovers

    studies = _studies(study, storage)
    open_trials = {one.name: numbers for one in studies if (numbers := abandoned_trials(one))}
    if yes and abandoned:
        for one in studies:
            if one.name in open_trials:
                end_abandoned(one, known_secrets(one.prepared.job))
    found, unreachable = find_leftovers(studies, outputs=outputs, strangers=strangers)
    if yes:
        remove_leftovers(found)
    leftovers = [one.leftover for one in found]
    if output is Output.JSON:
        print_json({"removed": yes, "leftovers": leftovers, "abandoned": open_trials, "unseen": unreachable})
    else:
        _print_abandoned(open_trials, ended=yes and abandoned)
        _print_leftovers(leftovers, removed=yes)
        if not leftovers and not open_trials:
            typer.echo(f"{studies[0].name if len(studies) == 1 else 'all studies'}: nothing is left over.")
    for name, reason in unreachable.items():
        typer.echo(f"lynceus: {name}: its executor cannot be asked what is left: {reason}", err=True)
    if unreachable:
        raise typer.Exit(exit_codes.INFRASTRUCTURE)


def _print_abandoned(open_trials: Mapping[str, Sequence[int]], *, ended: bool) -> None:
    for study, numbers in open_trials.items():
        then = "ended" if ended else f"continue with 'lynceus resume {study}', or end them with --abandoned"
        typer.echo(f"{study}: open trials without a worker: {', '.join(map(str, numbers))} ({then})")


def _print_leftovers(leftovers: Sequence[Leftover], *, removed: bool) -> None:
    out = console()
    for left in leftovers:
        out.print(f"{left.study}: {left.kind} {left.where} ({left.why})", markup=False)
    if leftovers:
        out.print("Ended and removed." if removed else "Nothing was changed; add --yes to end and remove them.")


def _studies(named: str | None, storage: str | None) -> list[OpenStudy]:
    """The named study, or all studies of the storage."""
    from lynceus.library.find import storage_url
    from lynceus.library.open_study import open_record
    from lynceus.storage.sql.storage import Storage

    if named is not None:
        return [named_study(named, storage)]
    opened = Storage(storage_url(storage), create=False)
    return [open_record(opened, record) for record in opened.studies()]
