"""`lynceus stop`, `resume` and `storage upgrade`: steering studies that run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.output import Output, OutputOption, StorageOption, StudyArgument, print_json

if TYPE_CHECKING:
    from lynceus.cli.opened import Opened


def stop(
    study: StudyArgument = None,
    kill: Annotated[bool, typer.Option("--kill", help="End open trials, too; they count as stopped by you.")] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Start no more trials; let open ones come to their end, or end them with --kill."""
    from lynceus.cli.leftovers import abandoned
    from lynceus.cli.opened import open_study

    one = open_study(study, storage)
    if one.study.over:
        if output is Output.JSON:
            print_json({"study": one.name, "open_trials": 0, "kill": kill, "ended_here": [], "over": True})
        else:
            typer.echo(f"{one.name} is over already: {one.study.reason}.")
        return
    one.study.stop(kill=kill)
    alone = abandoned(one)
    ended = alone if kill and alone and _ended_here(one) else []
    tell_people(one)
    running = len(one.study.pending)
    if output is Output.JSON:
        facts = {"study": one.name, "open_trials": running, "kill": kill, "ended_here": ended, "over": False}
        print_json(facts)
        return
    if ended:
        what = f"{len(ended)} open that nobody worked on {'was' if len(ended) == 1 else 'were'} ended"
    elif not running:
        what = "none is open"
    elif alone:
        what = f"nobody works on the {running} open: end them with: lynceus gc {one.name} --abandoned --yes"
    else:
        what = f"{running} open {'are ended' if kill else 'come to their end'}"
    typer.echo(f"{one.name}: no more trials are started; {what}. Continue with: lynceus resume {one.name}")


def _ended_here(one: Opened) -> bool:
    """End the open trials in the place of a worker that is gone; false where this machine cannot reach them."""
    from lynceus.cli.leftovers import end_abandoned
    from lynceus.errors import LynceusError
    from lynceus.job.secrets import known_secrets

    try:
        end_abandoned(one, known_secrets(one.prepared.job))
    except LynceusError as error:
        typer.echo(f"lynceus: {error}", err=True)
    one.study.refresh()
    return not one.study.pending


def tell_people(one: Opened) -> None:
    """Tell those whom the job file names that a study has ended, when no worker is there to do it."""
    from lynceus.errors import InputError
    from lynceus.notify import courier_of

    try:
        courier = courier_of(one.prepared.job)
    except InputError:
        return  # the addresses are known where the study was started
    courier.look(one.study)
    courier.close()


def resume(
    study: StudyArgument = None,
    add_budget: Annotated[str | None, typer.Option(help="More money for the search, such as '5 USD'.")] = None,
    parallel: Annotated[int | None, typer.Option(min=1, help="Trials at the same time.")] = None,
    reprice: Annotated[bool, typer.Option("--reprice", help="Go on at today's prices, see 'lynceus prices'.")] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Continue a study after a stop, a crash, a pause or a spent budget; open trials are adopted, nothing runs or is paid twice."""
    from lynceus.cli.changes import adopt_changes
    from lynceus.cli.opened import open_study
    from lynceus.cli.repricing import apply_prices, tell_price_news
    from lynceus.cli.run import work
    from lynceus.job.secrets import secrets_of
    from lynceus.ledger import Wish
    from lynceus.units import parse_money

    one = open_study(study, storage, adopt_changes)
    if reprice:
        one, _ = apply_prices(one)
    tell_price_news(one)
    secrets_of(one.prepared.job)
    usd = 0.0 if add_budget is None else parse_money(add_budget, "--add-budget")
    if usd or one.study.stopped is not None or one.study.wish is not Wish.RUN:
        one.study.resume(usd)
    work(one, parallel or one.prepared.parallel, output)


def storage_upgrade(storage: StorageOption = None, output: OutputOption = Output.TABLE) -> None:
    """Bring a storage to the version of this program; studies stay as they are."""
    from sqlalchemy.engine import make_url

    from lynceus.cli.named import storage_url
    from lynceus.ledger.sql import upgrade

    url = storage_url(storage)
    before, after = upgrade(url)
    shown = make_url(url).render_as_string(hide_password=True)
    if output is Output.JSON:
        print_json({"storage": shown, "before": before, "after": after})
    elif before == after:
        typer.echo(f"{shown} is at version {after} already.")
    else:
        typer.echo(f"{shown}: upgraded from {before or 'nothing'} to {after}.")
