"""Fetch newer prices: from SkyPilot's public catalog, the folder of an installed SkyPilot, or another location."""

from __future__ import annotations

import http.client
import re
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from lynceus.errors import InfrastructureError, InputError
from lynceus.prices.catalog_file import guessed_cloud
from lynceus.prices.offer import Catalog
from lynceus.prices.store import PriceStore
from lynceus.space.user_file import read_file

PUBLIC = "https://raw.githubusercontent.com/skypilot-org/skypilot-catalog/master/catalogs/v7/{cloud}/vms.csv"
"""Where SkyPilot publishes its catalogs."""
_TIMEOUT_S = 30.0
_MAX_BYTES = 256 << 20
_VERSION = re.compile(r"v(\d+)")


@dataclass(frozen=True, slots=True)
class Fetched:
    """The bytes of a catalog file, where they came from, and the date of its prices."""

    text: bytes
    source: str
    as_of_s: float


def refresh(store: PriceStore, cloud: str, location: str | None = None) -> Catalog:
    """Fetch the prices of a cloud and store them. If they cannot be fetched or read, the stored prices stay.

    Without a `location`, the public catalog is tried first, then the folder of an installed SkyPilot.
    """
    fetched = fetch(location, cloud) if location is not None else _public_or_installed(cloud)
    return store.keep(fetched.text, cloud, fetched.source, fetched.as_of_s)


def fetch(location: str, cloud: str) -> Fetched:
    """A catalog file from a URL, a folder in SkyPilot's layout, or a file. `{cloud}` is replaced by the cloud."""
    named = location.replace("{cloud}", cloud)
    if named.startswith(("http://", "https://")):
        return _downloaded(named)
    path = Path(named).expanduser()
    if path.is_dir():
        path = _in_folder(path, cloud)
    return file_of(path)


def file_of(path: Path) -> Fetched:
    """A catalog file; its modification time is the date of its prices."""
    try:
        return Fetched(read_file(path, _MAX_BYTES), str(path), path.stat().st_mtime)
    except OSError as error:
        raise InputError(f"the catalog {path} cannot be read: {error.strerror}; give the path of a CSV file.") from None


def cloud_of(path: Path, given: str | None) -> str:
    """The cloud of a catalog file: as given, else from its name."""
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
    raise InputError(f"{folder} has no prices of {cloud}; expected {cloud}/vms.csv or {cloud}.csv in it.")


def _downloaded(address: str) -> Fetched:
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:
            text = answer.read(_MAX_BYTES + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise InfrastructureError(
            f"{address} answers {error.code} {error.reason}; the stored prices stay. Give another location with --from."
        ) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise InfrastructureError(
            f"{address} cannot be reached ({reason}); the stored prices stay. Offline, import a file: lynceus prices import FILE."
        ) from None
    if len(text) > _MAX_BYTES:
        raise InputError(
            f"{address} sends more than {_MAX_BYTES >> 20} MiB, which is too much for a catalog; give another location with --from."
        )
    return Fetched(text, address, time.time())
