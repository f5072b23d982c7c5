"""Read catalogs in SkyPilot's CSV format: one line per machine and zone, merged into one offer per machine and region.

Two peculiarities of the public files are handled here. An unknown price is an empty cell or 0.0. And Google bills the accelerators of
its A2, A3, A4 and G2 machines separately, on lines without a machine; an offer has the sum of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from lynceus.errors import InputError, explained_in
from lynceus.prices.offer import Offer
from lynceus.space.catalog import catalog_number, catalog_rows

CLOUDS = ("aws", "gcp", "azure")
"""Clouds whose catalogs are embedded and refreshed by default."""
_CLOUD = re.compile(r"[a-z][a-z0-9_-]{0,31}")

_GCP_BUILT_IN = (
    (re.compile(r"a2-highgpu-(\d+)g"), "A100"),
    (re.compile(r"a2-megagpu-(\d+)g"), "A100"),
    (re.compile(r"a2-ultragpu-(\d+)g"), "A100-80GB"),
    (re.compile(r"a3-(?:highgpu|edgegpu)-(\d+)g(?:-nolssd)?"), "H100"),
    (re.compile(r"a3-megagpu-(\d+)g"), "H100-MEGA"),
    (re.compile(r"a3-ultragpu-(\d+)g(?:-nolssd)?"), "H200"),
    (re.compile(r"a4-highgpu-(\d+)g"), "B200"),
)
_GCP_L4 = {"4": 1, "8": 1, "12": 1, "16": 1, "32": 1, "24": 2, "48": 4, "96": 8}
"""Accelerators of a g2-standard machine by its vCPUs."""

_Prices = tuple[float | None, float | None]


def cloud_name(name: str) -> str:
    """The normalised name of a cloud."""
    name = name.strip().lower()
    if not _CLOUD.fullmatch(name):
        raise InputError(f"{name!r} is not the name of a cloud; write for example aws, gcp or azure.")
    return name


def guessed_cloud(path: Path) -> str:
    """The cloud in the name or folder of a file: aws.csv, or aws/vms.csv as SkyPilot has it."""
    for word in (path.stem, path.parent.name):
        if word.lower() in CLOUDS:
            return word.lower()
    raise InputError(f"{path}: the file name contains no cloud; add --cloud aws (or gcp, azure, …).")


@explained_in("prices.md#catalogs")
def read_offers(path: str | Path, cloud: str) -> tuple[Offer, ...]:
    """The offers of a catalog file, by region and name. An invalid line is an error that names it."""
    rows = catalog_rows(Path(path))
    separate = _accelerator_prices(rows, str(path)) if cloud == "gcp" else {}
    merged: dict[tuple[str, str], Offer] = {}
    for line, row in rows:
        if not row["InstanceType"]:
            continue
        offer = _offer(row, cloud, f"{path}, line {line}", separate)
        key = offer.region, offer.instance_type
        merged[key] = _cheapest(merged[key], offer) if key in merged else offer
    if not merged:
        raise InputError(f"{path} lists no machine; give a catalog of virtual machines (vms.csv).")
    return tuple(merged[key] for key in sorted(merged))


def _offer(row: dict[str, str], cloud: str, where: str, separate: dict[tuple[str, str, float], _Prices]) -> Offer:
    name, region = row["InstanceType"], row["Region"]
    accelerator = row.get("AcceleratorName") or "none"
    count = catalog_number(row.get("AcceleratorCount") or "0", where, "AcceleratorCount", least=0.0)
    price, spot = _price(row, where, "Price"), _price(row, where, "SpotPrice")
    if cloud == "gcp" and (built_in := _built_in(name)) is not None:
        accelerator, count = built_in
        further = separate.get((region, accelerator, count), (None, None))
        price, spot = _sum(price, further[0]), _sum(spot, further[1])
    ghz = row.get("ClockGHz")
    zone = row.get("AvailabilityZone", "")
    return Offer(
        cloud,
        region,
        name,
        catalog_number(row["vCPUs"] or "0", where, "vCPUs", least=0.0),
        catalog_number(row["MemoryGiB"] or "0", where, "MemoryGiB", least=0.0),
        accelerator,
        count,
        price,
        spot,
        catalog_number(ghz, where, "ClockGHz") if ghz else None,
        ((zone, price, spot),) if zone else (),
    )


def _built_in(name: str) -> tuple[str, float] | None:
    """The built-in accelerators of a machine of Google."""
    if name.startswith("g2-standard-"):
        count = _GCP_L4.get(name.removeprefix("g2-standard-"))
        return None if count is None else ("L4", float(count))
    for pattern, accelerator in _GCP_BUILT_IN:
        if (found := pattern.fullmatch(name)) is not None:
            return accelerator, float(found[1])
    return None


def _accelerator_prices(rows: Iterable[tuple[int, dict[str, str]]], path: str) -> dict[tuple[str, str, float], _Prices]:
    """Separate prices of accelerators in the cheapest zone, by region, name and count."""
    found: dict[tuple[str, str, float], _Prices] = {}
    for line, row in rows:
        if row["InstanceType"] or not row.get("AcceleratorName"):
            continue
        where = f"{path}, line {line}"
        count = catalog_number(row.get("AcceleratorCount") or "0", where, "AcceleratorCount", least=0.0)
        key = row["Region"], row["AcceleratorName"], count
        known = found.get(key, (None, None))
        found[key] = (
            _least(known[0], _price(row, where, "Price")),
            _least(known[1], _price(row, where, "SpotPrice")),
        )
    return found


def _price(row: dict[str, str], where: str, field: str) -> float | None:
    return catalog_number(row[field] or "0", where, field, least=0.0) or None


def _cheapest(one: Offer, other: Offer) -> Offer:
    """Two zones of a region as one offer: the lowest prices, and all zones."""
    return Offer(
        one.cloud,
        one.region,
        one.instance_type,
        one.vcpus,
        one.memory_gib,
        one.accelerator,
        one.accelerators,
        _least(one.usd_per_hour, other.usd_per_hour),
        _least(one.spot_usd_per_hour, other.spot_usd_per_hour),
        one.ghz,
        (*one.zones, *other.zones),
    )


def _least(one: float | None, other: float | None) -> float | None:
    known = [price for price in (one, other) if price is not None]
    return min(known, default=None)


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else round(one + other, 6)
