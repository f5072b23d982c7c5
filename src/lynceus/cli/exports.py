"""`lynceus export` and `import`: results for other tools, measurements from elsewhere."""

from __future__ import annotations

import csv
import enum
import io
import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lynceus.cli.output import Output, OutputOption, StorageOption, StudyArgument, print_json
from lynceus.errors import InputError, MissingExtraError
from lynceus.plain import finite


class Target(enum.StrEnum):
    """What is written."""

    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"
    SKYPILOT = "skypilot"
    ENV = "env"
    SPARK = "spark"


def export(
    study: StudyArgument = None,
    to: Annotated[
        Target, typer.Option("--to", help="All trials (csv, parquet, json) or the winner (skypilot, env, spark).")
    ] = Target.CSV,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", help="Where to write; standard output by default.")
    ] = None,
    deadline: Annotated[str | None, typer.Option(help="The winner under another deadline.")] = None,
    storage: StorageOption = None,
) -> None:
    """Write the trials of a study, or its winner in the words of another tool."""
    from lynceus.cli.opened import open_study

    one = open_study(study, storage)
    if to in (Target.CSV, Target.PARQUET, Target.JSON):
        from lynceus.insight.records import flat_records, trial_records

        problem, history, pending = one.study.problem, one.study.history, one.study.pending
        if to is Target.JSON:
            text = json.dumps(finite(trial_records(problem, history, pending)), indent=2, ensure_ascii=False) + "\n"
            _write(text.encode(), file)
        else:
            rows = flat_records(problem, history, pending)
            _write(_csv(rows) if to is Target.CSV else _parquet(rows, file), file)
        return
    from lynceus.insight import deadline_limits, verdict
    from lynceus.job.winner import env_file, skypilot_task, spark_defaults
    from lynceus.units import parse_duration

    problem = one.study.problem
    if deadline is not None:
        problem = deadline_limits(problem, parse_duration(deadline, "--deadline"))
    found = verdict(problem, one.study.policy, one.known, seed=one.study.seed)
    if found is None:
        raise InputError(
            f"study {one.name!r} has no configuration that is known to keep the limits, so there is no winner to export."
        )
    answer = found.recommendation
    heading = f"{one.name}: {found.cost_basis}"
    write = {Target.SKYPILOT: skypilot_task, Target.ENV: env_file, Target.SPARK: spark_defaults}[to]
    _write(write(one.prepared, answer.row, heading).encode(), file)


def _csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["number"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _parquet(rows: list[dict[str, Any]], file: Path | None) -> bytes:
    if file is None:
        raise InputError(
            "export: a Parquet file is not for a terminal; say where to write it with --file trials.parquet."
        )
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("Parquet files", "parquet") from None
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    for name, cells in columns.items():
        kinds = {type(cell) for cell in cells if cell is not None}
        if len(kinds) > 1 and not kinds <= {int, float}:
            columns[name] = [None if cell is None else str(cell) for cell in cells]
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    return bytes(sink.getvalue())


def _write(data: bytes, file: Path | None) -> None:
    if file is None:
        typer.echo(data.decode(), nl=False)
        return
    try:
        file.write_bytes(data)
    except OSError as error:
        raise InputError(f"{file}: the file cannot be written: {error.strerror}; choose another place.") from None
    typer.echo(f"{file} is written.", err=True)


def import_(
    study: Annotated[
        str, typer.Argument(help="The name of a study, or its job file (the study is created if need be).")
    ],
    file: Annotated[Path, typer.Argument(help="A CSV file: a column per parameter, runtime, and metrics.")],
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Leave out rows that are not in the space.")
    ] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Past measurements as free knowledge: nothing is run, nothing is charged; all rows are taken, or none."""
    from lynceus.cli.measurements import read_measurements
    from lynceus.cli.named import is_file
    from lynceus.cli.opened import create_or_open, open_study
    from lynceus.job import Job
    from lynceus.job.prepare import prepare

    if is_file(study):
        # A table that is refused leaves no storage and no empty study behind.
        found, skipped = read_measurements(file, prepare(Job.read(study)).problem, skip_unknown=skip_unknown)
        one = create_or_open(study, storage)
    else:
        one = open_study(study, storage)
        found, skipped = read_measurements(file, one.study.problem, skip_unknown=skip_unknown)
    with one.study.together():
        known = {(seen.row, seen.outcome.seconds) for seen in one.study.history}
        new = [row for row in found if (row.row, row.seconds) not in known]
        point = one.study.problem.space.point
        one.study.add_trials((point(row.row), row.seconds, row.metrics) for row in new)
    facts = {"study": one.name, "imported": len(new), "known_before": len(found) - len(new), "skipped": skipped}
    if output is Output.JSON:
        print_json(facts)
        return
    more = f", {facts['known_before']} were known before" if facts["known_before"] else ""
    more += f", {skipped} are not in the space" if skipped else ""
    typer.echo(f"{one.name}: {len(new)} measurements were imported{more}.")
