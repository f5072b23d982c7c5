"""`lynceus report`: a study as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lynceus.cli.output import StorageOption, StudyArgument
from lynceus.errors import InputError


def report(
    study: StudyArgument = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; NAME.html by default.")
    ] = None,
    storage: StorageOption = None,
) -> None:
    """Write one self-contained HTML file with interactive plots; it needs no network."""
    from lynceus.cli.opened import open_study
    from lynceus.report_page import page, report_documents
    from lynceus.view import subject_of

    one = open_study(study, storage)
    target = file or Path(f"{one.name}.html")
    text = page(f"{one.name} · Lynceus", report_documents(subject_of(one)))
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{target}: the file cannot be written: {error.strerror}; choose another place.") from None
    typer.echo(f"{target} is written.")
