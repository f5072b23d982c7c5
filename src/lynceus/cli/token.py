"""`lynceus token`: named tokens with roles for the server of a storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.arguments import StorageOption
from lynceus.cli.job_options import ByOption, author
from lynceus.cli.output import Output, OutputOption, console, echo, print_json, safe, utc_minute
from lynceus.storage.access_token import Role

if TYPE_CHECKING:
    from lynceus.storage.access_token import AccessToken

token = typer.Typer(help="Named tokens for the server, each with a role.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Who or what uses it, such as ana or airflow.")]


@token.callback()
def _token() -> None:
    """Named tokens for the server, each with a role."""


@token.command("add")
def add(
    name: NameArgument,
    role: Annotated[
        Role,
        typer.Option(
            help="viewer reads; runner also creates studies, orders runs and records results; admin also deletes, sets budgets "
            "and manages tokens."
        ),
    ],
    expires: Annotated[str | None, typer.Option(help="How long it is valid, such as 30d; for ever by default.")] = None,
    by: ByOption = None,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Make a token and print its secret, once: only its hash is stored."""
    from lynceus.analysis.documents.json import to_json
    from lynceus.library.find import storage_url
    from lynceus.problem.units import parse_duration
    from lynceus.storage.sql.storage import Storage
    from lynceus.storage.sql.tokens import TokenStore

    lasts_s = None if expires is None else parse_duration(expires, "--expires")
    with Storage(storage_url(storage)) as opened:
        made, secret = TokenStore(opened).add(name, role, by=author(by), lasts_s=lasts_s)
    if output is Output.JSON:
        print_json({**to_json(made), "token": secret})
        return
    until = "" if made.expires_s is None else f" until {utc_minute(made.expires_s)}"
    echo(f"The token {name} has the role {role}{until}. Keep it now, it is not shown again:", err=True)
    echo(secret)


@token.command("list")
def list_(storage: StorageOption = None, output: OutputOption = Output.TABLE) -> None:
    """Show every token: its role, who made it, when it was last used and when it expires. Secrets are not stored."""
    from lynceus.library.find import storage_url
    from lynceus.storage.sql.storage import Storage
    from lynceus.storage.sql.tokens import TokenStore

    with Storage(storage_url(storage), create=False) as opened:
        found, now_s = TokenStore(opened).all(), opened.clock.now()
    if output is Output.JSON:
        print_json(found)
    elif found:
        _print_tokens(found, now_s)
    else:
        echo("There are no named tokens; make one with: lynceus token add NAME --role viewer")


@token.command("revoke")
def revoke(
    name: NameArgument, by: ByOption = None, storage: StorageOption = None, output: OutputOption = Output.TABLE
) -> None:
    """Accept a token no longer; servers notice within two seconds, and browsers that signed in with it are signed out."""
    from lynceus.library.find import storage_url
    from lynceus.storage.sql.storage import Storage
    from lynceus.storage.sql.tokens import TokenStore

    with Storage(storage_url(storage), create=False) as opened:
        TokenStore(opened).revoke(name, by=author(by))
    if output is Output.JSON:
        print_json({"name": name, "role": None})
    else:
        echo(f"The token {name} is revoked.")


def _print_tokens(found: Sequence[AccessToken], now_s: float) -> None:
    from rich.table import Table

    table = Table()
    for heading in ("name", "role", "created (UTC)", "by", "last used", "expires"):
        table.add_column(heading)
    for one in found:
        expires = "never" if one.expires_s is None else utc_minute(one.expires_s)
        table.add_row(
            safe(one.name),
            str(one.role),
            utc_minute(one.created_s),
            safe(one.created_by or "—"),
            "never" if one.last_used_s is None else utc_minute(one.last_used_s),
            f"[red]expired {expires}[/]" if one.expired(now_s) else expires,
        )
    console().print(table)
