"""`lynceus export`: trials and the best configuration for other tools."""

from __future__ import annotations

import enum
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.arguments import StorageOption, StudyArgument, named_study
from lynceus.cli.output import counted, echo, is_piped, json_text, print_data, write_file
from lynceus.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from lynceus.jobfile.prepared_study import PreparedStudy
    from lynceus.library.open_study import OpenStudy
    from lynceus.study.view import StudyView


class Target(enum.StrEnum):
    """What is written."""

    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"
    OPTUNA = "optuna"
    SKYPILOT = "skypilot"
    ENV = "env"
    SPARK = "spark"
    SHELL = "shell"
    VLLM = "vllm"
    SKYSERVE = "skyserve"
    KUBERNETES = "kubernetes"


def export(
    study: StudyArgument = None,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            "--output",
            "-o",
            metavar=f"[{'|'.join(Target)}]",
            help="The format: all trials (csv, parquet, json, optuna), the best configuration (shell, env, skypilot, spark, kubernetes), "
            "or the best server (vllm, skyserve, kubernetes).",
        ),
    ] = Target.CSV,
    file: Annotated[
        str | None,
        typer.Option(
            "--file",
            "-f",
            help="Where to write; standard output by default. With --to optuna: a journal file, an SQLite file (.db), or the address of a "
            "database.",
        ),
    ] = None,
    deadline: Annotated[str | None, typer.Option(help="The best configuration for another deadline.")] = None,
    image: Annotated[
        str | None, typer.Option(help="With --to kubernetes: the container image of the job or server.")
    ] = None,
    storage: StorageOption = None,
) -> None:
    """Write all trials of a study, or its best configuration in the format of another tool."""
    target = _target(to)
    if image is not None and target is not Target.KUBERNETES:
        raise InputError(
            f"export: --image names the image of a Kubernetes manifest; {target} has none, so leave it out."
        )
    if target is Target.PARQUET and file is None and not is_piped():
        raise InputError("export: a Parquet file cannot be printed; say where to write it with --file trials.parquet.")
    one = named_study(study, storage)
    if target is Target.OPTUNA:
        _to_optuna(one, file)
        return
    trials = target in (Target.CSV, Target.PARQUET, Target.JSON)
    data = _trials(one.study, target) if trials else _winner(one, target, deadline, image)
    if file is None:
        print_data(data)
        return
    write_file(Path(file), data)
    echo(f"Wrote {file}.", err=True)


def _to_optuna(one: OpenStudy, file: str | None) -> None:
    if file is None:
        raise InputError("export: say where Optuna's storage is, with --file optuna.db or --file journal.log.")
    try:
        import optuna

        from lynceus.integrations.optuna.exchange import export_study
    except ImportError:
        raise MissingExtraError("Studies of Optuna", "optuna") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # it would report the new study in a line of its own
    new = export_study(one.study, file)
    echo(f"Wrote {counted(new, 'trial')} of {one.name} to Optuna.", err=True)


def _target(to: str) -> Target:
    try:
        return Target(to)
    except ValueError:
        advice = f"; name the file with --file {to}" if "." in to or "/" in to else ""
        raise InputError(f"export: the format is {to!r}; use one of {', '.join(Target)}{advice}.") from None


def _trials(study: StudyView, to: Target) -> bytes:
    from lynceus.analysis.documents.json import to_json
    from lynceus.analysis.trial_rows import all_trials, trial_rows, trials_csv

    if to is Target.PARQUET:
        return _parquet(study)
    if to is Target.CSV:
        return trials_csv(study)
    rows = to_json(trial_rows(study.problem, all_trials(study)))
    return f"{json_text(rows)}\n".encode()


def _parquet(study: StudyView) -> bytes:
    from lynceus.analysis.trial_rows import flat_rows

    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("Parquet files", "parquet") from None
    rows = flat_rows(study)
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    for name, cells in columns.items():
        kinds = {type(cell) for cell in cells if cell is not None}
        if len(kinds) > 1 and not kinds <= {int, float}:
            columns[name] = [None if cell is None else str(cell) for cell in cells]
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    return bytes(sink.getvalue())


def _winner(one: OpenStudy, to: Target, deadline: str | None, image: str | None) -> bytes:
    from lynceus.analysis.answer import answer
    from lynceus.analysis.whatif import with_deadline
    from lynceus.jobfile.deployment_export import kubernetes_manifest, skypilot_service, vllm_arguments
    from lynceus.jobfile.kubernetes_job import kubernetes_job
    from lynceus.jobfile.winner_export import env_file, shell_line, skypilot_task, spark_defaults
    from lynceus.library.study_context import study_context
    from lynceus.problem.units import parse_duration

    problem = one.study.problem
    if deadline is not None:
        problem = with_deadline(problem, parse_duration(deadline, "--deadline"))
    found = answer(study_context(one), problem)
    if found is None:
        raise InputError(
            f"study {one.name!r}: no configuration is known to meet the constraints, so there is none to export; "
            "let it run more trials."
        )
    write: dict[Target, Callable[[PreparedStudy, int, str], str]] = {
        Target.SHELL: shell_line,
        Target.ENV: env_file,
        Target.SKYPILOT: skypilot_task,
        Target.SPARK: spark_defaults,
        Target.VLLM: vllm_arguments,
        Target.SKYSERVE: skypilot_service,
        Target.KUBERNETES: partial(
            kubernetes_job if one.prepared.job.spec.serve is None else kubernetes_manifest, image=image
        ),
    }
    return write[to](one.prepared, found.row, f"{one.name}: {found.cost_basis}").encode()
