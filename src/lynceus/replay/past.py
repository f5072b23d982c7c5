"""Runs of other jobs, read from the table that a replay job names under `past`."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lynceus.errors import InputError, hint
from lynceus.jobfile.yaml.document import Document
from lynceus.models.past_pairs import PastRuns
from lynceus.replay.job_file import PastSpec, ReplaySpec
from lynceus.replay.tables import find_table
from lynceus.space.column import FloatArray
from lynceus.space.expression import Expression
from lynceus.space.table_file import Table, read_table


def past_runs(document: Document, spec: ReplaySpec, table: Table) -> PastRuns | None:
    """Runs of other jobs to learn from, compared with the rows of `table`; None when the file names none or they are missing."""
    past = spec.past
    if past is None:
        return None
    try:
        path = find_table(document, Path(document.name), past.table)
    except InputError:
        return None
    runs = _selected(document, past, read_table(path), path.name)
    metrics = _matching(past.metrics, list(runs))
    jobs = {name: number for number, name in enumerate(dict.fromkeys(runs[past.job]))}
    numbers = [np.array([np.nan if cell is None else float(cell) for cell in runs[name]]) for name in metrics]
    theirs, ours = zip(*past.compare.values(), strict=True)
    resources, here = _resources(document, theirs, runs), _resources(document, ours, table)
    try:
        return PastRuns(
            np.array([jobs[name] for name in runs[past.job]]),
            resources,
            np.array([float(seconds or 0.0) for seconds in runs[past.time]]),
            np.column_stack(numbers) if numbers else np.zeros((len(runs[past.job]), 0)),
            tuple(metrics),
            here,
        )
    except InputError as error:
        raise InputError(f"{document.at('past')}: {str(error).removeprefix('past: ')}") from None


def _selected(document: Document, past: PastSpec, runs: Table, name: str) -> Table:
    """The runs that `without` and `keep` leave."""
    for field in ("job", "time"):
        column = getattr(past, field)
        if column not in runs:
            raise InputError(
                f"{document.at('past', field)}: the table {name} has no column '{column}'{hint(column, runs)}"
            )
    kept = np.array([not any(fnmatch.fnmatch(str(job), each) for each in past.without) for job in runs[past.job]])
    if past.keep is not None:
        kept &= Expression.parse(past.keep, document.at("past", "keep")).mask(runs)
    if not kept.any():
        raise InputError(f"{document.at('past')}: no run of {name} is left; relax 'without' or 'keep'.")
    return {column: [cell for cell, good in zip(cells, kept, strict=True) if good] for column, cells in runs.items()}


def _matching(patterns: Sequence[str], columns: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for pattern in patterns for name in fnmatch.filter(columns, pattern)))


def _resources(document: Document, texts: Sequence[str], table: Table) -> FloatArray:
    """Logarithms of expressions over columns `[n, k]`."""
    where = document.at("past", "compare")
    columns = [np.asarray(Expression.parse(text, where).evaluate(table), dtype=float) for text in texts]
    for text, column in zip(texts, columns, strict=True):
        if not (np.isfinite(column) & (column > 0)).all():
            raise InputError(
                f"{where}: {text!r} is not above 0 in every row; its logarithm is needed, so correct the expression."
            )
    return np.asarray(np.log(np.column_stack(columns)))
