"""`lynceus retune`: search again for a recurring job, as a study of its own."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.arguments import ParallelOption, StorageOption
from lynceus.cli.job_options import ByOption, JobArgument, ReasonOption, author, named_job, review_and_tell
from lynceus.cli.output import Output, OutputOption, console, echo
from lynceus.errors import InfrastructureError, InputError

if TYPE_CHECKING:
    from lynceus.library.recurring.recurring_job import RecurringJob
    from lynceus.recurring.action import Action


def retune(
    name: JobArgument,
    budget: Annotated[
        str | None,
        typer.Option("--budget", help="What the search may spend; by default what is left of the allowance."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before money is spent.")] = False,
    parallel: ParallelOption = None,
    by: ByOption = None,
    reason: ReasonOption = "",
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Search again for a recurring job with everything known of it: earlier studies, production runs, input sizes, prices.

    What it finds is tried and adopted by the rules of the job's mode. A search that was interrupted is continued.
    """
    from lynceus.cli.plan import plan_text
    from lynceus.cli.worker import work
    from lynceus.jobfile.checks import check_startable
    from lynceus.library.recurring.retune import finish_retune, start_retune
    from lynceus.problem.units import parse_money

    job = named_job(name, storage)
    usd = None if budget is None else parse_money(budget, "--budget")
    if not yes and (output is Output.JSON or not sys.stdin.isatty()):
        raise InputError("retune: there is no terminal to ask for confirmation; add -y to search and spend money.")
    one = start_retune(job.store, name, budget_usd=usd, by=author(by), reason=reason)
    check_startable(one.prepared.job)
    width = parallel or one.prepared.parallel
    if output is Output.TABLE:
        console().print(plan_text(one.prepared, width, one.study.journal.shared_budgets(), one.prepared.notes))
    if not yes and not typer.confirm("Search?", default=True, err=True):
        raise typer.Exit(0)
    try:
        work(one, width, output)
    finally:
        finish_retune(job.store, name, one.name)
        review_and_tell(job, start=False)


def start_in_background(job: RecurringJob, url: str, action: Action) -> None:
    """Search again without a terminal, for the money and the reason of a decision; the output goes into a file of the host's state."""
    if job.host is None:
        return
    folder = job.host.folder(job.name)
    log = folder / "retune.log"
    command = [sys.executable, "-m", "lynceus.cli", "retune", job.name, "--yes", "--by", "lynceus"]
    command += ["--budget", f"{action.budget_usd:.6f} USD", "--reason", action.reason]
    # The address of the storage may contain a password: the environment hides it from `ps`.
    environment = {**os.environ, "LYNCEUS_STORAGE": url}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        process = os.posix_spawn(sys.executable, command, environment, file_actions=files, setsid=True)
    except OSError as error:
        raise InfrastructureError(f"retune: the search could not be started: {error}; check {folder}.") from None
    echo(f"{job.name}: searching again in the background (process {process}, {log}).", err=True)
