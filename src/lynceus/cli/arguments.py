"""Arguments and options that several commands share, and the study that they name."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from lynceus.cli.output import echo

if TYPE_CHECKING:
    from lynceus.library.open_study import OpenStudy

LARGEST_SEED = 2**63 - 1
"""Storages keep 64 bits."""


def _study_names(context: typer.Context, incomplete: str) -> list[str]:
    """Studies whose names a shell may complete; nothing where there is no storage."""
    from lynceus.errors import LynceusError
    from lynceus.library.find import storage_url
    from lynceus.storage.sql.storage import Storage

    try:
        with Storage(storage_url(context.params.get("storage")), create=False) as storage:
            return [record.name for record in storage.studies() if record.name.startswith(incomplete)]
    except (LynceusError, OSError):
        return []


StudyArgument = Annotated[
    str | None,
    typer.Argument(
        help="The name of a study, or its job file; may be omitted if there is only one study.",
        autocompletion=_study_names,
    ),
]
JobFileArgument = Annotated[Path, typer.Argument(help="A job file.")]
StorageOption = Annotated[
    str | None,
    typer.Option(
        "--storage",
        envvar="LYNCEUS_STORAGE",
        help="The database with the studies: sqlite:///lynceus.db or postgresql+psycopg://…",
    ),
]
PolicyOption = Annotated[str | None, typer.Option(help="Another policy than the job file names.")]
MetricsOption = Annotated[
    str | None,
    typer.Option(
        envvar="LYNCEUS_METRICS",
        help="Serve this worker's numbers for Prometheus, such as 127.0.0.1:9464; other machines need LYNCEUS_READ_TOKEN.",
    ),
]
ParallelOption = Annotated[int | None, typer.Option(min=1, help="Trials that run at the same time.")]


def named_study(
    study: str | None, storage: str | None, edits: Literal["mention", "adopt", "ignore"] = "mention"
) -> OpenStudy:
    """The study that the arguments name; edits of its job file are mentioned on stderr, adopted, or ignored."""
    from lynceus.library.open_study import JobEdits, open_named

    one = open_named(study, storage, JobEdits(edits))
    print_note(one.note)
    return one


def check_file_given(file: Path, command: str, storage: str | None) -> None:
    """Refuse the name of a study where a job file is wanted, and say what to do with a study."""
    from lynceus.errors import InputError, LynceusError
    from lynceus.library.find import storage_url
    from lynceus.storage.sql.storage import Storage

    if os.path.exists(file):  # false, and no error, also where a path is too long to be one
        return
    try:
        with Storage(storage_url(storage), create=False) as opened:
            known, shown = any(record.name == str(file) for record in opened.studies()), opened.shown_url
    except LynceusError:
        return  # there is neither a file nor a storage: whoever reads the file says so
    if known:
        given = storage is not None and storage != os.environ.get("LYNCEUS_STORAGE")
        name = shlex.quote(str(file)) + (f" --storage {shlex.quote(shown)}" if given else "")
        raise InputError(
            f"{command}: there is no file {str(file)!r}, but a study of that name in {shown}. To go on with its search: "
            f"lynceus resume {name}. To see what it found: lynceus best {name}. For a new search, name a job file."
        )


def print_note(note: str | None) -> None:
    """Print a sentence on stderr, if there is one."""
    if note is not None:
        echo(note, err=True)
