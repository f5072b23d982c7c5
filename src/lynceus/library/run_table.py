"""A table of runs as texts, from a CSV, JSON or Parquet file."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lynceus.errors import InputError, MissingExtraError
from lynceus.space.user_file import read_file, table_text

Table = tuple[list[str], list[tuple[int, list[str]]]]
"""The heading, and every row with its line in the file (its position, for JSON and Parquet)."""


def read_table(path: Path) -> Table:
    """The cells of a file; the format is told by the ending of its name."""
    try:
        heading, rows = _readers.get(path.suffix.lower(), _csv)(path)
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read: {error.strerror or error}.") from None
    if not rows:
        raise InputError(f"{path}: the file has no rows below its header.")
    for line, cells in rows:
        if len(cells) != len(heading):
            raise InputError(f"{path}:{line}: the row has {len(cells)} cells and the header has {len(heading)}.")
    return heading, rows


def _csv(path: Path) -> Table:
    try:
        reader = csv.reader(table_text(read_file(path), path))
        rows = [(reader.line_num, [cell.strip() for cell in row]) for row in reader if row]
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{path}: this is not a CSV file in UTF-8; save it as UTF-8.") from None
    return (rows[0][1], rows[1:]) if rows else ([], [])


def _json(path: Path) -> Table:
    try:
        rows = json.loads(read_file(path))
    except ValueError as error:
        raise InputError(f"{path}: this is not a JSON file: {error}.") from None
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(f"{path}: a list of trials is needed, as `lynceus export --to json` writes it.")
    return _flat([_flattened(row) for row in rows])


def _parquet(path: Path) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("Parquet files", "parquet") from None
    try:
        return _flat(pyarrow.parquet.read_table(pyarrow.BufferReader(read_file(path))).to_pylist())
    except pyarrow.ArrowInvalid:
        raise InputError(f"{path}: this is not a Parquet file.") from None


def _flattened(row: Mapping[str, Any]) -> dict[str, Any]:
    """Nested parameters and metrics as columns `params_…` and `metrics_…`."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if name in ("params", "metrics") and isinstance(value, Mapping):
            flat |= {f"{name}_{key}": one for key, one in value.items()}
        else:
            flat[name] = value
    return flat


def _flat(rows: Sequence[Mapping[str, Any]]) -> Table:
    heading = list(dict.fromkeys(name for row in rows for name in row))
    return heading, [(place, [_text(row.get(name)) for name in heading]) for place, row in enumerate(rows, 1)]


def _text(value: object) -> str:
    return "" if value is None else str(value)


_readers = {".json": _json, ".parquet": _parquet}
