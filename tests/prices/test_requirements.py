"""Requirements select machines; an error names the condition that no machine meets."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.prices.offer import Catalog, Offer
from lynceus.prices.requirements import Infra, Range, Requirements, parse_accelerator


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


def names(required: Requirements, *spots: bool) -> list[tuple[str, str]]:
    return [(one.infra, one.instance_type) for one in required.select(KNOWN, spots or (False,))]


def test_conditions_select_machines() -> None:
    here = Infra("aws", "r1")
    assert names(Requirements((here,), cpus=Range(4, math.inf), memory=Range(32, math.inf))) == [
        ("aws/r1", "g.large"),
        ("aws/r1", "m.large"),
    ]
    assert names(Requirements((here,), ("m.*",))) == [("aws/r1", "m.small"), ("aws/r1", "m.large")]
    assert names(Requirements((here,), accelerators=(("t4", 1.0),))) == [("aws/r1", "g.large")]
    assert names(Requirements((Infra(),), cpus=Range(4, 4))) == [("gcp/c1", "n-4")]


def test_several_infras_are_alternatives_in_their_order() -> None:
    required = Requirements((Infra("gcp"), Infra("aws", "r2"), Infra("aws")), cpus=Range(4, 8))
    assert [infra for infra, _ in names(required)][:2] == ["gcp/c1", "aws/r2"]
    assert len(names(required)) == len(set(names(required))) == 5


def test_a_zone_has_its_own_prices() -> None:
    (one,) = Requirements((Infra.parse("aws/r1/z2"),)).select(KNOWN, (True,))
    assert (one.infra, one.price(True)) == ("aws/r1/z2", 0.06)


def test_machines_without_the_required_price_are_left_out() -> None:
    required = Requirements((Infra("aws"),), ("m.large",))
    assert len(names(required)) == 2
    assert names(required, True) == [("aws/r1", "m.large")]
    with pytest.raises(InputError, match=r"have no spot price for 'm.large'"):
        names(Requirements((Infra("aws", "r2"),), ("m.large",)), True)


@pytest.mark.parametrize(
    ("required", "said"),
    [
        (Requirements((Infra("awz"),)), r"infra: .*'awz'. Did you mean 'aws'"),
        (Requirements((Infra("oracle"),)), r"infra: .*Known are aws, gcp.*prices import"),
        (Requirements((Infra("aws", "r9"),)), r"infra: there are no prices for the region 'r9'"),
        (
            Requirements((Infra("aws", "r1", "z9"),)),
            r"infra: there are no prices for the zone 'z9'. Known are 'z1', 'z2'",
        ),
        (Requirements((Infra("gcp", "c1", "z1"),)), r"lists no zones"),
        (
            Requirements(instance_types=("m.lage",)),
            r"instance_type: 'm.lage' matches none of the 6.*Did you mean 'm.large'",
        ),
        (Requirements((Infra("gcp"),), accelerators=(("A100", 1.0),)), r"accelerators: A100:1 .*None of them has"),
        (Requirements(accelerators=(("A100", 1.0),)), r"They have 'T4:1'"),
        (
            Requirements(cpus=Range(16, math.inf)),
            r"cpus: 16\+ matches none of the 6 remaining machines. They have 2, 4, 8",
        ),
        (Requirements(cpus=Range(8, 8), memory=Range(64, 128)), r"memory: 64-128 .* They have 16, 32 GiB"),
    ],
)
def test_the_condition_that_no_machine_meets_is_named(required: Requirements, said: str) -> None:
    with pytest.raises(InputError, match=said):
        required.select(KNOWN)


@given(st.integers(1, 512), st.integers(0, 512))
def test_ranges_round_trip(low: int, more: int) -> None:
    for interval in (Range(low, low), Range(low, math.inf), Range(low, low + more)):
        assert Range.parse(str(interval), "cpus") == interval
        assert low in interval
        assert low - 0.5 not in interval


@pytest.mark.parametrize("odd", ["", "+", "four", "4++", "-4", "8-4", "0+", True, None, "4 8"])
def test_invalid_ranges_are_refused(odd: object) -> None:
    with pytest.raises(InputError):
        Range.parse(odd, "cpus")


def test_memory_may_have_a_unit() -> None:
    assert Range.parse("16GB+", "memory") == Range.parse("16+", "memory") == Range(16, math.inf)
    with pytest.raises(InputError):
        Range.parse("16GB+", "cpus")


@pytest.mark.parametrize("text", ["aws", "aws/us-east-1", "aws/us-east-1/use1-az1", "*/us-east-1", "*"])
def test_infras_round_trip(text: str) -> None:
    assert str(Infra.parse(text)) == text


@pytest.mark.parametrize("odd", ["", "aws/", "a/b/c/d", 3, "k8s/here", "slurm"])
def test_invalid_infras_are_refused(odd: object) -> None:
    with pytest.raises(InputError):
        Infra.parse(odd)


@pytest.mark.parametrize("odd", [":2", "T4:0", "T4:x", "T4:-1", "T4:inf", 4])
def test_invalid_accelerators_are_refused(odd: object) -> None:
    with pytest.raises(InputError, match="such as T4:1"):
        parse_accelerator(odd)
