"""From the sections `space`, `derived`, `forbid`, `resources` and `price` to the table of configurations."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from lynceus.errors import InputError, did_you_mean
from lynceus.jobfile.job import Job
from lynceus.jobfile.machines import PRICE, expansion_of, without_tenancy
from lynceus.jobfile.sections.space import DerivedSection, ParameterSection
from lynceus.space.catalog import load_catalog
from lynceus.space.column import Scalar
from lynceus.space.derived import Computed, Derived, Joined, Mapped
from lynceus.space.expression import Expression
from lynceus.space.parameter import Categorical, Float, Integer, Ordinal, Parameter
from lynceus.space.table import Space
from lynceus.space.user_file import read_file, table_text

_MONEY = re.compile(r"\s*(?:\$\s*(?P<after>[\d.]+)|(?P<before>[\d.]+)\s*(?:USD|\$))\s*(?:(?:/|per)\s*h(?:our)?)?\s*")
"""A price with its unit, `$0.05` or `0.05 USD per hour`, which an expression cannot have."""

PlacedDerived = tuple[tuple[str, ...], Derived]
"""A derived column with its path in the job file."""


def space_of(job: Job) -> Space:
    """All configurations of a job with their prices; its catalogs must have been read (`with_catalogs`)."""
    with job.at("resources"):
        expansion = expansion_of(job)
    parameters = [] if expansion is None else list(expansion.parameters)
    for name, section in job.spec.space.items():
        with job.at("space", name):
            parameters.append(_parameter(name, section))
    derived, price = _derived(job), _price(job)
    if expansion is None:
        return _build(job, parameters, derived, [], price)
    derived = [*((("resources",), one) for one in expansion.derived), *derived]
    space = _build(job, parameters, derived, list(expansion.forbid), price)
    return space if job.machines is None else without_tenancy(space, job.machines)


def price_table(job: Job) -> dict[str, list[Scalar]]:
    """The columns of the catalog that the section `prices` names, as the file is now."""
    prices = job.spec.prices
    assert prices is not None
    with job.at("prices"):
        if job.spec.resources.from_catalog:
            raise InputError("resources already determine the prices of their machines; remove 'prices'.")
        if prices.machine not in job.spec.space:
            hint = did_you_mean(prices.machine, job.spec.space)
            raise InputError(f"there is no parameter {prices.machine!r} that names machines; set prices.machine.{hint}")
        named = job.spec.space[prices.machine]
        machines = [str(one) for one in named.ordinal or named.choice or []]
        return load_catalog(job.file(prices.file), prices.region, machines or None, prices.spot)


def _build(
    job: Job, parameters: list[Parameter], derived: list[PlacedDerived], forbid: list[str], price: str | float
) -> Space:
    try:
        return Space.build(parameters, [one for _, one in derived], [*forbid, *job.spec.forbid], price=price)
    except InputError:
        _locate_error(job, parameters, derived)
        with job.at(next((name for name in ("price", "prices") if getattr(job.spec, name) is not None), "resources")):
            raise


def _locate_error(job: Job, parameters: list[Parameter], derived: list[PlacedDerived]) -> None:
    """Build the space piece by piece, so that the error names the line that causes it."""
    with job.at("space" if job.spec.space else "resources"):
        Space.build(parameters, price=1.0)
    columns: list[Derived] = []
    for path, one in derived:
        columns.append(one)
        with job.at(*path):
            Space.build(parameters, columns, price=1.0)
    for place in range(len(job.spec.forbid)):
        with job.at("forbid", place):
            Space.build(parameters, columns, job.spec.forbid[: place + 1], price=1.0)


def _parameter(name: str, section: ParameterSection) -> Parameter:
    when = section.when
    if section.int is not None or section.float is not None:
        low, high = section.int if section.int is not None else section.float  # type: ignore[misc]
        ranged = {"log": section.log, "steps": section.steps, "when": when}
        if section.int is None:
            return Float(name, low, high, step=section.step, **ranged)  # type: ignore[arg-type]
        if section.step is not None and section.step != int(section.step):
            raise InputError(f"got step {section.step:g} for whole numbers; give a whole step, or use float.")
        step = None if section.step is None else int(section.step)
        return Integer(name, int(low), int(high), step=step, **ranged)  # type: ignore[arg-type]
    for field in ("step", "steps"):
        if getattr(section, field) is not None:
            raise InputError(
                f"'{field}' belongs to a range of numbers; write {{int: [low, high], {field}: …}}, or remove it."
            )
    values: list[Any] = section.ordinal if section.ordinal is not None else section.choice or []
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)
    if section.log:
        if not numbers:
            raise InputError("'log' belongs to numbers; remove it.")
        kind = Integer if all(isinstance(one, int) for one in values) else Float
        return kind(name, values=tuple(values), log=True, when=when)
    # Numbers are ordered; a model that knows the order learns from fewer runs.
    return (Ordinal if section.ordinal is not None or numbers else Categorical)(name, tuple(values), when=when)


def _derived(job: Job) -> list[PlacedDerived]:
    """Derived columns in their order; the price catalog comes first."""
    found: list[PlacedDerived] = []
    if job.spec.prices is not None and job.table is not None:
        found.append((("prices",), Joined({job.spec.prices.machine: "instance_type"}, job.table)))
    for name, section in job.spec.derived.items():
        with job.at("derived", name):
            found.append((("derived", name), _derived_column(job, name, section)))
    return found


def _derived_column(job: Job, name: str, section: DerivedSection) -> Derived:
    if section.expression is not None:
        return Computed(name, section.expression, feature=section.feature)
    if section.map is not None:
        return Mapped(name, section.map, _typed_keys(job, section.map, section.values or {}), feature=section.feature)
    table = _read_csv(job.file(section.table or ""))
    keys = [section.join] if isinstance(section.join, str) else list(section.join or ())
    return Joined(keys, table, columns=section.columns, feature=section.feature)


def _typed_keys(job: Job, source: str, mapping: dict[Any, Any]) -> dict[Any, Any]:
    """Keys of a YAML mapping are strings; those of a numeric column must be converted back to numbers."""
    section = job.spec.space.get(source)
    values = [] if section is None else list(_parameter(source, section).values)
    known = {str(value): value for value in values}
    return {known.get(str(key), key): result for key, result in mapping.items()}


def _read_csv(path: Path) -> dict[str, list[Any]]:
    try:
        rows = list(csv.reader(table_text(read_file(path), path)))
    except OSError as error:
        raise InputError(f"the table {path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"the table {path} is not a CSV file in UTF-8; save it as one.") from None
    if len(rows) < 2:
        raise InputError(f"the table {path} has no rows below its header; add at least one.")
    header = [cell.strip() for cell in rows[0]]
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != len(header):
            raise InputError(
                f"the table {path}, line {line}, has {len(row)} cells, but the header has {len(header)}; correct the line."
            )
    return {name: _numbers_if_all([row[place].strip() for row in rows[1:]]) for place, name in enumerate(header)}


def _numbers_if_all(cells: list[str]) -> list[Any]:
    for kind in (int, float):
        try:
            return [kind(cell) for cell in cells]
        except ValueError:
            continue
    return list(cells)


def _price(job: Job) -> str | float:
    if job.spec.price is not None:
        with job.at("price"):
            if isinstance(job.spec.price, str):
                if (amount := _MONEY.fullmatch(job.spec.price)) is not None:
                    number = amount["before"] or amount["after"]
                    raise InputError(
                        f"got {job.spec.price!r}; write only the number, {number}, which means dollars per hour."
                    )
                Expression.parse(job.spec.price, "the expression")
            return job.spec.price
    if job.spec.prices is not None:
        return "price_usd_per_hour"
    if job.spec.resources.from_catalog:
        return PRICE
    raise InputError(
        f"{job.document.at('price')}: the price of a configuration is missing; give dollars per hour, "
        "such as 'price: 0.05 * threads', machines in 'resources', or a catalog in 'prices'."
    )
