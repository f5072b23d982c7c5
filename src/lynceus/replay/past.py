"""Runs of other jobs, read from the table that a job's file names."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lynceus.document import Document
from lynceus.document.complaint import hint
from lynceus.errors import InputError
from lynceus.replay.spec import PastSpec, ReplaySpec
from lynceus.replay.tables import Table, find_table, read_table
from lynceus.space import Expression, FloatArray
from lynceus.surrogate.past_pairs import PastRuns


def past_runs(document: Document, model: ReplaySpec, here: Table) -> PastRuns | None:
    """The runs, without those of the job itself; nothing when the file names none or their table is not there."""
    wanted = model.past
    if wanted is None:
        return None
    try:
        path = find_table(document, Path(document.name), wanted.table)
    except InputError:
        return None
    table = _kept(document, wanted, read_table(path), path.name)
    metrics = _matching(wanted.metrics, list(table))
    jobs = {name: number for number, name in enumerate(dict.fromkeys(table[wanted.job]))}
    numbers = [np.array([np.nan if cell is None else float(cell) for cell in table[name]]) for name in metrics]
    try:
        return PastRuns(
            np.array([jobs[name] for name in table[wanted.job]]),
            _resources(document, [both[0] for both in wanted.compare.values()], table),
            np.array([float(seconds or 0.0) for seconds in table[wanted.time]]),
            np.column_stack(numbers) if numbers else np.zeros((len(table[wanted.job]), 0)),
            tuple(metrics),
            _resources(document, [both[1] for both in wanted.compare.values()], here),
        )
    except InputError as error:
        raise InputError(f"{document.at('past')}: {str(error).removeprefix('past: ')}") from None


def _kept(document: Document, wanted: PastSpec, table: Table, name: str) -> Table:
    """The runs of other jobs that the file wants."""
    for field in ("job", "time"):
        column = getattr(wanted, field)
        if column not in table:
            raise InputError(
                f"{document.at('past', field)}: the table {name} has no column '{column}'{hint(column, table)}"
            )
    kept = np.array([not any(fnmatch.fnmatch(str(job), each) for each in wanted.without) for job in table[wanted.job]])
    if wanted.keep is not None:
        kept &= Expression.parse(wanted.keep, document.at("past", "keep")).mask(table)
    if not kept.any():
        raise InputError(f"{document.at('past')}: no run of {name} is left; relax 'without' or 'keep'.")
    return {column: [cell for cell, good in zip(cells, kept, strict=True) if good] for column, cells in table.items()}


def _matching(patterns: Sequence[str], columns: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for pattern in patterns for name in fnmatch.filter(columns, pattern)))


def _resources(document: Document, texts: Sequence[str], table: Table) -> FloatArray:
    """Logarithms of expressions over columns `[n, k]`."""
    where = document.at("past", "compare")
    columns = [np.asarray(Expression.parse(text, where).evaluate(table), dtype=float) for text in texts]
    for text, column in zip(texts, columns, strict=True):
        if not (np.isfinite(column) & (column > 0)).all():
            raise InputError(f"{where}: {text!r} is not above 0 everywhere; its logarithm is needed.")
    return np.asarray(np.log(np.column_stack(columns)))
