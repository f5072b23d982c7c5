"""The columns of a measured table as a replay job names them: space, times, metrics, progress."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lynceus.errors import InputError, hint
from lynceus.executors.synthetic_streams import SyntheticStream
from lynceus.executors.table import Measurements
from lynceus.jobfile.yaml.document import Document
from lynceus.problem.job_input import JobInput
from lynceus.replay.job_file import ParameterSpec, ReplaySpec
from lynceus.replay.tables import find_table
from lynceus.space.column import Cell, FloatArray
from lynceus.space.expression import Expression
from lynceus.space.parameter import Categorical, Float, Integer, Ordinal, Parameter
from lynceus.space.table import Space
from lynceus.space.table_file import Table, read_table

_DEFAULT_EVERY_S = 30.0


@dataclass(frozen=True)
class JobTable:
    """A table with the document that explains its columns, so that every error names the field of the document."""

    document: Document
    spec: ReplaySpec
    table: Table
    table_name: str

    @classmethod
    def read(cls, path: Path) -> JobTable:
        """The job file at `path` with its table."""
        document = Document.read(path)
        spec = document.check(ReplaySpec)
        table_path = find_table(document, path, spec.table)
        whole = cls(document, spec, read_table(table_path), table_path.name)
        return whole if spec.where is None else whole.where(spec.where, document.at("where"))

    @property
    def input(self) -> JobInput | None:
        """What its runs read; None where the document does not say it."""
        given = self.spec.input
        return None if given is None else JobInput.read(given, self.document.at("input"))

    def where(self, condition: str, field: str = "where") -> JobTable:
        """The same table with only the rows for which an expression over its columns is true."""
        mask = Expression.parse(condition, field).mask(self.table)
        if not mask.any():
            raise InputError(f"{field}: no row of {self.table_name} has {condition}; relax the expression.")
        table = {
            name: [cell for cell, kept in zip(cells, mask, strict=True) if kept] for name, cells in self.table.items()
        }
        return replace(self, table=table)

    def sampled(self, share: float, seed: int) -> JobTable:
        """The same table with only a random share of its rows, in their order; at least two."""
        rows = len(next(iter(self.table.values())))
        drawn = np.random.default_rng([seed, rows]).permutation(rows)[: max(2, round(rows * share))]
        return replace(self, table={name: [cells[row] for row in sorted(drawn)] for name, cells in self.table.items()})

    def column(self, name: str, *path: str | int) -> list[Cell]:
        """The cells of a column that the document names at `path`."""
        if name not in self.table:
            raise InputError(
                f"{self.document.at(*path)}: the table {self.table_name} has no column '{name}'{hint(name, self.table)}"
            )
        return self.table[name]

    def numbers(self, name: str, *path: str | int) -> FloatArray:
        """A column of numbers `[q]`, NaN where a cell is empty."""
        cells = self.column(name, *path)
        for row, cell in enumerate(cells, start=1):
            if isinstance(cell, str | bool):
                raise InputError(
                    f"{self.document.at(*path)}: column '{name}' of {self.table_name} holds {cell!r} in row {row}; "
                    "a number is needed, so correct it or name another column."
                )
        return np.array([math.nan if cell is None else float(cell) for cell in cells])

    def seconds(self) -> FloatArray:
        """Running times `[q]`: a column, or an expression over columns."""
        time, where = self.spec.time, self.document.at("time")
        if time in self.table or time.isidentifier():
            seconds, what = self.numbers(time, "time"), f"column '{time}'"
        else:
            seconds, what = self._computed(time, where), f"'{time}'"
        self._check_positive(seconds, f"{where}: {what}", "a time above 0 seconds")
        return seconds

    def _computed(self, text: str, where: str) -> FloatArray:
        """An expression over columns, row by row `[q]`."""
        expression = Expression.parse(text, f"{where}:")
        columns = {name: self.numbers(name, "time") for name in expression.names}
        return np.array([float(value) for value in expression.evaluate(columns)])

    def space(self, kept: Sequence[str] = ()) -> Space:
        """The configurations of the table; `kept` are further columns that are known of them, though no model reads them."""
        given = self.spec.parameters
        named = given if isinstance(given, dict) else dict.fromkeys(given)
        if not named:
            raise InputError(f"{self.document.at('parameters')}: the list is empty; name the columns that were varied.")
        if isinstance(given, list) and len(named) < len(given):
            twice = next(name for place, name in enumerate(given) if name in given[:place])
            raise InputError(f"{self.document.at('parameters')}: '{twice}' is listed twice; keep one of them.")
        parameters: list[Parameter] = []
        for place, (name, spec) in enumerate(named.items()):
            path = ("parameters", name if isinstance(given, dict) else place)
            parameters.append(self._parameter(name, self.column(name, *path), spec or ParameterSpec(), path))
        for place, name in enumerate(self.spec.features):
            self.column(name, "features", place)
        price = self.spec.price
        if isinstance(price, str) and price.isidentifier():
            where = f"{self.document.at('price')}: column '{price}'"
            self._check_positive(self.numbers(price, "price"), where, "a price above 0")
        features = [*named, *(name for name in self.spec.features if name not in named)]
        try:
            return Space.from_table(self.table, parameters, features, price, kept=kept)
        except InputError as error:
            raise InputError(f"{self.document.name} ({self.table_name}): {error}") from None

    def measurements(self) -> Measurements:
        """What every run of the table took and reported."""
        spec = self.spec
        named = {name: self.numbers(column, "metrics", name) for name, column in spec.metric_columns.items()}
        every_s = spec.progress.every if spec.progress else _DEFAULT_EVERY_S
        return Measurements(
            self.seconds(), {**self._details(), **named}, self._progress(), every_s, self._streams(), self._repeats()
        )

    def _streams(self) -> dict[str, SyntheticStream]:
        """Streams that are made up from published quantiles."""
        found = {}
        for name, spec in self.spec.streams.items():
            median = self.numbers(spec.median, "streams", name, "median")
            p95 = self.numbers(spec.p95, "streams", name, "p95")
            where = f"{self.document.at('streams', name)}: column '{spec.median}'"
            self._check_positive(median, where, "a median above 0")
            found[name] = SyntheticStream(median, np.fmax(p95, median), spec.every, spec.start)
        return found

    def _check_positive(self, values: FloatArray, where: str, needed: str) -> None:
        wrong = np.flatnonzero(~(np.isfinite(values) & (values > 0)))
        if wrong.size:
            value = values[wrong[0]]
            found = "no number" if np.isnan(value) else f"{value:g}"
            more = f" (and {wrong.size - 1} more rows)" if wrong.size > 1 else ""
            raise InputError(
                f"{where} of {self.table_name} holds {found} in row {wrong[0] + 1}{more}; "
                f"every configuration needs {needed}: correct or remove it."
            )

    def _parameter(
        self, name: str, cells: Sequence[Cell], spec: ParameterSpec, path: tuple[str | int, ...]
    ) -> Parameter:
        where = self.document.at(*path)
        values = [cell for cell in dict.fromkeys(cells) if cell is not None]
        numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        kind = spec.kind or ("numeric" if spec.log else "ordinal" if numeric or spec.order else "categorical")
        if not values:
            raise InputError(f"{where}: column '{name}' of {self.table_name} is empty; leave it out.")
        if (kind == "numeric" and not numeric) or (spec.log and kind != "numeric"):
            odd = next((value for value in values if isinstance(value, str | bool)), kind)
            raise InputError(f"{where}: {odd!r} in '{name}' is not a number; numeric and log parameters need numbers.")
        if spec.order is not None and (kind != "ordinal" or set(spec.order) != set(values)):
            raise InputError(
                f"{where}: order lists {', '.join(map(str, spec.order))}, but the ordinal column '{name}' "
                f"holds {', '.join(map(str, values))}; list each value once."
            )
        if numeric and kind != "categorical":
            values.sort(key=float)
        try:
            if kind == "categorical":
                return Categorical(name, tuple(values))
            if kind == "ordinal":
                return Ordinal(name, tuple(spec.order or values))
            if all(isinstance(value, int) for value in values):
                return Integer(name, log=spec.log, values=tuple(int(value) for value in values))
            return Float(name, log=spec.log, values=tuple(float(value) for value in values))
        except InputError as error:
            raise InputError(f"{where}: {error}") from None

    def _details(self) -> dict[str, FloatArray]:
        """Columns of the second table in the row order of the main one; NaN where it lacks a row."""
        details = self.spec.details
        if details is None:
            return {}
        try:
            table = read_table(find_table(self.document, Path(self.document.name), details.table))
        except InputError:
            return {}
        other = replace(self, table=table, table_name=details.table)
        keys = zip(*(other.column(column, "details", "on") for column in details.on), strict=True)
        place_of = {key: place for place, key in enumerate(keys)}
        keys = zip(*(self.column(column, "details", "on") for column in details.on), strict=True)
        places = np.array([place_of.get(key, -1) for key in keys])
        numbers = {name: other.numbers(name, "details", "table") for name in table if name not in details.on}
        return {name: np.where(places >= 0, values[places], math.nan) for name, values in numbers.items()}

    def _progress(self) -> tuple[tuple[float, ...], ...] | None:
        """The progress of every run; None when it was not recorded."""
        return None if self.spec.progress is None else self._lists(self.spec.progress.column, "progress", "column")

    def _repeats(self) -> tuple[tuple[float, ...], ...] | None:
        """The times of all runs of every row; None when runs were not repeated."""
        name = self.spec.repeats
        if name is None:
            return None
        repeats = self._lists(name, "repeats")
        for row, times in enumerate(repeats, start=1):
            wrong = [time for time in times if not (math.isfinite(time) and time > 0)]
            if wrong:
                raise InputError(
                    f"{self.document.at('repeats')}: column '{name}' of {self.table_name} holds {wrong[0]:g} in row {row}; "
                    "every run needs a time above 0 seconds: correct or remove it."
                )
        return repeats

    def _lists(self, name: str, *path: str | int) -> tuple[tuple[float, ...], ...]:
        """A column of numbers separated by spaces; nothing where a cell is empty."""
        lists = []
        for row, cell in enumerate(self.column(name, *path), start=1):
            try:
                lists.append(tuple(float(word) for word in ("" if cell is None else str(cell)).split()))
            except ValueError:
                raise InputError(
                    f"{self.document.at(*path)}: column '{name}' of {self.table_name} holds {str(cell)[:40]!r} "
                    f"in row {row}; numbers separated by spaces are needed."
                ) from None
        return tuple(lists)
