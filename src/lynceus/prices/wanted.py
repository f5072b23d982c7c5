"""Which machines are wanted, in SkyPilot's words: `infra: aws/us-east-1`, `cpus: 4+`, `memory: 16+`, `accelerators: T4:1`."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from lynceus.errors import InputError
from lynceus.prices.offer import Catalog, Offer
from lynceus.space.column import listed, nearest

_AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(?:(\+)|-\s*(\d+(?:\.\d*)?|\.\d+))?\s*")
_UNIT = re.compile(r"(?i)(?<=\d)\s*g(i?b)?\b")


@dataclass(frozen=True, slots=True)
class Amount:
    """A number, a least number, or a range.

    >>> Amount.parse("4+", "cpus").holds(16), Amount.parse("4-8", "cpus").holds(16), Amount.parse(4, "cpus").holds(4)
    (True, False, True)
    """

    least: float
    most: float

    def __post_init__(self) -> None:
        if not 0 < self.least <= self.most:
            raise InputError(f"{self} came: give an amount above 0, the smaller one first.")

    @classmethod
    def parse(cls, value: object, what: str) -> Amount:
        """Read 4, '4+' or '4-8'; memory may name its unit (16GB+)."""
        text = _UNIT.sub("", str(value)) if what == "memory" else str(value)
        found = _AMOUNT.fullmatch(text) if not isinstance(value, bool) else None
        if found is None:
            raise InputError(f"{value!r} came: write 4 (exactly), 4+ (at least) or 4-8 (from, to).")
        least = float(found[1])
        most = math.inf if found[2] else float(found[3]) if found[3] else least
        return cls(least, most)

    def holds(self, number: float) -> bool:
        """Whether a machine with so much is wanted."""
        return self.least <= number <= self.most

    def __str__(self) -> str:
        if math.isinf(self.most):
            return f"{self.least:g}+"
        return f"{self.least:g}" if self.least == self.most else f"{self.least:g}-{self.most:g}"


@dataclass(frozen=True, slots=True)
class Place:
    """A cloud, perhaps a region of it, perhaps a zone of that; `*` stands for any.

    >>> Place.parse("aws/us-east-1")
    Place(cloud='aws', region='us-east-1', zone=None)
    """

    cloud: str | None = None
    region: str | None = None
    zone: str | None = None

    @classmethod
    def parse(cls, text: object) -> Place:
        """Read `aws`, `aws/us-east-1`, `aws/us-east-1/use1-az1` or `*/us-east-1`."""
        parts = [part.strip() for part in str(text).split("/")]
        if not isinstance(text, str) or not 1 <= len(parts) <= 3 or not all(parts):
            raise InputError(f"{text!r} came: write a cloud, a region and a zone like aws, aws/us-east-1.")
        if parts[0].lower() in ("k8s", "kubernetes", "slurm", "ssh"):
            raise InputError(
                f"{text!r} has no price list: name the machines as a parameter of the space, and their price in 'price'."
            )
        named = [None if part == "*" else part for part in (*parts, *("*",) * (3 - len(parts)))]
        return cls(None if named[0] is None else named[0].lower(), named[1], named[2])

    def offers(self, offers: Iterable[Offer]) -> list[Offer]:
        """The offers of this place, at its prices."""
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
class Wanted:
    """What a machine must have. Several places, names or accelerators are alternatives."""

    places: tuple[Place, ...] = (Place(),)
    instance_types: tuple[str, ...] = ()
    """Names, perhaps with `*`; empty for any."""
    cpus: Amount | None = None
    memory: Amount | None = None
    """GiB."""
    accelerators: tuple[tuple[str, float], ...] = ()
    """(name, how many); empty for any machine, with or without."""

    def offers(self, catalogs: Mapping[str, Catalog], spots: Sequence[bool] = (False,)) -> list[Offer]:
        """The offers that match and have every price that `spots` asks for, in the order of the places.

        When nothing is left, the error names the condition that took the last machines away.
        """
        left = self._placed(catalogs)
        for name, shown, keeps, known in self._conditions():
            kept = [one for one in left if keeps(one)]
            if not kept:
                count = f"of the {len(left)} machines that are left" if len(left) > 1 else "machine that is left"
                raise InputError(f"{name}: {shown} matches none {count}.{known(left)}")
            left = kept
        priced = [one for one in left if all(one.price(spot) is not None for spot in spots)]
        if not priced:
            kind = "spot price" if left[0].price(False) is not None else "price"
            raise InputError(
                f"the catalogs know no {kind} for {listed(sorted({one.instance_type for one in left}), 4)}: "
                "choose other machines or another region, or import newer prices with: lynceus prices import FILE."
            )
        return priced

    def _placed(self, catalogs: Mapping[str, Catalog]) -> list[Offer]:
        found: dict[tuple[str, str], Offer] = {}
        for place in self.places:
            here = place.offers(
                one for cloud, catalog in catalogs.items() if place.cloud in (None, cloud) for one in catalog.offers
            )
            if not here:
                raise InputError(_nowhere(place, catalogs))
            for one in sorted(here, key=lambda one: (one.infra, one.vcpus, one.memory_gib, one.instance_type)):
                found.setdefault((one.infra, one.instance_type), one)
        return list(found.values())

    def _conditions(self) -> list[tuple[str, str, Callable[[Offer], bool], Callable[[Sequence[Offer]], str]]]:
        found: list[tuple[str, str, Callable[[Offer], bool], Callable[[Sequence[Offer]], str]]] = []
        if names := self.instance_types:
            found.append(
                (
                    "instance_type",
                    listed(names, 4),
                    lambda one: any(fnmatch.fnmatchcase(one.instance_type, name) for name in names),
                    lambda left: nearest(names[0], sorted({one.instance_type for one in left})),
                )
            )
        if gpus := self.accelerators:
            found.append(
                (
                    "accelerators",
                    ", ".join(f"{name}:{count:g}" for name, count in gpus),
                    lambda one: (one.accelerator.lower(), one.accelerators) in {(name.lower(), n) for name, n in gpus},
                    _accelerators_known,
                )
            )
        if cpus := self.cpus:
            found.append(("cpus", str(cpus), lambda one: cpus.holds(one.vcpus), lambda left: _range(left, "vcpus", "")))
        if memory := self.memory:
            found.append(
                (
                    "memory",
                    str(memory),
                    lambda one: memory.holds(one.memory_gib),
                    lambda left: _range(left, "memory_gib", " GiB"),
                )
            )
        return found


def _nowhere(place: Place, catalogs: Mapping[str, Catalog]) -> str:
    """Why a place has no offers."""
    renew = "import its prices with: lynceus prices import FILE, or: lynceus prices refresh."
    if place.cloud is not None and place.cloud not in catalogs:
        hint = nearest(place.cloud, catalogs) or f" Known are {', '.join(sorted(catalogs))}."
        return f"infra: there are no prices of the cloud {place.cloud!r}.{hint} Else {renew}"
    here = [one for cloud in catalogs if place.cloud in (None, cloud) for one in catalogs[cloud].offers]
    regions = sorted({one.region for one in here})
    if place.region is not None and place.region not in regions:
        hint = nearest(place.region, regions) or f" Known are {listed(regions)}."
        return f"infra: there are no prices of the region {place.region!r}.{hint} Else {renew}"
    zones = sorted({zone for one in here if place.region in (None, one.region) for zone, _, _ in one.zones})
    known = f" Known are {listed(zones)}." if zones else " The catalog knows no zones; leave it out."
    return f"infra: there are no prices of the zone {place.zone!r}.{nearest(place.zone, zones) or known}"


def _accelerators_known(left: Sequence[Offer]) -> str:
    known = sorted({f"{one.accelerator}:{one.accelerators:g}" for one in left if one.accelerators})
    return f" They have {listed(known)}." if known else " None of them has an accelerator."


def _range(left: Sequence[Offer], field: str, unit: str) -> str:
    amounts = sorted({float(getattr(one, field)) for one in left})
    return f" They have {', '.join(f'{amount:g}' for amount in amounts[:12])}{' …' if len(amounts) > 12 else ''}{unit}."


def accelerator_of(text: object) -> tuple[str, float]:
    """An accelerator as SkyPilot writes it: a name, and perhaps how many.

    >>> accelerator_of("T4:2"), accelerator_of("A100")
    (('T4', 2.0), ('A100', 1.0))
    """
    name, _, count = str(text).partition(":")
    try:
        number = float(count) if count else 1.0
    except ValueError:
        number = 0.0
    if not isinstance(text, str) or not name.strip() or not (math.isfinite(number) and number > 0):
        raise InputError(f"{text!r} came: write an accelerator and how many of them, such as T4:1.")
    return name.strip(), number
