"""`lynceus config`: the configuration in production, as schedulers read it. Quick, and it works while the storage is away."""

from __future__ import annotations

from typing import Annotated

import typer

from lynceus.cli.arguments import StorageOption
from lynceus.cli.job_options import InputOption, JobArgument, named_job
from lynceus.cli.output import echo, print_data


def config(
    name: JobArgument,
    to: Annotated[
        str, typer.Option("--to", "--output", "-o", metavar="[env|json|args|skypilot|spark]", help="The format.")
    ] = "env",
    run_id: Annotated[
        str | None,
        typer.Option(
            "--run-id",
            help="For this one run, which may be a canary: stop it after LYNCEUS_TIMEOUT_S seconds, and record it under this id.",
        ),
    ] = None,
    input: InputOption = None,
    storage: StorageOption = None,
) -> None:
    """Print the production configuration of a recurring job. While the storage is away, it is the last one that this host saw."""
    job = named_job(name, storage)
    found = job.config(run_id=run_id, input=input)
    if found.stale:
        echo(
            f"{name}: the storage is away; this is version {found.version}, the last one that this host saw.", err=True
        )
    print_data(job.config_text(to, found).encode())
