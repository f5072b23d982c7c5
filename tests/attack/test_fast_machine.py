"""The machine in virtual time, on every storage."""

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from attack.campaign import Campaign, steps
from attack.fast_machine import FastMachine

pytestmark = pytest.mark.filterwarnings("ignore::lynceus.errors.OverrunWarning")


def test_a_few_studies(fast_machine: type[FastMachine]) -> None:
    few = 10 if fast_machine.url is None else 2
    run_state_machine_as_test(fast_machine, settings=settings(max_examples=few, stateful_step_count=30))


@pytest.mark.slow
def test_thousands_of_steps(fast_machine: type[FastMachine]) -> None:
    campaign = Campaign(fast_machine, examples=25, steps=40)
    campaign.run(steps(2000))
    print(f"{campaign.made} steps without a finding")
