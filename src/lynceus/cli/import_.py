"""`lynceus import`: past runs for a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.arguments import StorageOption, named_study, print_note
from lynceus.cli.output import Output, OutputOption, counted, echo, print_json
from lynceus.errors import MissingExtraError

if TYPE_CHECKING:
    from lynceus.library.measurements import Found
    from lynceus.problem.problem import Problem


def import_(
    study: Annotated[
        str, typer.Argument(help="The name of a study, or its job file (then the study is created if necessary).")
    ],
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A CSV file with a column per parameter, runtime, and metrics; what `lynceus export` wrote; or a storage of Optuna "
            "(sqlite:///optuna.db, or a journal file with --optuna).",
        ),
    ],
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out rows that are not in the space.")
    ] = False,
    optuna: Annotated[bool, typer.Option("--optuna", help="FILE is a journal or SQLite file of Optuna.")] = False,
    optuna_study: Annotated[
        str | None, typer.Option("--optuna-study", help="The name of the study in Optuna's storage.")
    ] = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Import past runs, also stopped and failed ones: nothing is run or charged. All rows are imported, or none."""
    from lynceus.jobfile.prepared_study import prepare_file
    from lynceus.library.find import is_job_file
    from lynceus.library.measurements import add_measurements
    from lynceus.library.open_study import create_or_open

    def read(problem: Problem) -> Found:
        if optuna or optuna_study is not None or "://" in source:
            return _of_optuna(source, optuna_study, problem, skip_unknown=skip_unknown)
        return _of_table(Path(source), problem, skip_unknown=skip_unknown)

    if is_job_file(study):
        # The table is read first: when it is refused, no storage and no empty study is created.
        prepared = prepare_file(study)
        found = read(prepared.problem)
        one = create_or_open(prepared, storage)
        print_note(one.note)
    else:
        one = named_study(study, storage)
        found = read(one.study.problem)
    new = add_measurements(one.study, found.runs)
    _print_counts(one.name, new, found, output)


def _print_counts(study: str, new: int, found: Found, output: Output) -> None:
    known = len(found.runs) - new
    if output is Output.JSON:
        counts = {"imported": new, "known_before": known, "skipped": found.unknown, "running": found.running}
        print_json({"study": study, **counts})
        return
    more = f", {known} were known before" if known else ""
    more += f", {found.unknown} are not in the space" if found.unknown else ""
    more += f", {found.running} have not ended and were left out" if found.running else ""
    echo(f"{study}: {counted(new, 'measurement')} {'was' if new == 1 else 'were'} imported{more}.")


def _of_table(path: Path, problem: Problem, *, skip_unknown: bool) -> Found:
    from lynceus.library.measurements import read_measurements

    return read_measurements(path, problem, skip_unknown=skip_unknown)


def _of_optuna(address: str, name: str | None, problem: Problem, *, skip_unknown: bool) -> Found:
    from lynceus.library.measurements import of_runs

    try:
        from lynceus.integrations.optuna.exchange import past_runs
    except ImportError:
        raise MissingExtraError("Studies of Optuna", "optuna") from None

    runs, running = past_runs(address, name, problem)
    return of_runs(runs, running, problem, address, skip_unknown=skip_unknown)
