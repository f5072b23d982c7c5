"""Prices of machines: catalogs in SkyPilot's format, where they are kept, and which machines of them are wanted."""

from lynceus.prices.offer import STALE_DAYS, Catalog, Offer
from lynceus.prices.read import read_offers
from lynceus.prices.store import PriceStore, catalog_of, catalogs, embedded
from lynceus.prices.wanted import Amount, Place, Wanted

__all__ = [
    "STALE_DAYS",
    "Amount",
    "Catalog",
    "Offer",
    "Place",
    "PriceStore",
    "Wanted",
    "catalog_of",
    "catalogs",
    "embedded",
    "read_offers",
]
