"""`lynceus resume`: continue a study."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.arguments import MetricsOption, ParallelOption, StorageOption, StudyArgument, named_study, print_note
from lynceus.cli.limits import ConstraintOption, given_limits
from lynceus.cli.output import Output, OutputOption, counted

if TYPE_CHECKING:
    from lynceus.study.study import Study


def resume(
    study: StudyArgument = None,
    add_budget: Annotated[str | None, typer.Option(help="More money for the search, such as '5 USD'.")] = None,
    add_trials: Annotated[int, typer.Option(help="More trials, where budget.max_trials limits them.", min=0)] = 0,
    constraint: ConstraintOption = None,
    deadline: Annotated[
        str | None, typer.Option(help="Another deadline, such as 45m: the same as --constraint 'runtime <= 45m'.")
    ] = None,
    parallel: ParallelOption = None,
    reprice: Annotated[
        bool, typer.Option("--reprice", help="Continue at today's prices, see 'lynceus prices'.")
    ] = False,
    metrics: MetricsOption = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Continue a study after a stop, a crash, a pause or a spent budget, perhaps with more money or trials, or under other limits.

    Open trials are taken over; nothing runs or is paid twice.
    """
    from lynceus.cli.worker import work
    from lynceus.jobfile.checks import check_runnable
    from lynceus.library.limits import change_limits, limits_note
    from lynceus.library.price_updates import apply_prices, price_note
    from lynceus.problem.units import parse_money
    from lynceus.trial.record import RequestedState

    one = named_study(study, storage, "adopt")
    check_runnable(one.prepared.job)  # a missing secret or command is an error before the study changes
    if reprice:
        one, _ = apply_prices(one)
    print_note(price_note(one))
    usd = 0.0 if add_budget is None else parse_money(add_budget, "--add-budget")
    if limits := given_limits(one.study, constraint, deadline):
        one = change_limits(one, limits, usd, add_trials)
        print_note(limits_note(one))
    elif (
        usd or add_trials or one.study.stopped is not None or one.study.record.requested_state is not RequestedState.RUN
    ):
        one.study.resume(usd, add_trials=add_trials)
    if usd or add_trials:
        print_note(_budget_note(one.study))
    work(one, parallel or one.prepared.parallel, output, metrics)


def _budget_note(study: Study) -> str:
    """The budget after money or trials were added."""
    from lynceus.problem.units import format_money

    trials = study.problem.budget.trials
    money = "" if math.isinf(study.budget_usd) else format_money(study.budget_usd)
    count = "" if trials is None else counted(trials + study.record.added_trials, "trial")
    return f"{study.name}: the budget is now {', '.join(filter(None, [money, count]))}."
