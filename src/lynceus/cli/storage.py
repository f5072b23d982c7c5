"""`lynceus storage`: the database with the studies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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


@storage.command("backup")
def backup(
    file: Annotated[Path, typer.Argument(help="The new file; a backup never replaces one.")],
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Copy a whole storage into one SQLite file while studies go on; the copy is a storage itself."""
    from lynceus.library.find import storage_url
    from lynceus.storage.sql.address import shown_address
    from lynceus.storage.sql.backup import back_up

    url = storage_url(storage)
    version = back_up(url, file)
    shown = shown_address(url)
    if output is Output.JSON:
        print_json({"storage": shown, "file": str(file), "version": version, "bytes": file.stat().st_size})
    else:
        echo(
            f"Copied {shown} to {file}: {file.stat().st_size / 1e6:.1f} MB, version {version}. Look into it with: lynceus status --storage sqlite:///{file}"
        )


@storage.command("restore")
def restore(
    file: Annotated[Path, typer.Argument(help="A backup.")],
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Fill a new, empty database with a backup: another file, or a PostgreSQL server."""
    from lynceus.library.find import storage_url
    from lynceus.storage.sql.address import shown_address
    from lynceus.storage.sql.backup import restore as restore_backup

    url = storage_url(storage)
    version = restore_backup(file, url)
    if output is Output.JSON:
        print_json({"storage": shown_address(url), "file": str(file), "version": version})
    else:
        echo(f"Restored {file} to {shown_address(url)}, version {version}.")
