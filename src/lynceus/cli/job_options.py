"""Arguments and options of the commands about recurring jobs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.output import echo

if TYPE_CHECKING:
    from lynceus.library.recurring.recurring_job import RecurringJob
    from lynceus.library.recurring.steering import Review

JobArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name of a recurring job.")]
ByOption = Annotated[str | None, typer.Option("--by", help="Who does it, for the audit; your user name by default.")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why, for the audit.")]
InputOption = Annotated[
    str | None,
    typer.Option("--input", help="The size of the run's input, such as 120GB (10⁹ bytes each) or 120GiB (2³⁰)."),
]
RunIdOption = Annotated[
    str | None, typer.Option("--run-id", help="The id of the run in your scheduler; a run is recorded once.")
]


def author(by: str | None) -> str:
    """Who does it."""
    from lynceus.storage.user import current_user

    return by if by is not None else current_user() or ""


def named_job(name: str, storage: str | None) -> RecurringJob:
    """The job that the arguments name; nothing is read yet."""
    from lynceus.library.find import storage_url
    from lynceus.library.recurring.recurring_job import RecurringJob

    return RecurringJob(name, storage_url(storage))


def review_and_tell(job: RecurringJob, *, start: bool = True) -> Review | None:
    """Look at the runs so far, do what the mode allows, and tell those who want to know. What was recorded stays, whatever fails here.

    With `start`, a search that the mode allows is started in the background.
    """
    from lynceus.errors import LynceusError
    from lynceus.notify.job_notifier import notify_job
    from lynceus.recurring.action import ActionKind

    try:
        found = job.review()
        notify_job(job.store, found)
    except LynceusError as error:
        echo(f"{job.name}: the run is recorded, but could not be looked at: {error}", err=True)
        return None
    except Exception as error:  # a model that fails must not make a scheduler believe that its run failed
        logging.getLogger("lynceus.recurring").exception("%s could not be looked at", job.name)
        echo(f"{job.name}: the run is recorded, but could not be looked at ({type(error).__name__}).", err=True)
        return None
    for action in found.done:
        echo(f"{job.name}: {action.kind}: {action.reason}.", err=True)
    if start and found.action.kind is ActionKind.RETUNE:
        from lynceus.cli.retune import start_in_background

        start_in_background(job, job.store.storage.url, found.action)
    return found
