"""Machine catalogs as tables."""

import os
from pathlib import Path

import pytest

from lynceus.errors import InputError
from lynceus.space.catalog import load_catalog
from lynceus.space.derived import Joined
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space

DATA = Path(os.environ.get("LYNCEUS_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,AvailabilityZone"
ROWS = [
    "tiny,,,1.0,0.5,0.01,0.004,north,n1",
    "tiny,,,1.0,0.5,0.01,0.003,north,n2",
    "tiny,,,1.0,0.5,0.02,,south,s1",
    "big,G1,2.0,16.0,64.0,2.0,,north,n1",
    ",G1,1.0,,,0.9,0.4,north,n1",
    "free,,,4.0,8.0,,0.1,north,n1",
]


@pytest.fixture
def catalog(tmp_path):
    path = tmp_path / "machines.csv"
    path.write_text("\n".join([HEADER, *ROWS]))
    return path


def test_a_region_becomes_a_table(catalog):
    assert load_catalog(catalog, "north") == {
        "instance_type": ["big", "tiny"],
        "vcpus": [16, 1],
        "memory_gib": [64.0, 0.5],
        "accelerators": [2.0, 0.0],
        "accelerator": ["G1", "none"],
        "price_usd_per_hour": [2.0, 0.01],
    }


def test_spot_takes_the_cheapest_zone_and_only_machines_with_such_a_price(catalog):
    table = load_catalog(catalog, "north", spot=True)
    assert dict(zip(table["instance_type"], table["price_usd_per_hour"], strict=True)) == {"free": 0.1, "tiny": 0.003}


def test_machines_have_the_requested_order(catalog):
    assert load_catalog(catalog, "north", ["tiny", "big", "tiny"])["instance_type"] == ["tiny", "big"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "has the regions 'north', 'south': say which"),
        ({"region": "nort"}, "Did you mean 'north'?"),
        ({"region": "east"}, "It has 'north', 'south'."),
        ({"region": "north", "instance_types": ["tinny"]}, "no machine 'tinny' in this region. Did you mean 'tiny'?"),
        ({"region": "south", "instance_types": ["big"]}, "no machine 'big' in this region. Other regions have it."),
        ({"region": "north", "instance_types": ["free"]}, "no such price for 'free'"),
        ({"region": "north", "instance_types": []}, "no machine with a price"),
        ({"region": "south", "spot": True}, "no machine with a price"),
    ],
)
def test_errors_in_the_choice(catalog, arguments, words):
    with pytest.raises(InputError) as caught:
        load_catalog(catalog, **arguments)
    assert words in str(caught.value)
    assert "machines.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "lacks the column 'InstanceType'"),
        (HEADER, "has no rows"),
        (HEADER.replace("Region", "Place") + "\n" + ROWS[0], "lacks the column 'Region'"),
        (HEADER + "\n" + ROWS[0].replace("0.01", "cheap"), "line 2: Price is 'cheap'"),
        (HEADER + "\n" + ROWS[0].replace("0.01", "-1"), "line 2: Price is '-1', but a number of at least 0"),
        (HEADER + "\n" + ROWS[0].replace("0.01", "0.0"), "no machine with a price"),
        (HEADER + "\n" + ROWS[0] + "\n" + ROWS[0].replace("1.0", "nan"), "line 3: vCPUs is 'nan'"),
    ],
)
def test_errors_in_the_file(tmp_path, text, words):
    path = tmp_path / "machines.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_catalog(path)
    assert words in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_catalog(tmp_path / "absent.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a CSV file in UTF-8"):
        load_catalog(tmp_path / "binary.csv")


def test_a_real_catalog_joins_a_space():
    path = DATA / "catalog" / "aws.csv"
    if not path.exists():
        pytest.skip("catalog/aws.csv is not here: set LYNCEUS_DATA to the folder of measured tables")
    names = ["m5.large", "m5.xlarge", "c5.2xlarge"]
    machines = load_catalog(path, "us-east-1", names)
    space = Space.build(
        [Categorical("vm_type", names), Integer("nodes", 1, 8)],
        derived=[Joined({"vm_type": "instance_type"}, machines, feature=["vcpus", "memory_gib"])],
        price="price_usd_per_hour * nodes",
    )
    assert len(space) == 24
    assert space.feature_names == ("vm_type", "nodes", "vcpus", "memory_gib")
    assert space.price_per_second[1] == pytest.approx(2 * space.price_per_second[0])
    assert len(load_catalog(path, "us-east-1")["instance_type"]) > 500
