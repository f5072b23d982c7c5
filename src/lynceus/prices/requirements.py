"""Requirements on machines in SkyPilot's syntax: `infra: aws/us-east-1`, `cpus: 4+`, `memory: 16+`, `accelerators: T4:1`."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lynceus.errors import InputError, did_you_mean
from lynceus.prices.offer import Catalog, Offer
from lynceus.space.column import listed

_RANGE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(?:(\+)|-\s*(\d+(?:\.\d*)?|\.\d+))?\s*")
_GIB_UNIT = re.compile(r"(?i)(?<=\d)\s*g(i?b)?\b")
_NO_PRICE_LIST = ("k8s", "kubernetes", "slurm", "ssh")


@dataclass(frozen=True, slots=True)
class Range:
    """A number, a minimum, or a range of numbers.

    >>> 16 in Range.parse("4+", "cpus"), 16 in Range.parse("4-8", "cpus"), 4 in Range.parse(4, "cpus")
    (True, False, True)
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.high:
            raise InputError(f"got {self}; give amounts above 0, the smaller one first.")

    @classmethod
    def parse(cls, value: object, field: str) -> Range:
        """Parse 4, '4+' or '4-8'; `memory` may have a unit (16GB+)."""
        text = _GIB_UNIT.sub("", str(value)) if field == "memory" else str(value)
        found = _RANGE.fullmatch(text) if not isinstance(value, bool) else None
        if found is None:
            raise InputError(f"got {value!r}; write 4 (exactly), 4+ (at least) or 4-8 (from, to).")
        low = float(found[1])
        return cls(low, math.inf if found[2] else float(found[3]) if found[3] else low)

    def __contains__(self, number: float) -> bool:
        return self.low <= number <= self.high

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"{self.low:g}+"
        return f"{self.low:g}" if self.low == self.high else f"{self.low:g}-{self.high:g}"


@dataclass(frozen=True, slots=True)
class Infra:
    """A cloud, optionally with region and zone; None means any.

    >>> Infra.parse("aws/us-east-1")
    Infra(cloud='aws', region='us-east-1', zone=None)
    """

    cloud: str | None = None
    region: str | None = None
    zone: str | None = None

    @classmethod
    def parse(cls, text: object) -> Infra:
        """Parse `aws`, `aws/us-east-1`, `aws/us-east-1/use1-az1` or `*/us-east-1`."""
        parts = [part.strip() for part in str(text).split("/")]
        if not isinstance(text, str) or not 1 <= len(parts) <= 3 or not all(parts):
            raise InputError(f"got {text!r}; write a cloud, with region and zone if needed: aws, aws/us-east-1.")
        if parts[0].lower() in _NO_PRICE_LIST:
            raise InputError(
                f"there is no price list for {text!r}; make the machines a parameter of the space, and give their price in 'price'."
            )
        named = [None if part == "*" else part for part in (*parts, *("*",) * (3 - len(parts)))]
        return cls(None if named[0] is None else named[0].lower(), named[1], named[2])

    def select(self, offers: Iterable[Offer]) -> list[Offer]:
        """The offers in this cloud, region and zone, at the prices of the zone."""
        here = [
            one
            for one in offers
            if (self.cloud is None or one.cloud == self.cloud) and (self.region is None or one.region == self.region)
        ]
        if self.zone is None:
            return here
        return [found for one in here if (found := one.in_zone(self.zone)) is not None]

    def __str__(self) -> str:
        parts = [part or "*" for part in (self.cloud, self.region, self.zone)]
        while len(parts) > 1 and parts[-1] == "*":
            parts.pop()
        return "/".join(parts)


