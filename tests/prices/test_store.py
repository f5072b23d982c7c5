"""Imported catalogs: stored completely or not at all, in place of the embedded ones."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lynceus.errors import InputError
from lynceus.prices.offer import STALE_DAYS
from lynceus.prices.store import PriceStore, catalog_of, catalogs, day_s, embedded, home

HEAD = "InstanceType,vCPUs,MemoryGiB,Price,SpotPrice,Region\n"


def csv(price: float) -> bytes:
    return f"{HEAD}m,2,8,{price},0.1,here\n".encode()


@pytest.mark.parametrize(
    ("cloud", "name", "usd", "spot"),
    [
        ("aws", "m5.xlarge", 0.192, 0.096),  # spot: an estimate
        ("gcp", "n2-standard-4", 0.194236, 0.054304),
        ("azure", "Standard_D4s_v5", 0.192, None),
    ],
)
def test_the_embedded_catalog_has_common_machines_with_source_and_date(
    cloud: str, name: str, usd: float, spot: float | None
) -> None:
    catalog = embedded(cloud)
    assert catalog is not None
    offer = next(one for one in catalog.offers if one.instance_type == name)
    assert (offer.vcpus, offer.memory_gib, offer.usd_per_hour, offer.spot_usd_per_hour) == (4, 16, usd, spot)
    assert catalog.source.startswith("embedded: ")
    assert time.time() >= catalog.as_of_s > day_s("2023-01-01")
    for one in catalog.offers:
        assert one.usd_per_hour is not None
        assert 0.005 < one.usd_per_hour / one.vcpus < 1.0
        assert one.spot_usd_per_hour is None or one.spot_usd_per_hour < one.usd_per_hour
    assert any(one.accelerators for one in catalog.offers)


def test_other_clouds_have_no_embedded_catalog() -> None:
    assert embedded("oracle") is None


def test_prices_of_google_machines_include_their_accelerators() -> None:
    catalog = embedded("gcp")
    assert catalog is not None
    known = {one.instance_type: one for one in catalog.offers}
    for name, gpus, usd, spot in (
        ("g2-standard-4", ("L4", 1), 0.706832, 0.281836),
        ("g2-standard-24", ("L4", 2), 2.000833, 0.798616),
        ("a2-highgpu-1g", ("A100", 1), 3.673385, 1.80385),
        ("a2-highgpu-2g", ("A100", 2), 7.34677, 3.6077),
    ):
        offer = known[name]
        assert (offer.accelerator, offer.accelerators) == gpus
        assert (offer.usd_per_hour, offer.spot_usd_per_hour) == (pytest.approx(usd), pytest.approx(spot))


def test_estimated_spot_prices_give_a_warning() -> None:
    said = {cloud: catalog.spot_warning() for cloud in ("aws", "gcp", "azure") if (catalog := embedded(cloud))}
    assert said["gcp"] is None
    assert said["azure"] is None
    assert said["aws"] is not None
    assert "the spot prices of aws are estimates, half of the price on demand" in said["aws"]
    assert "lynceus prices refresh" in said["aws"]


def test_imported_prices_replace_embedded_ones_cloud_by_cloud(tmp_path: Path) -> None:
    store = PriceStore(tmp_path)
    store.keep(csv(0.5), "aws", "mine.csv", day_s("2026-01-02"))
    store.keep(csv(0.7), "oracle", "theirs.csv", day_s("2026-01-03"))
    known = catalogs(store)
    assert [one.instance_type for one in known["aws"].offers] == ["m"]
    assert (known["aws"].source, known["aws"].date) == ("mine.csv", "2026-01-02")
    assert known["gcp"].source.startswith("embedded")
    assert known["oracle"].offers[0].infra == "oracle/here"
    assert catalog_of("unknown", store) is None


def test_a_newer_catalog_replaces_the_older_one_and_its_files(tmp_path: Path) -> None:
    store = PriceStore(tmp_path)
    for price in (0.1, 0.2, 0.3):
        store.keep(csv(price), "aws", "a", 0.0)
    kept = store.load("aws")
    assert kept is not None
    assert kept.offers[0].usd_per_hour == 0.3
    assert sorted(one.suffix for one in tmp_path.iterdir()) == [".csv", ".json"]


def test_an_invalid_catalog_changes_nothing(tmp_path: Path) -> None:
    store = PriceStore(tmp_path)
    store.keep(csv(0.2), "aws", "good.csv", 0.0)
    before = {one.name: one.read_bytes() for one in tmp_path.iterdir()}
    with pytest.raises(InputError, match=r"bad\.csv, line 2: Price is 'x'"):
        store.keep(HEAD.encode() + b"m,2,8,x,0.1,here\n", "aws", "bad.csv", 0.0)
    assert {one.name: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_a_kill_during_an_import_leaves_the_old_prices_or_the_new_ones(tmp_path: Path) -> None:
    """A process that imports in a loop is killed at arbitrary moments; the catalog is always complete."""
    script = (
        "import sys, itertools\n"
        "from lynceus.prices import PriceStore\n"
        "store = PriceStore(sys.argv[1])\n"
        "for i in itertools.count(1):\n"
        "    rows = ''.join(f'm{j},2,8,{i},{i},here\\n' for j in range(40))\n"
        f"    store.keep(({HEAD!r} + rows).encode(), 'aws', f'import {{i}}', float(i))\n"
        "    print(i, flush=True)\n"
    )
    store, seen = PriceStore(tmp_path), 0.0
    for moment in range(4):
        process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        for _ in range(moment + 1):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        kept = store.load("aws")
        assert kept is not None
        assert len(kept.offers) == 40
        assert {one.usd_per_hour for one in kept.offers} == {kept.as_of_s}, "prices of one import, with its date"
        seen = max(seen, kept.as_of_s)
    assert seen >= 4


def test_the_message_for_a_broken_index_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "aws.json").write_text("{")
    with pytest.raises(InputError, match="remove the file, then import them again"):
        PriceStore(tmp_path).load("aws")
    (tmp_path / "aws.json").write_text('{"source": "a", "as_of_s": 1, "file": "gone.csv"}')
    with pytest.raises(InputError, match="cannot be read"):
        PriceStore(tmp_path).load("aws")


def test_old_prices_give_a_warning(tmp_path: Path) -> None:
    catalog = PriceStore(tmp_path).keep(csv(0.2), "aws", "old.csv", day_s("2026-01-01"))
    day = 86400.0
    assert catalog.warning(catalog.as_of_s + (STALE_DAYS - 1) * day) is None
    said = catalog.warning(catalog.as_of_s + 45 * day)
    assert said is not None
    assert "45 days old (old.csv, 2026-01-01)" in said
    assert "prices refresh" in said
    assert catalog.about(catalog.as_of_s + 45 * day) == "aws of 2026-01-01 (45 days old), old.csv"


def test_the_folder_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LYNCEUS_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert home() == tmp_path / "data" / "lynceus"
    monkeypatch.setenv("LYNCEUS_HOME", str(tmp_path / "own"))
    assert PriceStore().folder == tmp_path / "own" / "prices"
    monkeypatch.delenv("LYNCEUS_HOME")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert home() == Path("~/.local/share/lynceus").expanduser()


def test_days() -> None:
    assert time.gmtime(day_s("2026-11-15"))[:3] == (2026, 11, 15)
    with pytest.raises(InputError, match="write it like 2026-11-15"):
        day_s("yesterday")
