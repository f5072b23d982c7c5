"""`lynceus storage`: the database with the studies."""

from __future__ import annotations

import typer

from lynceus.cli.arguments import StorageOption
from lynceus.cli.output import Output, OutputOption, echo, print_json

storage = typer.Typer(help="The database with the studies.", no_args_is_help=True)


@storage.callback()
def _storage() -> None:
    """The database with the studies."""


@storage.command("upgrade")
def upgrade(storage: StorageOption = None, output: OutputOption = Output.TABLE) -> None:
    """Upgrade a storage to the version of this program; studies stay as they are."""
    from lynceus.library.find import storage_url
    from lynceus.storage.sql.address import shown_address
    from lynceus.storage.sql.storage import upgrade as upgrade_storage

    url = storage_url(storage)
    before, after = upgrade_storage(url)
    shown = shown_address(url)
    if output is Output.JSON:
        print_json({"storage": shown, "before": before, "after": after})
    elif before == after:
        echo(f"{shown} is at version {after} already.")
    else:
        echo(f"{shown}: upgraded from {before or 'an empty database'} to {after}.")
