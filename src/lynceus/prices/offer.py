"""Offers of clouds: machines with their hardware and hourly price, and catalogs with the source of the prices."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

STALE_DAYS = 30.0
"""Older prices are used with a warning."""
_DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Offer:
    """A machine type in one region of one cloud."""

    cloud: str
    region: str
    instance_type: str
    vcpus: float
    memory_gib: float
    accelerator: str = "none"
    """Which accelerator it has; `none` for none."""
    accelerators: float = 0.0
    """How many of them."""
    usd_per_hour: float | None = None
    """On demand; None when the catalog does not have it."""
    spot_usd_per_hour: float | None = None
    """Spot, in the cheapest zone; None when it is not offered or not known."""
    ghz: float | None = None
    """Clock rate as published; None when the catalog does not have it."""
    zones: tuple[tuple[str, float | None, float | None], ...] = ()
    """(zone, on-demand price, spot price) for the zones of the region; empty where the cloud has none."""
    zone: str | None = None
    """The only zone that is meant; None: any zone of the region."""

    def __post_init__(self) -> None:
        for price in (self.usd_per_hour, self.spot_usd_per_hour):
            if price is not None and not (math.isfinite(price) and price > 0):
                raise ValueError(f"{self.instance_type} cannot cost {price!r} dollars per hour")

    @property
    def infra(self) -> str:
        """Its location in SkyPilot's syntax: `aws/us-east-1`."""
        return "/".join(part for part in (self.cloud, self.region, self.zone) if part is not None)

    def in_zone(self, zone: str) -> Offer | None:
        """The same machine at the prices of one zone; None when it is not offered there."""
        for name, price, spot in self.zones:
            if name == zone:
                return replace(
                    self, usd_per_hour=price, spot_usd_per_hour=spot, zones=((name, price, spot),), zone=name
                )
        return None

    def price(self, spot: bool) -> float | None:
        """Dollars per hour on demand, or as a spot machine; None when unknown."""
        return self.spot_usd_per_hour if spot else self.usd_per_hour


@dataclass(frozen=True)
class Catalog:
    """The offers of one cloud, from one source, as of one moment."""

    cloud: str
    offers: tuple[Offer, ...]
    source: str
    """Where the prices come from, as text for users."""
    as_of_s: float
    """The date of the prices, seconds since the epoch."""
    spot_note: str = ""
    """A remark on its spot prices for users, when they are not the cloud's own."""

    def age_days(self, now_s: float | None = None) -> float:
        """The age of the prices."""
        return max(((time.time() if now_s is None else now_s) - self.as_of_s) / _DAY_S, 0.0)

    def stale(self, now_s: float | None = None) -> bool:
        """Whether they are too old to be used without a warning."""
        return self.age_days(now_s) > STALE_DAYS

    @property
    def date(self) -> str:
        """The day of the prices, such as 2026-11-15."""
        return time.strftime("%Y-%m-%d", time.gmtime(self.as_of_s))

    def about(self, now_s: float | None = None) -> str:
        """Date, age and source, such as: aws of 2026-11-15 (3 days old), aws.csv."""
        days = self.age_days(now_s)
        age = "today's" if days < 1 else "1 day old" if days < 2 else f"{days:.0f} days old"
        return f"{self.cloud} of {self.date} ({age}), {self.source}"

    def warning(self, now_s: float | None = None) -> str | None:
        """A warning about old prices; None when they are recent."""
        if not self.stale(now_s):
            return None
        return (
            f"the prices of {self.cloud} are {self.age_days(now_s):.0f} days old ({self.source}, {self.date}); "
            "renew them with: lynceus prices refresh."
        )

    def spot_warning(self) -> str | None:
        """A warning about spot prices that are not the cloud's own; None when they are."""
        if not self.spot_note:
            return None
        return (
            f"the spot prices of {self.cloud} are {self.spot_note}; "
            "get real ones with: lynceus prices refresh, or: lynceus prices import FILE."
        )
