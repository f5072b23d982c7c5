"""Machine catalogs: what a cloud's machines have and what an hour of each costs.

The format is that of SkyPilot's public catalogs: a CSV file with at least the columns InstanceType, vCPUs, MemoryGiB,
Price, SpotPrice (dollars per hour) and Region, one row per machine and place.
"""

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from lynceus.errors import InputError, did_you_mean, shown
from lynceus.space.column import Scalar, listed
from lynceus.space.user_file import read_file, table_text

_NEEDED = ("InstanceType", "vCPUs", "MemoryGiB", "Price", "SpotPrice", "Region")
CatalogRow = tuple[int, dict[str, str]]
"""A line number of the file, and the line's cells."""


def load_catalog(
    path: str | Path, region: str | None = None, instance_types: Sequence[str] | None = None, spot: bool = False
) -> dict[str, list[Scalar]]:
    """The machines of one region as a table for `lynceus.space.Joined`, in the order asked for, else by name.

    Its columns are ``instance_type``, ``vcpus``, ``memory_gib``, ``accelerators`` (how many), ``accelerator`` (which,
    or "none") and ``price_usd_per_hour``: on demand, or with ``spot`` that of the cheapest zone. Machines without such
    a price are left out; asking for one by name is an error. ``region`` may be omitted when the file has only one.
    """
    rows = catalog_rows(Path(path))
    known = sorted({row["Region"] for _, row in rows})
    if region is None and len(known) > 1:
        raise InputError(f"{path} has the regions {listed(known)}: say which one to use.")
    if region is not None and region not in known:
        raise InputError(
            f"{path} has no region {shown(region)}.{did_you_mean(region, known) or f' It has {listed(known)}.'}"
        )
    chosen: dict[str, dict[str, Scalar]] = {}
    unpriced: set[str] = set()
    for line, row in rows:
        name = row["InstanceType"]
        if (
            not name
            or row["Region"] != (region or known[0])
            or (instance_types is not None and name not in instance_types)
        ):
            continue  # a row without a machine is the price of an accelerator alone
        machine = _machine(row, f"{path}, line {line}", spot)
        if machine is None:
            unpriced.add(name)
        elif name not in chosen or machine["price_usd_per_hour"] < chosen[name]["price_usd_per_hour"]:  # type: ignore[operator]
            chosen[name] = machine
    order = sorted(chosen) if instance_types is None else list(dict.fromkeys(instance_types))
    _need_all(path, order, chosen, unpriced, {row["InstanceType"] for _, row in rows})
    return {column: [chosen[name][column] for name in order] for column in next(iter(chosen.values()))}


def catalog_rows(path: Path) -> list[CatalogRow]:
    """The lines of a catalog with their numbers, cells stripped; the columns that every catalog needs are there."""
    try:
        reader = csv.DictReader(table_text(read_file(path), path))
        header = reader.fieldnames or []
        missing = [name for name in _NEEDED if name not in header]
        if missing:
            raise InputError(f"{path} lacks the column {shown(missing[0])}; a catalog needs {', '.join(_NEEDED)}.")
        rows = [(line, {name: (row.get(name) or "").strip() for name in header}) for line, row in enumerate(reader, 2)]
    except OSError as error:
        raise InputError(f"The catalog {path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"The catalog {path} is not a CSV file in UTF-8.") from None
    if not rows:
        raise InputError(f"The catalog {path} has no rows.")
    return rows


def _machine(row: dict[str, str], where: str, spot: bool) -> dict[str, Scalar] | None:
    """The table row of a machine; None without a price."""
    field = "SpotPrice" if spot else "Price"
    price = catalog_number(row[field] or "0", where, field, least=0.0)
    if price == 0:  # public catalogs leave an unknown price empty or write 0.0
        return None
    vcpus = catalog_number(row["vCPUs"], where, "vCPUs")
    return {
        "instance_type": row["InstanceType"],
        "vcpus": int(vcpus) if vcpus == int(vcpus) else vcpus,
        "memory_gib": catalog_number(row["MemoryGiB"], where, "MemoryGiB"),
        "accelerators": catalog_number(row.get("AcceleratorCount") or "0", where, "AcceleratorCount", least=0.0),
        "accelerator": row.get("AcceleratorName") or "none",
        "price_usd_per_hour": price,
    }


def catalog_number(text: str, where: str, field: str, least: float = 1e-9) -> float:
    """A cell as a number of at least `least`."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= least):
        raise InputError(
            f"{where}: {field} is {shown(text)}, but a number {'of at least' if least == 0 else 'above'} 0 is needed."
        )
    return number


def _need_all(
    path: str | Path,
    order: Sequence[str],
    chosen: dict[str, dict[str, Scalar]],
    unpriced: set[str],
    known: Iterable[str],
) -> None:
    for name in order:
        if name in chosen:
            continue
        if name in unpriced:
            raise InputError(
                f"{path} has no such price for {shown(name)}: choose another region, on-demand, or machine."
            )
        hint = did_you_mean(name, known) if name not in known else " Other regions have it."
        raise InputError(f"{path} has no machine {shown(name)} in this region.{hint}")
    if not chosen:
        raise InputError(
            f"{path} has no machine with a price in this region: choose another region or on-demand prices."
        )
