"""Newer prices: from SkyPilot's public catalog, from the folder of an installed SkyPilot, or from wherever the user says."""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from lynceus.errors import InfrastructureError, InputError
from lynceus.prices.offer import Catalog
from lynceus.prices.read import guessed_cloud
from lynceus.prices.store import PriceStore

PUBLIC = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v7/{cloud}/vms.csv"
"""Where SkyPilot publishes its catalogs."""
_PATIENCE_S = 30.0
_MOST_BYTES = 256 << 20
_VERSION = re.compile(r"v(\d+)")


@dataclass(frozen=True, slots=True)
class Fetched:
    """A catalog file as it came."""

    text: bytes
    source: str
    as_of_s: float


def refresh(store: PriceStore, cloud: str, place: str | None = None) -> Catalog:
    """Fetch the prices of a cloud and keep them. What cannot be reached or read changes nothing.

    Without a `place`, the public catalog is asked first; when it cannot be reached, an installed SkyPilot's folder serves.
    """
    fetched = fetch(place, cloud) if place is not None else _public_or_installed(cloud)
    return store.keep(fetched.text, cloud, fetched.source, fetched.as_of_s)


def fetch(place: str, cloud: str) -> Fetched:
    """A catalog file from an address, a folder as SkyPilot keeps it, or a file. `{cloud}` in it stands for the cloud."""
    named = place.replace("{cloud}", cloud)
    if named.startswith(("http://", "https://")):
        return _downloaded(named)
    path = Path(named).expanduser()
    if path.is_dir():
        path = _in_folder(path, cloud)
    return file_of(path)


def file_of(path: Path) -> Fetched:
    """A file, as old as it says."""
    try:
        return Fetched(path.read_bytes(), str(path), path.stat().st_mtime)
    except OSError as error:
        raise InputError(f"the catalog {path} cannot be read: {error.strerror}.") from None


def cloud_of(path: Path, given: str | None) -> str:
    """Whose prices a file holds: as given, else as its name tells."""
    return given if given is not None else guessed_cloud(path)


def _public_or_installed(cloud: str) -> Fetched:
    try:
        return _downloaded(PUBLIC.replace("{cloud}", cloud))
    except InfrastructureError as offline:
        installed = Path("~/.sky/catalogs").expanduser()
        try:
            return file_of(_in_folder(installed, cloud))
        except InputError:
            raise offline from None


def _in_folder(folder: Path, cloud: str) -> Path:
    """`folder/aws/vms.csv`, `folder/aws.csv`, or the same below its newest `v7`."""
    versions = sorted(
        (int(found[1]), one) for one in folder.glob("v*") if (found := _VERSION.fullmatch(one.name)) is not None
    )
    for root in [*(one for _, one in reversed(versions)), folder]:
        for path in (root / cloud / "vms.csv", root / f"{cloud}.csv"):
            if path.is_file():
                return path
    raise InputError(f"{folder} holds no prices of {cloud}: there is neither {cloud}/vms.csv nor {cloud}.csv.")


def _downloaded(address: str) -> Fetched:
    try:
        with urllib.request.urlopen(address, timeout=_PATIENCE_S) as answer:
            text = answer.read(_MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise InfrastructureError(
            f"{address} answers {error.code} {error.reason}; the old prices stay. Give another place with --from."
        ) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise InfrastructureError(
            f"{address} cannot be reached ({why}); the old prices stay. Offline, import a file: lynceus prices import FILE."
        ) from None
    if len(text) > _MOST_BYTES:
        raise InputError(f"{address} sends more than {_MOST_BYTES >> 20} MiB; that is no catalog of machines.")
    return Fetched(text, address, time.time())
