"""Billing: charges, their inverse, and which runs reuse machines."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.problem.billing import Billing, machine_groups
from lynceus.testing.job import small_job
from strategies import billings, dollars, prices, seconds


@pytest.mark.parametrize(
    ("billing", "ran", "boots", "billed_s", "fee"),
    [
        (Billing(), 61.5, True, 61.5, 0.0),
        (Billing(granularity_s=60), 61.5, True, 120.0, 0.0),
        (Billing(granularity_s=60), 120.0, True, 120.0, 0.0),
        (Billing(granularity_s=60), 0.1 * 3 * 400, True, 120.0, 0.0),
        (Billing(granularity_s=3600), 1.0, True, 3600.0, 0.0),
        (Billing(minimum_s=60), 10.0, True, 60.0, 0.0),
        (Billing(boot_s=45), 10.0, True, 55.0, 0.0),
        (Billing(boot_s=45), 10.0, False, 10.0, 0.0),
        (Billing(fee_usd=0.5), 10.0, True, 10.0, 0.5),
        (Billing(fee_usd=0.5), 10.0, False, 10.0, 0.0),
        (Billing(granularity_s=60, minimum_s=300, boot_s=45, fee_usd=0.5), 200.0, True, 300.0, 0.5),
        (Billing(granularity_s=60, minimum_s=300, boot_s=45, fee_usd=0.5), 290.0, True, 360.0, 0.5),
        (Billing(granularity_s=60, minimum_s=300, boot_s=45, fee_usd=0.5), 290.0, False, 300.0, 0.0),
    ],
)
def test_charges_by_hand(billing: Billing, ran: float, boots: bool, billed_s: float, fee: float) -> None:
    assert billing.charge(ran, 0.01, boots=boots) == pytest.approx(0.01 * billed_s + fee)
    assert float(billing.charges(np.array(ran), np.array(0.01), boots=boots)) == pytest.approx(0.01 * billed_s + fee)


@given(billings(), seconds, prices, st.booleans())
def test_the_scalar_and_the_array_agree(billing: Billing, ran: float, price: float, boots: bool) -> None:
    assert billing.charge(ran, price, boots=boots) == float(
        billing.charges(np.array(ran), np.array(price), boots=boots)
    )


@given(billings(), seconds, seconds, prices, st.booleans())
def test_longer_runs_never_cost_less(billing: Billing, one: float, other: float, price: float, boots: bool) -> None:
    short, long = sorted((one, other))
    assert billing.charge(short, price, boots=boots) <= billing.charge(long, price, boots=boots)
    assert billing.charge(short, price, boots=False) <= billing.charge(short, price, boots=True)


@given(billings(), dollars, prices, st.booleans())
def test_the_longest_run_for_an_amount_costs_at_most_that_amount(
    billing: Billing, usd: float, price: float, boots: bool
) -> None:
    longest = float(billing.seconds_for(np.array(usd), np.array(price), boots=boots))
    if longest == -math.inf:
        assert billing.charge(0.0, price, boots=boots) > usd * (1 - 1e-6), "the amount does not even cover the start"
        return
    assert longest >= 0
    assert billing.charge(longest, price, boots=boots) <= usd * (1 + 1e-6)
    assert billing.charge(longest * (1 + 1e-6) + 1.5 * max(billing.granularity_s, 1e-3), price, boots=boots) > usd, (
        "a longer run would have been covered too"
    )


@given(billings(), seconds, prices)
def test_charge_and_seconds_are_inverse_up_to_the_granularity(billing: Billing, ran: float, price: float) -> None:
    usd = billing.charge(ran, price)
    longest = float(billing.seconds_for(np.array(usd), np.array(price)))
    assert longest >= ran * (1 - 1e-6) - 1e-6


def test_an_infinite_amount_pays_for_infinite_time() -> None:
    for billing in (Billing(), Billing(granularity_s=60, minimum_s=60, boot_s=45, fee_usd=1.0)):
        assert float(billing.seconds_for(np.array(math.inf), np.array(0.1))) == math.inf


def test_boots_may_differ_by_row() -> None:
    billing = Billing(boot_s=100.0, fee_usd=1.0)
    both = billing.seconds_for(np.array([3.0, 3.0]), np.array([0.01, 0.01]), boots=np.array([True, False]))
    assert both == pytest.approx([100.0, 300.0])


@pytest.mark.parametrize("field", ["granularity_s", "minimum_s", "boot_s", "fee_usd"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_invalid_billing_is_an_error(field: str, value: float) -> None:
    with pytest.raises(InputError, match=f"billing: {field} is {value!r}; give a finite number of at least 0"):
        Billing(**{field: value})


def test_machines_are_numbered_by_the_warm_columns() -> None:
    problem = small_job(billing=Billing(boot_s=60.0, warm=("vm", "nodes"))).problem
    space, machines = problem.space, machine_groups(problem.space, problem.billing.warm)
    for one in range(len(space)):
        for other in range(len(space)):
            same = all(space.point(one)[name] == space.point(other)[name] for name in ("vm", "nodes"))
            assert (machines[one] == machines[other]) == same
    assert (machine_groups(space, ()) == -1).all()
