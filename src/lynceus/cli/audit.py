"""`lynceus audit`: who created, renamed and deleted studies, and changed budgets and tokens."""

from __future__ import annotations

import json

from lynceus.cli.arguments import StorageOption
from lynceus.cli.output import Output, OutputOption, console, echo, print_json, safe, utc_minute


def audit(storage: StorageOption = None, output: OutputOption = Output.TABLE) -> None:
    """Show who created, renamed and deleted studies, and changed shared budgets and tokens, oldest first."""
    from rich.table import Table

    from lynceus.library.find import storage_url
    from lynceus.storage.sql.audit_log import audit_log
    from lynceus.storage.sql.storage import Storage

    with Storage(storage_url(storage), create=False) as opened:
        found = audit_log(opened)
    if output is Output.JSON:
        print_json(found)
        return
    if not found:
        echo("Nothing was changed yet.")
        return
    table = Table()
    for heading in ("when (UTC)", "who", "what", "of", "detail"):
        table.add_column(heading)
    for one in found:
        detail = "" if one.detail is None else json.dumps(dict(one.detail))
        table.add_row(utc_minute(one.at_s), safe(one.author or "—"), one.kind, safe(one.subject), safe(detail))
    console().print(table)
