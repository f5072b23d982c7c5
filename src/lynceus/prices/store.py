"""Where catalogs are stored: a small one inside the package, and imported ones of the user, which replace it cloud by cloud.

An imported catalog is two files: the original CSV, named by its hash, and an index file with its name, source and date. The index is
replaced atomically, so that readers see the old prices or the new ones, never a mixture.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from importlib import resources
from pathlib import Path

from lynceus.errors import InfrastructureError, InputError
from lynceus.prices.catalog_file import CLOUDS, cloud_name, read_offers
from lynceus.prices.offer import Catalog, Offer


def home() -> Path:
    """The folder of user data: LYNCEUS_HOME, else `lynceus` in XDG_DATA_HOME or ~/.local/share."""
    if own := os.environ.get("LYNCEUS_HOME"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(shared).expanduser() / "lynceus"


class PriceStore:
    """The imported catalogs of a user, in a folder."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self.folder = home() / "prices" if folder is None else Path(folder)

    def clouds(self) -> list[str]:
        """Clouds with imported prices."""
        return sorted(note.stem for note in self.folder.glob("*.json")) if self.folder.is_dir() else []

    def load(self, cloud: str) -> Catalog | None:
        """The imported catalog of a cloud; None when there is none."""
        path = self.folder / f"{cloud}.json"
        try:
            index = json.loads(path.read_text(encoding="utf-8"))
            source, as_of_s, file = str(index["source"]), float(index["as_of_s"]), str(index["file"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError):
            raise InputError(f"the prices in {path} cannot be read; remove the file, then import them again.") from None
        return Catalog(cloud, _offers(self.folder / file, cloud), source, as_of_s)

    def keep(self, text: bytes, cloud: str, source: str, as_of_s: float) -> Catalog:
        """Validate a catalog and store it in place of the previous one, which stays if the new one has an error."""
        cloud = cloud_name(cloud)
        name = f"{cloud}-{hashlib.sha256(text).hexdigest()[:16]}.csv"
        index = json.dumps({"source": source, "as_of_s": as_of_s, "file": name, "kept_s": time.time()}, indent=2)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            draft = self._written(text, ".csv")
            try:
                offers = read_offers(draft, cloud)
                draft.replace(self.folder / name)
            except InputError as error:
                raise InputError(str(error).replace(str(draft), source)) from None
            finally:
                draft.unlink(missing_ok=True)
            self._written(index.encode(), ".json").replace(self.folder / f"{cloud}.json")
            for old in self.folder.glob(f"{cloud}-*.csv"):
                if old.name != name:
                    old.unlink(missing_ok=True)
        except OSError as error:
            raise InfrastructureError(
                f"the prices cannot be written to {self.folder}: {error.strerror}; the stored prices stay."
            ) from None
        return Catalog(cloud, offers, source, as_of_s)

    def _written(self, data: bytes, suffix: str) -> Path:
        """A temporary file with this content, flushed to disk."""
        descriptor, name = tempfile.mkstemp(dir=self.folder, prefix=".new-", suffix=suffix)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        return Path(name)


def day_s(text: str) -> float:
    """The start of a day such as 2026-11-15, seconds since the epoch.

    >>> day_s("1970-01-02")
    86400.0
    """
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise InputError(f"{text!r} is not a date; write it like 2026-11-15.") from None


def embedded(cloud: str) -> Catalog | None:
    """The small catalog inside the package; None for clouds that it does not have.

    >>> offer = next(one for one in embedded("aws").offers if one.infra == "aws/us-east-1")
    >>> offer.vcpus >= 2, offer.usd_per_hour > 0
    (True, True)
    """
    if cloud not in CLOUDS:
        return None
    folder = resources.files(__package__) / "embedded"
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))[cloud]
    with resources.as_file(folder / f"{cloud}.csv") as path:
        offers = _offers(path, cloud)
    if share := about.get("spot_share"):
        offers = tuple(_with_spot_estimate(offer, share) for offer in offers)
    return Catalog(cloud, offers, f"embedded: {about['source']}", day_s(about["as_of"]), about.get("spot", ""))


def _with_spot_estimate(offer: Offer, share: float) -> Offer:
    return replace(
        offer, spot_usd_per_hour=None if offer.usd_per_hour is None else round(offer.usd_per_hour * share, 6)
    )


def catalog_of(cloud: str, store: PriceStore | None = None) -> Catalog | None:
    """The prices of a cloud: imported, else embedded; None when there are none."""
    return (store or PriceStore()).load(cloud) or embedded(cloud)


def catalogs(store: PriceStore | None = None) -> dict[str, Catalog]:
    """All catalogs by cloud."""
    store = store or PriceStore()
    found = {cloud: catalog_of(cloud, store) for cloud in dict.fromkeys([*CLOUDS, *store.clouds()])}
    return {cloud: catalog for cloud, catalog in found.items() if catalog is not None}


def _offers(path: Path, cloud: str) -> tuple[Offer, ...]:
    try:
        stamp = path.stat().st_mtime_ns
    except OSError as error:
        raise InputError(f"the prices {path} cannot be read: {error.strerror}; import them again.") from None
    return _read_once(str(path), cloud, stamp)


@lru_cache(maxsize=8)
def _read_once(path: str, cloud: str, stamp: int) -> tuple[Offer, ...]:
    return read_offers(path, cloud)
