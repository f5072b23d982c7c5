"""`lynceus report`: a study as one HTML file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from lynceus.cli.arguments import StorageOption, StudyArgument, named_study
from lynceus.cli.output import Output, echo, print_json, write_file
from lynceus.errors import InputError


def report(
    study: StudyArgument = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="The file to write; NAME.html by default.")] = None,
    storage: StorageOption = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="How to print what was written: table or json.")
    ] = "table",
) -> None:
    """Write a self-contained HTML file with interactive plots; it needs no network."""
    from lynceus.library.study_context import study_context
    from lynceus.reports.page import page, report_documents

    if output not in list(Output):
        raise InputError(
            f"report: -o is {output!r}, but it takes a format (table or json); name the file with --file {output}."
        )
    one = named_study(study, storage)
    stem = re.sub(r"[^\w.-]", "_", one.name).lstrip(".")  # the name that a program gave its study may be a path
    target = file or Path(f"{stem}.html")
    write_file(target, page(f"{one.name} · Lynceus", report_documents(study_context(one))).encode())
    if output == Output.JSON:
        print_json({"study": one.name, "file": str(target)})
    else:
        echo(f"Wrote {target}.")
