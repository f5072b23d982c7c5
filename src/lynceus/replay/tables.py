"""Where the tables of replay jobs are."""

from __future__ import annotations

import os
from pathlib import Path

from lynceus.errors import InputError
from lynceus.jobfile.yaml.document import Document


def data_folder() -> Path | None:
    """The folder of measured tables: `LYNCEUS_DATA`, else `../shared/data` beside the project; None when neither exists."""
    named = os.environ.get("LYNCEUS_DATA")
    folder = Path(named) if named else Path(__file__).resolve().parents[3].parent / "shared" / "data"
    return folder if folder.is_dir() else None


def find_table(document: Document, path: Path, table: str) -> Path:
    """The path of a table beside the document, or in the data folder."""
    folder = data_folder()
    for found in (path.parent / table, *([folder / table] if folder else [])):
        if found.is_file():
            return found
    searched = f"neither beside the document nor in {folder}" if folder else "not beside the document"
    raise InputError(
        f"{document.at('table')}: the table {table!r} is {searched}; put it there, or set LYNCEUS_DATA to the folder of the tables."
    )
