"""Arguments and options that several commands share, and the study that they name."""

from __future__ import annotations

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


def print_note(note: str | None) -> None:
    """Print a sentence on stderr, if there is one."""
    if note is not None:
        echo(note, err=True)
