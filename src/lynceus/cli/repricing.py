"""What the command line says and does when prices have changed since a study's were fixed."""

from __future__ import annotations

import typer

from lynceus.cli.changes import beside_prices, refuse_changes
from lynceus.cli.named import is_file
from lynceus.cli.opened import Opened, opened
from lynceus.errors import LynceusError
from lynceus.job import Job
from lynceus.job.reprice import Repriced, at_todays_prices, repriced_problem
from lynceus.ledger.sql import fingerprint

_SHOWN = 3


def price_news(one: Opened) -> str | None:
    """A sentence about prices that are not those of the study any more; nothing when all is as it was.

    A study that keeps its prices needs no catalog: one that cannot be read is no reason to stop.
    """
    try:
        changes = at_todays_prices(one.prepared.job).changes
    except LynceusError:
        return None
    if not changes:
        return None
    shown = "; ".join(changes[:_SHOWN]) + (f"; and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else "")
    return f"{one.name}: prices have changed: {shown}. Its own stay until: lynceus prices apply {one.name}"


def tell_price_news(one: Opened) -> None:
    """Print `price_news`, if there are any."""
    if (said := price_news(one)) is not None:
        typer.echo(said, err=True)


def apply_prices(one: Opened, named: str | None = None) -> tuple[Opened, Repriced]:
    """The study at today's prices, for good; with those of its job file, when that is what was named."""
    stored = one.prepared.job
    file = Job.read(named) if named is not None and is_file(named) else None
    found = at_todays_prices(stored, file)
    problem = repriced_problem(stored, found)
    if not found.changes:
        return one, found
    if file is not None:
        refuse_changes(file, one.record, beside_prices(file, one.record))
    record = one.storage.reprice(
        one.name, document=found.job.stored(), fingerprint=fingerprint(problem), changes=found.changes
    )
    return opened(one.storage, record), found
