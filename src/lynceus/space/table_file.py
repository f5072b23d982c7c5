"""Tables that users name, such as measured runs: CSV from the standard library, Parquet with an optional package."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from lynceus.errors import InputError, MissingExtraError
from lynceus.space.column import Cell
from lynceus.space.user_file import MOST_BYTES, read_file, table_text

if TYPE_CHECKING:
    import _csv

Table = dict[str, list[Cell]]
"""Columns by name, all of one length."""

_WHOLE = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?(?:nan|inf)", re.IGNORECASE)


def read_table(path: Path) -> Table:
    """The columns of a file; a column is whole numbers, numbers or text, and None where a cell is empty."""
    if path.suffix.lower() in (".parquet", ".pq"):
        return _parquet(path)
    try:
        return _columns(csv.reader(table_text(_bytes(path), path), strict=True), path)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged"
        raise InputError(f"{path}: the table cannot be read: {reason}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: the table is not UTF-8 text; save it as CSV in UTF-8, or as Parquet.") from None
    except csv.Error as error:
        raise InputError(f"{path}: the table is not CSV: {error}.") from None


def _bytes(path: Path) -> bytes:
    data = read_file(path)
    if path.suffix.lower() != ".gz":
        return data
    with gzip.open(io.BytesIO(data)) as packed:
        data = packed.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(f"{path}: the table has more than {MOST_BYTES:,} bytes; give a smaller one.")
    return data


def _columns(lines: _csv.Reader, path: Path) -> Table:
    header = [name.strip() for name in next(lines, [])]
    if not any(header):
        raise InputError(f"{path}: the table is empty; its first line must name the columns.")
    twice = [name for place, name in enumerate(header) if name in header[:place]]
    if twice:
        raise InputError(f"{path}:1: two columns are named {twice[0]!r}; rename one of them.")
    rows: list[list[str]] = []
    for row in lines:
        if not row:
            continue
        if len(row) != len(header):
            raise InputError(
                f"{path}:{lines.line_num}: the line has {len(row)} cells and the header {len(header)} columns; "
                "give every column a cell."
            )
        rows.append(row)
    if not rows:
        raise InputError(f"{path}: the table has no rows; give at least one measured run.")
    return {name: _typed([row[place].strip() for row in rows]) for place, name in enumerate(header)}


def _typed(cells: list[str]) -> list[Cell]:
    present = [cell for cell in cells if cell]
    if all(_WHOLE.fullmatch(cell) for cell in present):
        return [int(cell) if cell else None for cell in cells]
    if all(_NUMBER.fullmatch(cell) for cell in present):
        return [float(cell) if cell else None for cell in cells]
    if {cell.lower() for cell in present} <= {"true", "false"}:
        return [cell.lower() == "true" if cell else None for cell in cells]
    return [cell or None for cell in cells]


def _parquet(path: Path) -> Table:
    try:
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("Parquet tables", "parquet") from None
    try:
        table = pyarrow.parquet.read_table(io.BytesIO(read_file(path)))
    except (OSError, pyarrow.ArrowException) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise InputError(f"{path}: the table cannot be read as Parquet: {reason}.") from None
    if not table.num_rows:
        raise InputError(f"{path}: the table has no rows; give at least one measured run.")
    return {name: table.column(name).to_pylist() for name in table.column_names}
