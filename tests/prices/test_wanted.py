"""Which machines are wanted, and which condition took the last one away."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.prices import Amount, Catalog, Offer, Place, Wanted
from lynceus.prices.wanted import accelerator_of


def offer(name: str, cpus: float, memory: float, region: str = "r1", cloud: str = "aws", **more: object) -> Offer:
    values = {"usd_per_hour": 0.1 * cpus, "spot_usd_per_hour": 0.03 * cpus, **more}
    return Offer(cloud, region, name, cpus, memory, **values)  # type: ignore[arg-type]


KNOWN = {
    "aws": Catalog(
        "aws",
        (
            offer("m.small", 2, 8, zones=(("z1", 0.2, 0.05), ("z2", 0.2, 0.06))),
            offer("m.large", 8, 32),
            offer("c.large", 8, 16),
            offer("g.large", 8, 32, accelerator="T4", accelerators=1.0),
            offer("m.large", 8, 32, region="r2", spot_usd_per_hour=None),
        ),
        "test",
        0.0,
    ),
    "gcp": Catalog("gcp", (offer("n-4", 4, 16, cloud="gcp", region="c1"),), "test", 0.0),
}


def names(wanted: Wanted, *spots: bool) -> list[tuple[str, str]]:
    return [(one.infra, one.instance_type) for one in wanted.offers(KNOWN, spots or (False,))]


def test_conditions_narrow_the_choice() -> None:
    here = Place("aws", "r1")
    assert names(Wanted((here,), cpus=Amount(4, math.inf), memory=Amount(32, math.inf))) == [
        ("aws/r1", "g.large"),
        ("aws/r1", "m.large"),
    ]
    assert names(Wanted((here,), ("m.*",))) == [("aws/r1", "m.small"), ("aws/r1", "m.large")]
    assert names(Wanted((here,), accelerators=(("t4", 1.0),))) == [("aws/r1", "g.large")]
    assert names(Wanted((Place(),), cpus=Amount(4, 4))) == [("gcp/c1", "n-4")]


def test_several_places_are_alternatives_in_their_order() -> None:
    wanted = Wanted((Place("gcp"), Place("aws", "r2"), Place("aws")), cpus=Amount(4, 8))
    assert [infra for infra, _ in names(wanted)][:2] == ["gcp/c1", "aws/r2"]
    assert len(names(wanted)) == len(set(names(wanted))) == 5


def test_a_zone_has_its_own_prices() -> None:
    (one,) = Wanted((Place.parse("aws/r1/z2"),)).offers(KNOWN, (True,))
    assert (one.infra, one.price(True)) == ("aws/r1/z2", 0.06)


def test_machines_without_the_price_that_is_asked_for_are_left_out() -> None:
    wanted = Wanted((Place("aws"),), ("m.large",))
    assert len(names(wanted)) == 2
    assert names(wanted, True) == [("aws/r1", "m.large")]
    with pytest.raises(InputError, match=r"know no spot price for 'm.large'"):
        names(Wanted((Place("aws", "r2"),), ("m.large",)), True)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted((Place("awz"),)), r"infra: .*'awz'. Did you mean 'aws'"),
        (Wanted((Place("oracle"),)), r"infra: .*Known are aws, gcp.*prices import"),
        (Wanted((Place("aws", "r9"),)), r"infra: there are no prices of the region 'r9'"),
        (Wanted((Place("aws", "r1", "z9"),)), r"infra: there are no prices of the zone 'z9'. Known are 'z1', 'z2'"),
        (Wanted((Place("gcp", "c1", "z1"),)), r"knows no zones"),
        (Wanted(instance_types=("m.lage",)), r"instance_type: 'm.lage' matches none of the 6.*Did you mean 'm.large'"),
        (Wanted((Place("gcp"),), accelerators=(("A100", 1.0),)), r"accelerators: A100:1 .*None of them has"),
        (Wanted(accelerators=(("A100", 1.0),)), r"They have 'T4:1'"),
        (
            Wanted(cpus=Amount(16, math.inf)),
            r"cpus: 16\+ matches none of the 6 machines that are left. They have 2, 4, 8",
        ),
        (Wanted(cpus=Amount(8, 8), memory=Amount(64, 128)), r"memory: 64-128 .* They have 16, 32 GiB"),
    ],
)
def test_the_condition_that_leaves_nothing_is_named(wanted: Wanted, said: str) -> None:
    with pytest.raises(InputError, match=said):
        wanted.offers(KNOWN)


@given(st.integers(1, 512), st.integers(0, 512))
def test_amounts_read_back_as_they_are_written(least: int, more: int) -> None:
    for amount in (Amount(least, least), Amount(least, math.inf), Amount(least, least + more)):
        assert Amount.parse(str(amount), "cpus") == amount
        assert amount.holds(least)
        assert not amount.holds(least - 0.5)


@pytest.mark.parametrize("odd", ["", "+", "four", "4++", "-4", "8-4", "0+", True, None, "4 8"])
def test_odd_amounts_are_refused(odd: object) -> None:
    with pytest.raises(InputError):
        Amount.parse(odd, "cpus")


def test_memory_may_name_its_unit() -> None:
    assert Amount.parse("16GB+", "memory") == Amount.parse("16+", "memory") == Amount(16, math.inf)
    with pytest.raises(InputError):
        Amount.parse("16GB+", "cpus")


@pytest.mark.parametrize("text", ["aws", "aws/us-east-1", "aws/us-east-1/use1-az1", "*/us-east-1", "*"])
def test_places_read_back_as_they_are_written(text: str) -> None:
    assert str(Place.parse(text)) == text


@pytest.mark.parametrize("odd", ["", "aws/", "a/b/c/d", 3, "k8s/here", "slurm"])
def test_odd_places_are_refused(odd: object) -> None:
    with pytest.raises(InputError):
        Place.parse(odd)


@pytest.mark.parametrize("odd", [":2", "T4:0", "T4:x", "T4:-1", "T4:inf", 4])
def test_odd_accelerators_are_refused(odd: object) -> None:
    with pytest.raises(InputError, match="such as T4:1"):
        accelerator_of(odd)
