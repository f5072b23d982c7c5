"""`lynceus stop`: start no more trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.arguments import StorageOption, StudyArgument, named_study
from lynceus.cli.output import Output, OutputOption, echo, print_json
from lynceus.errors import InputError, LynceusError

if TYPE_CHECKING:
    from lynceus.library.open_study import OpenStudy


def stop(
    study: StudyArgument = None,
    kill: Annotated[
        bool, typer.Option("--kill", help="End open trials, too; they count as stopped by the user.")
    ] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Start no more trials; open ones finish, or end now with --kill."""
    from lynceus.library.leftovers import abandoned_trials, wait_for_workers

    one = named_study(study, storage)
    over = one.study.over
    abandoned: list[int] = []
    ended: list[int] = []
    if not over:
        one.study.stop(kill=kill)
        abandoned = abandoned_trials(one)
        ended = abandoned if kill and abandoned and _end_abandoned(one) else []
        if kill:
            wait_for_workers(one, abandoned)
        _notify(one)
    if output is Output.JSON:
        open_trials = 0 if over else len(one.study.pending)
        print_json({"study": one.name, "open_trials": open_trials, "kill": kill, "ended_here": ended, "over": over})
    elif over:
        echo(f"{one.name} is over already: {one.study.reason}.")
    else:
        what = _open_trials(one, abandoned, ended, kill=kill)
        echo(f"{one.name}: no more trials will start; {what}. Continue with: lynceus resume {one.name}")


def _open_trials(one: OpenStudy, abandoned: list[int], ended: list[int], *, kill: bool) -> str:
    """What happens to open trials."""
    running = len(one.study.pending)
    if kill and not running and not ended:
        return "no trial is open any more"
    if ended:
        return f"{len(ended)} open without a worker {'was' if len(ended) == 1 else 'were'} ended"
    if not running:
        return "none is open"
    if abandoned:
        return f"{running} open without a worker: end them with: lynceus gc {one.name} --abandoned --yes"
    if kill:
        return f"their worker has not ended {running} open {'trial' if running == 1 else 'trials'} yet; see: lynceus status {one.name}"
    return f"open trials finish first ({running})"


def _end_abandoned(one: OpenStudy) -> bool:
    """End the open trials in place of a worker that is gone; False when this machine cannot reach them."""
    from lynceus.jobfile.secrets import known_secrets
    from lynceus.library.leftovers import end_abandoned

    try:
        end_abandoned(one, known_secrets(one.prepared.job))
    except LynceusError as error:
        echo(f"lynceus: {error}", err=True)
    one.study.runs.refresh()
    return not one.study.pending


def _notify(one: OpenStudy) -> None:
    """Send the notifications that a worker would send at the end, because there may be no worker."""
    from lynceus.notify.notifier import notifier_of

    try:
        notifier = notifier_of(one.prepared.job)
    except InputError:
        return  # the addresses are secrets of the machine that started the study
    notifier.notify(one.study)
    notifier.close()
