"""SkyPilot's catalogs: zones are merged, missing prices stay unknown, Google's accelerators are added to their machines."""

from pathlib import Path

import pytest

from lynceus.errors import InputError
from lynceus.prices.catalog_file import cloud_name, guessed_cloud, read_offers

HEAD = "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Price,SpotPrice,Region,AvailabilityZone\n"


def written(folder: Path, *lines: str, name: str = "aws.csv") -> Path:
    path = folder / name
    path.write_text(HEAD + "".join(f"{line}\n" for line in lines))
    return path


def test_zones_of_a_region_are_one_offer_at_the_cheapest_prices(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "m5.large,2.0,8.0,,,,0.096,0.0462,us-east-1,use1-az1",
        "m5.large,2.0,8.0,,,,0.096,0.0430,us-east-1,use1-az2",
        "m5.large,2.0,8.0,,,,0.107,,eu-west-1,euw1-az1",
    )
    europe, america = read_offers(path, "aws")
    assert (europe.infra, europe.usd_per_hour, europe.spot_usd_per_hour) == ("aws/eu-west-1", 0.107, None)
    assert (america.infra, america.usd_per_hour, america.spot_usd_per_hour) == ("aws/us-east-1", 0.096, 0.043)
    zone = america.in_zone("use1-az1")
    assert zone is not None
    assert (zone.infra, zone.price(True), zone.price(False)) == ("aws/us-east-1/use1-az1", 0.0462, 0.096)
    assert america.in_zone("use1-az9") is None


def test_an_empty_or_zero_price_is_unknown(tmp_path: Path) -> None:
    path = written(tmp_path, "a,1,1,,,,0.0,0.0,here,", "b,1,1,,,,,,here,", "c,1,1,,,,0.1,0.0,here,")
    assert [(one.instance_type, one.usd_per_hour, one.spot_usd_per_hour) for one in read_offers(path, "x")] == [
        ("a", None, None),
        ("b", None, None),
        ("c", 0.1, None),
    ]


def test_google_bills_accelerators_separately(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "a2-highgpu-2g,24,170,,,,1.6,0.9,us-central1,us-central1-a",
        "g2-standard-24,24,96,,,,0.9,0.5,us-central1,us-central1-a",
        "a2-ultragpu-1g,12,170,,,,1.2,0.7,us-central1,us-central1-a",
        ",,,A100,2.0,,5.8,3.4,us-central1,us-central1-a",
        ",,,A100,1.0,,2.9,1.7,us-central1,us-central1-a",
        ",,,L4,2.0,,1.1,0.4,us-central1,us-central1-a",
        name="gcp.csv",
    )
    offers = {one.instance_type: one for one in read_offers(path, "gcp")}
    two = offers["a2-highgpu-2g"]
    assert (two.accelerator, two.accelerators, two.usd_per_hour, two.spot_usd_per_hour) == ("A100", 2, 7.4, 4.3)
    assert (offers["g2-standard-24"].accelerator, offers["g2-standard-24"].usd_per_hour) == ("L4", 2.0)
    # The machine has a price, its accelerators have none: the sum is unknown.
    assert offers["a2-ultragpu-1g"].usd_per_hour is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("m,two,8,,,,1,1,r,", "line 2: vCPUs is 'two'"),
        ("m,2,-8,,,,1,1,r,", "line 2: MemoryGiB is '-8'"),
        ("m,2,8,,,,cheap,1,r,", "line 2: Price is 'cheap'"),
        ("m,2,8,,,,1,inf,r,", "line 2: SpotPrice is 'inf'"),
        (",,,A100,1,,1,1,r,", "lists no machine"),
    ],
)
def test_an_invalid_line_is_named(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_offers(written(tmp_path, line), "aws")


def test_a_file_without_prices_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "aws.csv"
    path.write_text("name,price\nm,1\n")
    with pytest.raises(InputError, match="lacks the column 'InstanceType'"):
        read_offers(path, "aws")


def test_the_cloud_is_guessed_from_the_file_name() -> None:
    assert guessed_cloud(Path("/x/catalogs/v7/gcp/vms.csv")) == guessed_cloud(Path("GCP.csv")) == "gcp"
    with pytest.raises(InputError, match="add --cloud aws"):
        guessed_cloud(Path("/x/prices.csv"))
    assert cloud_name(" AWS ") == "aws"
    with pytest.raises(InputError, match="not the name of a cloud"):
        cloud_name("../etc")
