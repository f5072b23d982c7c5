"""`lynceus gc`: find and remove what trials left behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli import exit_codes
from lynceus.cli.arguments import StorageOption, StudyArgument, named_study
from lynceus.cli.output import Output, OutputOption, console, echo, print_json
from lynceus.errors import InfrastructureError, LynceusError

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
    from lynceus.library.leftovers import abandoned_trials, find_leftovers, remove_leftovers

    studies, unreadable = _studies(study, storage)
    open_trials = {one.name: numbers for one in studies if (numbers := abandoned_trials(one))}
    still_open = _end_abandoned([one for one in studies if one.name in open_trials]) if yes and abandoned else {}
    found, unreachable = find_leftovers(studies, outputs=outputs, strangers=strangers)
    unreachable |= unreadable
    if yes:
        remove_leftovers(found)
    leftovers = [one.leftover for one in found]
    if output is Output.JSON:
        facts = {"removed": yes, "leftovers": leftovers, "abandoned": open_trials}
        print_json({**facts, "unseen": unreachable, "not_ended": still_open})
    else:
        ended = {name: numbers for name, numbers in open_trials.items() if name not in still_open}
        commands = {one.name: one.prepared.job.has_command for one in studies}
        _print_abandoned(ended, commands, ended=yes and abandoned)
        _print_leftovers(leftovers, removed=yes)
        if not leftovers and not open_trials and not unreachable:
            echo(f"{studies[0].name if len(studies) == 1 else 'all studies'}: nothing is left over.")
    for name, reason in unreachable.items():
        echo(f"lynceus: {name}: cannot tell what is left: {reason}", err=True)
    for reason in still_open.values():
        echo(f"lynceus: {reason}", err=True)
    if unreachable or still_open:
        raise typer.Exit(exit_codes.INFRASTRUCTURE)


def _end_abandoned(studies: Sequence[OpenStudy]) -> dict[str, str]:
    """End open trials without a worker; returns the studies some of whose trials do not end, with the reason."""
    from lynceus.jobfile.secrets import known_secrets
    from lynceus.library.leftovers import end_abandoned

    still_open = {}
    for one in studies:
        try:
            end_abandoned(one, known_secrets(one.prepared.job))
        except InfrastructureError as error:
            still_open[one.name] = str(error)
    return still_open


def _print_abandoned(open_trials: Mapping[str, Sequence[int]], commands: Mapping[str, bool], *, ended: bool) -> None:
    for study, numbers in open_trials.items():
        more = f"continue with 'lynceus resume {study}'" if commands[study] else "tell how they ended"
        then = "ended" if ended else f"{more}, or end them with --abandoned --yes"
        echo(f"{study}: open trials without a worker: {', '.join(map(str, numbers))} ({then})")


def _print_leftovers(leftovers: Sequence[Leftover], *, removed: bool) -> None:
    out = console()
    for left in leftovers:
        out.print(f"{left.study}: {left.kind} {left.where} ({left.why})", markup=False, soft_wrap=True)
    if leftovers:
        out.print("Ended and removed." if removed else "Nothing was changed; add --yes to end and remove them.")


def _studies(named: str | None, storage: str | None) -> tuple[list[OpenStudy], dict[str, str]]:
    """The named study, or all studies of the storage; and those that cannot be opened, with the reason."""
    from lynceus.library.find import storage_url
    from lynceus.library.open_study import open_record
    from lynceus.storage.sql.storage import Storage

    if named is not None:
        return [named_study(named, storage)], {}
    opened = Storage(storage_url(storage), create=False)
    found, unreadable = [], {}
    for record in opened.studies():
        try:
            found.append(open_record(opened, record))
        except LynceusError as error:
            unreadable[record.name] = str(error)
    return found, unreadable