@dataclass(frozen=True, slots=True)
class _Condition:
    """One requirement on a machine besides its location."""

    field: str
    text: str
    holds: Callable[[Offer], bool]
    available: Callable[[Sequence[Offer]], str]
    """A sentence about what the given offers have instead."""


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a machine must have. Several infras, names or accelerators are alternatives."""

    infras: tuple[Infra, ...] = (Infra(),)
    instance_types: tuple[str, ...] = ()
    """Names, with `*` as a wildcard; empty for any."""
    cpus: Range | None = None
    memory: Range | None = None
    """GiB."""
    accelerators: tuple[tuple[str, float], ...] = ()
    """(name, how many); empty for any machine, with or without."""

    def select(self, catalogs: Mapping[str, Catalog], spots: Sequence[bool] = (False,)) -> list[Offer]:
        """The offers that match, in the order of `infras`; `spots` lists the values of `use_spot` that need a price.

        When no offer is left, the error names the condition that no remaining offer meets.
        """
        left = self._located(catalogs)
        for condition in self._conditions():
            kept = [one for one in left if condition.holds(one)]
            if not kept:
                count = f"none of the {len(left)} remaining machines" if len(left) > 1 else "not the remaining machine"
                raise InputError(f"{condition.field}: {condition.text} matches {count}.{condition.available(left)}")
            left = kept
        priced = [one for one in left if all(one.price(spot) is not None for spot in spots)]
        if not priced:
            kind = "spot price" if left[0].price(False) is not None else "price"
            raise InputError(
                f"the catalogs have no {kind} for {listed(sorted({one.instance_type for one in left}), 4)}; "
                "choose other machines or another region, or import newer prices with: lynceus prices import FILE."
            )
        return priced

    def _located(self, catalogs: Mapping[str, Catalog]) -> list[Offer]:
        found: dict[tuple[str, str], Offer] = {}
        for infra in self.infras:
            here = infra.select(
                one for cloud, catalog in catalogs.items() if infra.cloud in (None, cloud) for one in catalog.offers
            )
            if not here:
                raise InputError(_no_offers(infra, catalogs))
            for one in sorted(here, key=lambda one: (one.infra, one.vcpus, one.memory_gib, one.instance_type)):
                found.setdefault((one.infra, one.instance_type), one)
        return list(found.values())

    def _conditions(self) -> list[_Condition]:
        found: list[_Condition] = []
        if names := self.instance_types:
            found.append(
                _Condition(
                    "instance_type",
                    listed(names, 4),
                    lambda one: any(fnmatch.fnmatchcase(one.instance_type, name) for name in names),
                    lambda left: did_you_mean(names[0], sorted({one.instance_type for one in left})),
                )
            )
        if gpus := self.accelerators:
            found.append(
                _Condition(
                    "accelerators",
                    ", ".join(f"{name}:{count:g}" for name, count in gpus),
                    lambda one: (one.accelerator.lower(), one.accelerators) in {(name.lower(), n) for name, n in gpus},
                    _available_accelerators,
                )
            )
        if cpus := self.cpus:
            found.append(
                _Condition("cpus", str(cpus), lambda one: one.vcpus in cpus, lambda left: _available(left, "vcpus", ""))
            )
        if memory := self.memory:
            found.append(
                _Condition(
                    "memory",
                    str(memory),
                    lambda one: one.memory_gib in memory,
                    lambda left: _available(left, "memory_gib", " GiB"),
                )
            )
        return found


def parse_accelerator(text: object) -> tuple[str, float]:
    """An accelerator in SkyPilot's syntax: a name, and optionally how many.

    >>> parse_accelerator("T4:2"), parse_accelerator("A100")
    (('T4', 2.0), ('A100', 1.0))
    """
    name, _, count = str(text).partition(":")
    try:
        number = float(count) if count else 1.0
    except ValueError:
        number = 0.0
    if not isinstance(text, str) or not name.strip() or not (math.isfinite(number) and number > 0):
        raise InputError(f"got {text!r}; write an accelerator and how many of them, such as T4:1.")
    return name.strip(), number


def _no_offers(infra: Infra, catalogs: Mapping[str, Catalog]) -> str:
    """Why no catalog has an offer there."""
    renew = "import its prices with: lynceus prices import FILE, or: lynceus prices refresh."
    if infra.cloud is not None and infra.cloud not in catalogs:
        hint = did_you_mean(infra.cloud, catalogs) or f" Known are {', '.join(sorted(catalogs))}."
        return f"infra: there are no prices for the cloud {infra.cloud!r}.{hint} Otherwise {renew}"
    here = [one for cloud in catalogs if infra.cloud in (None, cloud) for one in catalogs[cloud].offers]
    regions = sorted({one.region for one in here})
    if infra.region is not None and infra.region not in regions:
        hint = did_you_mean(infra.region, regions) or f" Known are {listed(regions)}."
        return f"infra: there are no prices for the region {infra.region!r}.{hint} Otherwise {renew}"
    zones = sorted({zone for one in here if infra.region in (None, one.region) for zone, _, _ in one.zones})
    known = f" Known are {listed(zones)}." if zones else " The catalog lists no zones; leave it out."
    return f"infra: there are no prices for the zone {infra.zone!r}.{did_you_mean(infra.zone, zones) or known}"


def _available_accelerators(left: Sequence[Offer]) -> str:
    known = sorted({f"{one.accelerator}:{one.accelerators:g}" for one in left if one.accelerators})
    return f" They have {listed(known)}." if known else " None of them has an accelerator."


def _available(left: Sequence[Offer], field: str, unit: str) -> str:
    amounts = sorted({float(getattr(one, field)) for one in left})
    return f" They have {', '.join(f'{amount:g}' for amount in amounts[:12])}{' …' if len(amounts) > 12 else ''}{unit}."
