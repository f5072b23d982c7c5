"""`lynceus resume`: continue a study."""

from __future__ import annotations

from typing import Annotated

import typer

from lynceus.cli.arguments import ParallelOption, StorageOption, StudyArgument, named_study, print_note
from lynceus.cli.output import Output, OutputOption


def resume(
    study: StudyArgument = None,
    add_budget: Annotated[str | None, typer.Option(help="More money for the search, such as '5 USD'.")] = None,
    parallel: ParallelOption = None,
    reprice: Annotated[
        bool, typer.Option("--reprice", help="Continue at today's prices, see 'lynceus prices'.")
    ] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Continue a study after a stop, a crash, a pause or a spent budget. Open trials are taken over; nothing runs or is paid twice."""
    from lynceus.cli.worker import work
    from lynceus.jobfile.checks import check_runnable
    from lynceus.library.price_updates import apply_prices, price_note
    from lynceus.problem.units import parse_money
    from lynceus.trial.record import RequestedState

    one = named_study(study, storage, "adopt")
    if reprice:
        one, _ = apply_prices(one)
    print_note(price_note(one))
    check_runnable(one.prepared.job)  # a missing secret is an error before the study changes
    usd = 0.0 if add_budget is None else parse_money(add_budget, "--add-budget")
    if usd or one.study.stopped is not None or one.study.record.requested_state is not RequestedState.RUN:
        one.study.resume(usd)
    work(one, parallel or one.prepared.parallel, output)
