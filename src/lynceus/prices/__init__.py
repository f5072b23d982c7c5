"""Prices of machines: catalogs in SkyPilot's format, where they are stored, and requirements that select machines."""

from lynceus.prices.catalog_file import read_offers
from lynceus.prices.offer import STALE_DAYS, Catalog, Offer
from lynceus.prices.requirements import Infra, Range, Requirements
from lynceus.prices.store import PriceStore, catalog_of, catalogs, embedded

__all__ = [
    "STALE_DAYS",
    "Catalog",
    "Infra",
    "Offer",
    "PriceStore",
    "Range",
    "Requirements",
    "catalog_of",
    "catalogs",
    "embedded",
    "read_offers",
]
