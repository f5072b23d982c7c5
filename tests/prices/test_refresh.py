"""Newer prices from a real server or from SkyPilot's folder, and what happens when there are none."""

import http.server
import os
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from lynceus.errors import InfrastructureError, InputError
from lynceus.prices import refresh as refresh_module
from lynceus.prices.refresh import refresh
from lynceus.prices.store import PriceStore

CSV = "InstanceType,vCPUs,MemoryGiB,Price,SpotPrice,Region\nm,2,8,{price},0.1,here\n"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    folder = tmp_path / "served"
    (folder / "aws").mkdir(parents=True)
    (folder / "aws" / "vms.csv").write_text(CSV.format(price=0.5))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", folder
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def store(tmp_path: Path) -> PriceStore:
    store = PriceStore(tmp_path / "store")
    store.keep(CSV.format(price=0.4).encode(), "aws", "before", 1.0)
    return store


def price(store: PriceStore) -> float | None:
    kept = store.load("aws")
    assert kept is not None
    return kept.offers[0].usd_per_hour


def test_prices_from_a_url(served: tuple[str, Path], store: PriceStore) -> None:
    address, _ = served
    catalog = refresh(store, "aws", address + "/{cloud}/vms.csv")
    assert catalog.source == f"{address}/aws/vms.csv"
    assert catalog.age_days() < 1
    assert price(store) == 0.5


def test_a_wrong_address_and_a_dead_server_keep_the_stored_prices(served: tuple[str, Path], store: PriceStore) -> None:
    address, folder = served
    with pytest.raises(InfrastructureError, match=r"answers 404 .*the stored prices stay"):
        refresh(store, "gcp", address + "/{cloud}/vms.csv")
    (folder / "aws" / "vms.csv").write_text("<html>it moved</html>")
    with pytest.raises(InputError, match="lacks the column"):
        refresh(store, "aws", address + "/{cloud}/vms.csv")
    with pytest.raises(InfrastructureError, match=r"cannot be reached .*the stored prices stay"):
        refresh(store, "aws", "http://127.0.0.1:9/{cloud}.csv")
    assert price(store) == 0.4


def test_prices_from_the_newest_version_in_a_folder(tmp_path: Path, store: PriceStore) -> None:
    for version, usd in (("v5", 0.1), ("v10", 0.2), ("v9", 0.3)):
        path = tmp_path / "catalogs" / version / "aws" / "vms.csv"
        path.parent.mkdir(parents=True)
        path.write_text(CSV.format(price=usd))
        os.utime(path, (86400.0, 86400.0))
    catalog = refresh(store, "aws", str(tmp_path / "catalogs"))
    assert price(store) == 0.2
    assert catalog.date == "1970-01-02", "the modification time of the file"
    with pytest.raises(InputError, match="has no prices of gcp"):
        refresh(store, "gcp", str(tmp_path / "catalogs"))


def test_without_a_network_prices_come_from_an_installed_skypilot(
    tmp_path: Path, store: PriceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh_module, "PUBLIC", "http://127.0.0.1:9/{cloud}/vms.csv")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InfrastructureError, match=r"cannot be reached.*Offline, import a file"):
        refresh(store, "aws")
    assert price(store) == 0.4
    path = tmp_path / ".sky" / "catalogs" / "v7" / "aws" / "vms.csv"
    path.parent.mkdir(parents=True)
    path.write_text(CSV.format(price=0.6))
    assert refresh(store, "aws").source == str(path)
    assert price(store) == 0.6
