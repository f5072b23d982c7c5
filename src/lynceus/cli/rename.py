"""`lynceus rename`: give a study another name."""

from __future__ import annotations

from typing import Annotated

import typer

from lynceus.cli.arguments import StorageOption
from lynceus.cli.output import Output, OutputOption, echo, print_json


def rename(
    study: Annotated[str, typer.Argument(help="The name of a study.")],
    new: Annotated[str, typer.Argument(help="Its new name.")],
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Give a study another name; its trials and outputs stay. Refused while trials are open or a worker runs it."""
    from lynceus.library.find import storage_url
    from lynceus.library.rename_study import rename_study
    from lynceus.storage.sql.storage import Storage
    from lynceus.storage.user import current_user

    with Storage(storage_url(storage), create=False) as opened:
        record = rename_study(opened, study, new, by=current_user())
    if output is Output.JSON:
        print_json({"study": record.name, "renamed_from": study})
        return
    advice = f" Write 'name: {new}' into its job file, too." if "job" in record.document else ""
    echo(f"{study}: it is called {record.name} now.{advice}")
