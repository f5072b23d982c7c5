"""The machines of a study with the prices it started with, or that were applied to it later.

A study stores this snapshot: its rows always refer to the same machines, and newer catalogs have no effect until they are applied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from lynceus.errors import InputError
from lynceus.prices.offer import Catalog, Offer
from lynceus.prices.requirements import Requirements

_STORED = tuple(one.name for one in fields(Offer) if one.name != "zones")


@dataclass(frozen=True, slots=True)
class Source:
    """Where the prices of a cloud came from."""

    cloud: str
    source: str
    as_of_s: float
    spot_note: str = ""
    """A remark on its spot prices, when they are not the cloud's own."""

    @classmethod
    def of(cls, catalog: Catalog) -> Source:
        """The source of a catalog."""
        return cls(catalog.cloud, catalog.source, catalog.as_of_s, catalog.spot_note)

    def catalog(self) -> Catalog:
        """A catalog with this source and without offers."""
        return Catalog(self.cloud, (), self.source, self.as_of_s, self.spot_note)


@dataclass(frozen=True, slots=True)
class PriceChange:
    """A price that has changed."""

    infra: str
    instance_type: str
    spot: bool
    before: float
    """Dollars per hour."""
    now: float | None
    """Dollars per hour; None when the catalog no longer has it, and the old price stays in use."""

    def __str__(self) -> str:
        kind = " spot" if self.spot else ""
        if self.now is None:
            return f"{self.instance_type}{kind} ({self.infra}) has no price any more; ${self.before:.4f} stays"
        share = f"{self.now / self.before - 1:+.0%}".replace("%", " %")
        return f"{self.instance_type}{kind} ({self.infra}) ${self.before:.4f} → ${self.now:.4f} ({share})"


@dataclass(frozen=True)
class Machines:
    """Offers that a study may use, in the order of its space, and the sources of their prices."""

    offers: tuple[Offer, ...]
    sources: tuple[Source, ...]

    @classmethod
    def matching(
        cls, requirements: Iterable[Requirements], catalogs: Mapping[str, Catalog], spots: Sequence[bool] = (False,)
    ) -> Machines:
        """The offers of the catalogs that match one of the alternatives."""
        found: dict[tuple[str, str], Offer] = {}
        for one in requirements:
            for offer in one.select(catalogs, spots):
                found.setdefault((offer.infra, offer.instance_type), replace(offer, zones=()))
        clouds = dict.fromkeys(offer.cloud for offer in found.values())
        return cls(tuple(found.values()), tuple(Source.of(catalogs[cloud]) for cloud in clouds))

    def record(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "offers": [{name: getattr(offer, name) for name in _STORED} for offer in self.offers],
            "sources": [asdict(one) for one in self.sources],
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Machines:
        """The inverse of `record`."""
        return cls(
            tuple(Offer(**offer) for offer in record["offers"]), tuple(Source(**one) for one in record["sources"])
        )

    def repriced(
        self, requirements: Iterable[Requirements], catalogs: Mapping[str, Catalog], spots: Sequence[bool] = (False,)
    ) -> tuple[Machines, list[PriceChange]]:
        """The same machines at the prices of the catalogs, and what changed. A machine without a price there keeps its old one."""
        today: dict[tuple[str, str], Offer] = {}
        for one in requirements:
            try:
                found = one.select(catalogs, spots)
            except InputError:
                continue  # a catalog without any of these machines changes no price
            for offer in found:
                today.setdefault((offer.infra, offer.instance_type), offer)
        offers, changes = [], []
        for before in self.offers:
            now = today.get((before.infra, before.instance_type))
            prices: dict[str, float | None] = {}
            for spot in spots:
                old, new = before.price(spot), None if now is None else now.price(spot)
                if old is not None and new != old:
                    changes.append(PriceChange(before.infra, before.instance_type, spot, old, new))
                prices["spot_usd_per_hour" if spot else "usd_per_hour"] = old if new is None else new
            offers.append(replace(before, **prices))  # type: ignore[arg-type]
        renewed = tuple(Source.of(catalogs[one.cloud]) if one.cloud in catalogs else one for one in self.sources)
        return Machines(tuple(offers), renewed), changes
