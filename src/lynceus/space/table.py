"""The space: a finite table of configurations, each with its features and its price."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lynceus.errors import InputError, did_you_mean, shown
from lynceus.space.column import BoolArray, Column, FloatArray, IntArray, Scalar, as_column, listed
from lynceus.space.derived import Derived, derive
from lynceus.space.encode import Kind, encode
from lynceus.space.enumeration import (
    INACTIVE,
    check_parameters,
    codes_of_table,
    enumerate_codes,
    parameter_column,
    parameter_of_column,
    plain_table,
    refuse_duplicates,
)
from lynceus.space.expression import Expression
from lynceus.space.parameter import Parameter, values_listed
from lynceus.space.rules import allowed, hourly_price, names_read, need_columns, refuse_empty_cells

SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True, eq=False, repr=False)
class Space:
    """Every configuration there is: a candidate is a row number.

    >>> from lynceus.space import Categorical, Integer, Mapped
    >>> usd = Mapped("usd", "vm", {"small": 0.1, "large": 0.3}, feature=False)
    >>> parameters = [Categorical("vm", ["small", "large"]), Integer("nodes", 1, 3)]
    >>> space = Space.build(parameters, derived=[usd], price="usd * nodes")
    >>> len(space), space.point(4), space.row({"vm": "large", "nodes": 2})
    (6, {'vm': 'large', 'nodes': 2}, 4)
    """

    parameters: tuple[Parameter, ...]
    codes: IntArray
    """[q, p]: the position of each parameter's value among its values; -1 where it is inactive."""
    columns: Mapping[str, Column]
    """Every column by name, [q] each: parameters, derived columns, features and whatever the price reads."""
    features: FloatArray
    """[q, d]: what models read, see `lynceus.space.encode`."""
    feature_names: tuple[str, ...]
    feature_kinds: tuple[Kind, ...]
    price_per_second: FloatArray
    """[q]: dollars per second of a run on this configuration."""
    notes: tuple[str, ...] = ()
    """Notes about probable mistakes, such as an expression that forbids no configuration."""
    list_price: FloatArray | None = None
    """[q]: the price that models use where one machine has several (spot, other regions); None for ``price_per_second``."""

    def __post_init__(self) -> None:
        size = len(self.codes)
        lengths = [len(column) for column in self.columns.values()] + [len(self.features), len(self.price_per_second)]
        if any(length != size for length in lengths) or not size:
            raise InputError(f"A space of {size} configurations was given columns of lengths {sorted(set(lengths))}.")
        if not self.features.shape[1] == len(self.feature_names) == len(self.feature_kinds):
            raise InputError(
                f"A space of {self.features.shape[1]} features was given {len(self.feature_names)} names and "
                f"{len(self.feature_kinds)} kinds for them."
            )
        self._freeze()

    @classmethod
    def build(
        cls,
        parameters: Sequence[Parameter],
        derived: Sequence[Derived] = (),
        forbid: Sequence[str] = (),
        price: str | float = "price_usd_per_hour",
    ) -> "Space":
        """All combinations of the parameters' values, without the forbidden ones.

        ``price`` is a column, an expression or a number: dollars per hour of the whole configuration.
        At most 5 million combinations are enumerated.
        """
        parameters = tuple(parameters)
        check_parameters(parameters)
        codes = enumerate_codes(parameters)
        return cls._finished(parameters, codes, {}, derived, forbid, price, [one.name for one in parameters])

    @classmethod
    def from_table(
        cls,
        columns: Mapping[str, Sequence[object]],
        parameters: Sequence[str | Parameter],
        features: Sequence[str] | None = None,
        price: str | float = "price_usd_per_hour",
        derived: Sequence[Derived] = (),
        forbid: Sequence[str] = (),
        kept: Sequence[str] = (),
    ) -> "Space":
        """The configurations that a table lists, in its order.

        A parameter given by name is ordinal if its column holds numbers and categorical otherwise. ``features`` names
        the columns that models read; by default these are the parameters. Derived columns come on top. Columns that are
        neither parameters nor features nor ``kept`` nor read by ``price``, ``derived`` or ``forbid`` are left out:
        results of runs are no part of a space.

        >>> space = Space.from_table({"vm": ["s", "l"], "usd": [0.1, 0.4], "time_s": [90, 30]}, ["vm"], price="usd")
        >>> list(space.columns), space.feature_names
        (['vm', 'usd'], ('vm',))
        """
        for given in (parameters, features):
            if isinstance(given, str):
                raise InputError(f"{shown(given)} was given where a list of names is needed: [{shown(given)}].")
        names = [one if isinstance(one, str) else one.name for one in parameters]
        need_columns(columns, [*names, *(features or ())])
        wanted = {*names, *(features or ()), *kept, *names_read(derived, forbid, price)}
        table = plain_table({name: columns[name] for name in columns if name in wanted})
        whole = tuple(parameter_of_column(one, table[one]) if isinstance(one, str) else one for one in parameters)
        check_parameters(whole)
        # What models alone read may be unknown of some configurations; what the space is made of may not.
        needed = {*names, *names_read(derived, forbid, price)}
        optional = [name for name in features or () if name not in needed]
        refuse_empty_cells(table, [*(one.name for one in whole if one.when is not None), *optional])
        codes = codes_of_table(whole, table)
        refuse_duplicates(whole, codes)
        others = {name: as_column(cells) for name, cells in table.items() if name not in names}
        return cls._finished(whole, codes, others, derived, forbid, price, names if features is None else features)

    @classmethod
    def _finished(
        cls,
        parameters: tuple[Parameter, ...],
        codes: IntArray,
        others: Mapping[str, Column],
        derived: Sequence[Derived],
        forbid: Sequence[str],
        price: str | float,
        features: Sequence[str],
    ) -> "Space":
        columns: dict[str, Column] = {
            parameter.name: parameter_column(parameter, codes[:, index]) for index, parameter in enumerate(parameters)
        }
        columns, derived_features = derive({**columns, **others}, derived)
        kept, notes = allowed(columns, forbid)
        columns = {name: column[kept] for name, column in columns.items()}
        codes = codes[kept]
        # the price per hour is known exactly, so it is a feature only on request
        names = [*features, *(name for name in derived_features if name != price)]
        matrix, feature_names, kinds = encode(columns, parameters, names)
        price_per_second = hourly_price(columns, price, parameters) / SECONDS_PER_HOUR
        return cls(parameters, codes, columns, matrix, feature_names, kinds, price_per_second, notes)

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"<Space of {len(self):,} configurations: {', '.join(self._names)}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self._freeze()  # unpickled arrays are writable

    def point(self, row: int) -> dict[str, Scalar]:
        """The configuration of a row in the user's own values; inactive parameters are left out."""
        if not 0 <= row < len(self):
            raise InputError(f"Row {row} is not in the space, whose rows are 0 to {len(self) - 1}.")
        return {
            parameter.name: parameter.values[code]
            for parameter, code in zip(self.parameters, self.codes[row].tolist(), strict=True)
            if code != INACTIVE
        }

    def row(self, point: Mapping[str, object]) -> int:
        """The row of a configuration; inactive parameters may be absent or None, and those of a single value absent."""
        for name in point:
            if name not in self._names:
                hint = did_you_mean(name, self._names) or f" Parameters are {listed(self._names)}."
                raise InputError(f"The configuration names the unknown parameter {shown(name)}.{hint}")
        wanted = np.array([self._code(parameter, point.get(parameter.name)) for parameter in self.parameters])
        agrees = self.codes == wanted
        found = np.flatnonzero(agrees.all(axis=1))
        if found.size:
            return int(found[0])
        closest = int(np.argmax(agrees.sum(axis=1)))
        off = [parameter.name for parameter, same in zip(self.parameters, agrees[closest], strict=True) if not same]
        raise InputError(
            f"The configuration {_words(point)} is not in the space (it is forbidden or was not listed); the nearest "
            f"is {_words(self.point(closest))}, which differs in {', '.join(off)}."
        )

    def column(self, name: str) -> Column:
        """The column ``[q]`` of this name."""
        if name not in self.columns:
            hint = did_you_mean(name, self.columns) or f" Known are {listed(self.columns)}."
            raise InputError(f"The space has no column {shown(name)}.{hint}")
        return self.columns[name]

    def mask(self, expression: str) -> BoolArray:
        """The rows ``[q]`` where an expression over columns is true."""
        return Expression.parse(expression).mask(self.columns)

    @cached_property
    def fingerprint(self) -> str:
        """A SHA-256 of the content, equal on every machine, to recognise a space when a study is resumed."""
        digest = hashlib.sha256()
        heading = [[type(one).__name__, one.name, list(one.values)] for one in self.parameters]
        digest.update(json.dumps([heading, self.feature_names, self.feature_kinds]).encode())
        digest.update(self.codes.astype("<i8").tobytes())
        for name in sorted(set(self.columns) - set(self._names)):
            digest.update(json.dumps([name, self.columns[name].tolist()]).encode())
        digest.update(self.price_per_second.astype("<f8").tobytes())
        return digest.hexdigest()

    @property
    def _names(self) -> list[str]:
        return [parameter.name for parameter in self.parameters]

    def _code(self, parameter: Parameter, value: object) -> int:
        if value is None and parameter.when is not None:
            return INACTIVE
        if value is None and len(parameter.values) == 1:
            return 0  # the only possible value
        if value is None:
            raise InputError(
                f"The configuration lacks the parameter {shown(parameter.name)}; give one of {values_listed(parameter)}."
            )
        try:
            return parameter.values.index(value)
        except ValueError:
            hint = did_you_mean(value, parameter.values) or f" It may be {values_listed(parameter)}."
            raise InputError(f"The parameter {shown(parameter.name)} cannot be {shown(value)}.{hint}") from None

    @property
    def size_price(self) -> FloatArray:
        """Dollars per second as a measure of how large the machines of each configuration are `[q]`."""
        return self.price_per_second if self.list_price is None else self.list_price

    def _freeze(self) -> None:
        for array in (self.codes, self.features, self.price_per_second, self.size_price, *self.columns.values()):
            array.setflags(write=False)


def _words(point: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in point.items())
