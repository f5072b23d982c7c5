"""`lynceus import`: past measurements for a study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lynceus.cli.arguments import StorageOption, named_study, print_note
from lynceus.cli.output import Output, OutputOption, echo, print_json


def import_(
    study: Annotated[
        str, typer.Argument(help="The name of a study, or its job file (then the study is created if necessary).")
    ],
    file: Annotated[Path, typer.Argument(help="A CSV file with a column per parameter, runtime, and metrics.")],
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out rows that are not in the space.")
    ] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Import past measurements: nothing is run or charged. All rows are imported, or none."""
    from lynceus.jobfile.prepared_study import prepare_file
    from lynceus.library.find import is_job_file
    from lynceus.library.measurements import add_measurements, read_measurements
    from lynceus.library.open_study import create_or_open

    if is_job_file(study):
        # The table is read first: when it is refused, no storage and no empty study is created.
        prepared = prepare_file(study)
        found, skipped = read_measurements(file, prepared.problem, skip_unknown=skip_unknown)
        one = create_or_open(prepared, storage)
        print_note(one.note)
    else:
        one = named_study(study, storage)
        found, skipped = read_measurements(file, one.study.problem, skip_unknown=skip_unknown)
    new = add_measurements(one.study, found)
    known = len(found) - new
    if output is Output.JSON:
        print_json({"study": one.name, "imported": new, "known_before": known, "skipped": skipped})
        return
    more = f", {known} were known before" if known else ""
    more += f", {skipped} are not in the space" if skipped else ""
    echo(f"{one.name}: {new} measurements were imported{more}.")
