"""`lynceus record`: a production run that was made elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer

from lynceus.cli.arguments import StorageOption
from lynceus.cli.job_options import InputOption, JobArgument, RunIdOption, named_job, review_and_tell
from lynceus.cli.output import Output, OutputOption, echo, print_json


def record(
    name: JobArgument,
    runtime: Annotated[str | None, typer.Option("--runtime", help="How long the job ran, such as 31m.")] = None,
    input: InputOption = None,
    cost: Annotated[
        str | None, typer.Option("--cost", help="What it cost, such as $1.20; by default its time at its price.")
    ] = None,
    run_id: RunIdOption = None,
    version: Annotated[
        int | None, typer.Option("--version", min=1, help="The version that ran; the one in production by default.")
    ] = None,
    state: Annotated[str, typer.Option("--state", help="How it ended: complete, timeout or fail.")] = "complete",
    why: Annotated[
        str | None, typer.Option("--why", help="Why it failed: infra, preempted, oom, job or user; job by default.")
    ] = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Record a production run of a recurring job that was made elsewhere. The same run id is recorded once."""
    job = named_job(name, storage)
    new = job.record(runtime, input=input, cost=cost, run_id=run_id, version=version, state=state, reason=why)
    waiting = job.waiting
    found = None if waiting else review_and_tell(job)
    if output is Output.JSON:
        changed = [] if found is None else [str(action.kind) for action in found.done]
        print_json({"job": name, "new": new, "waiting": waiting, "changes": changed})
        return
    if waiting:
        echo(
            f"{name}: the storage is away; {waiting} run{'s are' if waiting > 1 else ' is'} kept on this host and recorded later."
        )
    else:
        echo(f"{name}: recorded." if new else f"{name}: this run was recorded before; nothing was changed.")
