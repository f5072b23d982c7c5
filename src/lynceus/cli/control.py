"""`lynceus stop`, `resume`, `gc` and `storage upgrade`: steering studies that run, and tidying up after them."""

from __future__ import annotations

from typing import Annotated

import typer

from lynceus.cli.output import Output, OutputOption, StorageOption, StudyArgument, console, print_json


def stop(
    study: StudyArgument = None,
    kill: Annotated[bool, typer.Option("--kill", help="End open trials, too; they count as stopped by you.")] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Start no more trials; let open ones come to their end, or end them with --kill."""
    from lynceus.cli.opened import open_study

    one = open_study(study, storage)
    one.study.stop(kill=kill)
    running = len(one.study.pending)
    if output is Output.JSON:
        print_json({"study": one.name, "open_trials": running, "kill": kill})
        return
    what = "none is open" if not running else f"{running} open {'are ended' if kill else 'come to their end'}"
    typer.echo(f"{one.name}: no more trials are started; {what}. Continue with: lynceus resume {one.name}")


def resume(
    study: StudyArgument = None,
    add_budget: Annotated[str | None, typer.Option(help="More money for the search, such as '5 USD'.")] = None,
    parallel: Annotated[int | None, typer.Option(min=1, help="Trials at the same time.")] = None,
    reprice: Annotated[bool, typer.Option("--reprice", help="Go on at today's prices, see 'lynceus prices'.")] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Continue a study after a stop, a crash, a pause or a spent budget; open trials are adopted, nothing runs or is paid twice."""
    from lynceus.cli.opened import open_study
    from lynceus.cli.repricing import apply_prices, tell_price_news
    from lynceus.cli.run import work
    from lynceus.job.secrets import secrets_of
    from lynceus.ledger import Wish
    from lynceus.units import parse_money

    one = open_study(study, storage)
    if reprice:
        one, _ = apply_prices(one)
    tell_price_news(one)
    secrets_of(one.prepared.job)
    usd = 0.0 if add_budget is None else parse_money(add_budget, "--add-budget")
    if usd or one.study.stopped is not None or one.study.wish is not Wish.RUN:
        one.study.resume(usd)
    work(one, parallel or one.prepared.parallel, output)


def gc(
    study: StudyArgument = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it; otherwise leftovers are only listed.")] = False,
    outputs: Annotated[
        bool, typer.Option("--outputs", help="Also what settled trials wrote (their results stay).")
    ] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """List processes and run directories that no open trial needs, and end or remove them with --yes."""
    from lynceus.cli.leftovers import find_leftovers, remove_leftovers
    from lynceus.cli.opened import open_study

    one = open_study(study, storage)
    found = find_leftovers(one, outputs=outputs)
    if yes:
        remove_leftovers(found)
    if output is Output.JSON:
        print_json({"study": one.name, "removed": yes, "leftovers": found})
        return
    if not found:
        typer.echo(f"{one.name}: nothing is left over.")
        return
    out = console()
    for left in found:
        out.print(f"{left.kind}: {left.where} ({left.why})", markup=False)
    out.print("ended and removed." if yes else "nothing was touched; add --yes to end and remove them.")


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
