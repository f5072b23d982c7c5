"""`lynceus adopt` and `lynceus rollback`: what production runs of a recurring job have from now on."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from lynceus.cli.arguments import StorageOption
from lynceus.cli.job_options import ByOption, JobArgument, ReasonOption, author, named_job
from lynceus.cli.output import Output, OutputOption, counted, echo, params_text, print_json


def adopt(
    name: JobArgument,
    source: Annotated[
        str | None,
        typer.Option("--from", help="A study, or its job file; by default the study that has the name of the job."),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param",
            "-p",
            help="A value of the configuration, such as nodes=4; the others are as in production, or in the answer of --from.",
        ),
    ] = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make a study's answer, or a configuration that you give, the production configuration of a recurring job.

    Schedulers read it with 'lynceus config NAME', or run the job with 'lynceus exec NAME'.
    """
    from lynceus.library.find import storage_url
    from lynceus.library.recurring.recurring_job import adopt_job

    job = adopt_job(
        name, source=source, params=param or None, storage=storage_url(storage), by=author(by), reason=reason
    )
    config = job.config()
    if output is Output.JSON:
        print_json({"job": name, "version": config.version, "params": config.params})
    else:
        echo(f"{name}: version {config.version} is in production: {params_text(config.params)}")


def retire(
    name: JobArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    storage: StorageOption = None,
) -> None:
    """Forget a recurring job for good: its versions, recorded runs and audit. Its studies stay."""
    from lynceus.errors import InputError

    job = named_job(name, storage)
    runs = counted(len(job.runs), "recorded run")
    if not yes:
        if not sys.stdin.isatty():
            raise InputError("retire: there is no terminal to ask for confirmation; add -y to forget the job for good.")
        if not typer.confirm(
            f"{name}: {runs} and all versions will be gone for good. Forget it?", default=False, err=True
        ):
            raise typer.Exit(0)
    job.store.delete(name)
    if job.host is not None:
        job.host.forget(name)
    echo(f"{name}: forgotten with {runs}.")


def rollback(
    name: JobArgument,
    to: Annotated[
        int | None, typer.Option("--to", min=1, help="The number of a version; by default the one before.")
    ] = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Put an earlier version of a recurring job into production again."""
    job = named_job(name, storage)
    job.rollback(to, by=author(by), reason=reason)
    config = job.config()
    if output is Output.JSON:
        print_json({"job": name, "version": config.version, "params": config.params})
    else:
        echo(f"{name}: version {config.version} is in production again: {params_text(config.params)}")
