"""`lynceus delete`: delete a study for good."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.arguments import StorageOption
from lynceus.cli.output import Output, OutputOption, counted, echo, print_json
from lynceus.errors import InputError

if TYPE_CHECKING:
    from lynceus.library.delete_study import Deletion
    from lynceus.storage.sql.rows import StudyRecord


def delete(
    study: Annotated[str, typer.Argument(help="The name of a study, or its job file.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Also while trials are open or a worker runs it (they are ended), or if it cannot be read."
        ),
    ] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Delete a study for good: its trials and their results, run directories, jobs and machines that are left."""
    from lynceus.library.delete_study import delete_study
    from lynceus.library.find import named_job, storage_url
    from lynceus.storage.sql.storage import Storage
    from lynceus.storage.user import current_user

    job = named_job(study)
    name = study if job is None else job.name
    with Storage(storage_url(storage, job), create=False) as opened:
        known = [record for record in opened.studies() if record.name == name]
        record = known[0] if known else opened.load_study(name)
        if not yes:
            _confirm(record, output)
        deletion = delete_study(opened, name, force=force, by=current_user())
    if output is Output.JSON:
        print_json(deletion)
    else:
        _print(deletion)


def _confirm(record: StudyRecord, output: Output) -> None:
    if not sys.stdin.isatty() or output is Output.JSON:
        raise InputError("delete: there is no terminal to ask for confirmation; add -y to delete the study for good.")
    echo(f"{record.name}: {counted(record.trials, 'trial')} with results and outputs will be gone for good.", err=True)
    if not typer.confirm("Delete it?", default=False, err=True):
        raise typer.Exit(0)


def _print(deletion: Deletion) -> None:
    removed = f", {counted(len(deletion.removed), 'leftover')} removed" if deletion.removed else ""
    echo(f"{deletion.study}: deleted with {counted(deletion.trials, 'trial')}{removed}.")
    if deletion.left is not None:
        echo(f"lynceus: {deletion.study}: something may be left: {deletion.left}", err=True)
