"""`lynceus logs`: the output of a trial."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from lynceus.cli.arguments import StorageOption, StudyArgument, named_study
from lynceus.cli.output import Output, OutputOption, print_data, print_json
from lynceus.errors import InputError

_POLL_S = 0.3


def logs(
    study: StudyArgument = None,
    number: Annotated[
        int | None, typer.Argument(help="The number of the trial; without it, the last one that started.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue while the trial runs.")] = False,
    stream: Annotated[str, typer.Option(help="stdout, stderr or both.")] = "both",
    raw: Annotated[
        bool,
        typer.Option(
            "--raw", help="Let the terminal obey the control sequences of the job; files and pipes get them anyway."
        ),
    ] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Print the output of a trial."""
    from lynceus.jobfile.secrets import hidden, known_secrets
    from lynceus.library.trial_output import STREAMS, OutputStream, trial_folder

    if stream not in (*STREAMS, "both"):
        raise InputError(f"--stream is {stream!r}, which is unknown; use stdout, stderr or both.")
    one = named_study(study, storage)
    numbers = {seen.order.number for seen in one.study.observations} | {order.number for order in one.study.pending}
    if number is None and not numbers:
        raise InputError(f"study {one.name!r} has no trial yet.")
    number = max(numbers) if number is None else number
    if number not in numbers:
        raise InputError(f"study {one.name!r} has no trial {number}; 'lynceus trials {one.name}' lists its trials.")
    secrets, folder = known_secrets(one.prepared.job), trial_folder(one, number)
    streams = [OutputStream(folder / name) for name in (STREAMS if stream == "both" else (stream,))]
    if output is Output.JSON:
        print_json({"number": number} | {each.path.name: hidden(each.read(), secrets) for each in streams})
        return
    running = True
    while running:
        one.study.runs.refresh()
        running = follow and any(order.number == number for order in one.study.pending)
        for each in streams:  # after the state was read, so that the end of the output is printed, too
            print_data(hidden(each.read(), secrets).encode("utf-8", "replace"), raw=raw)
        if running:
            time.sleep(_POLL_S)
