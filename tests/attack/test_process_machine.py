"""Real processes, on every storage that they can share."""

import signal
from typing import TYPE_CHECKING

import pytest

from attack.campaign import Campaign, steps
from attack.process_machine import FullDisks, PostgresProcesses, ProcessMachine, SqliteProcesses

if TYPE_CHECKING:
    from postgres import Server

pytestmark = pytest.mark.filterwarnings("ignore::lynceus.errors.OverrunWarning")


def test_one_story_on_sqlite() -> None:
    """A few steps that a campaign may take, always the same ones."""
    machine = SqliteProcesses()
    machine.readers = 0  # they all read at the end
    story = (
        lambda: machine.create(
            ["fifo for a result", "over the cap", "daemon", "odd metrics", "backtracking"], "random", 1
        ),
        lambda: machine.time_passes(0.3),
        lambda: machine.start_worker(2, -3600.0),
        lambda: machine.send_signal("supervisor", signal.SIGSTOP, 0),
        lambda: machine.send_signal("worker", signal.SIGKILL, 0),
        machine.ask,
        lambda: machine.tell(60.0, "nul\0"),
        machine.everyone_goes_on,
        lambda: machine.send_signal("supervisor", signal.SIGKILL, 0),
        lambda: machine.cancel_trial(0),
        lambda: machine.stop(True),
    )
    try:
        for step in story:
            step()
            machine.holds()
    finally:
        machine.teardown()


@pytest.mark.slow
@pytest.mark.parametrize("machine", [SqliteProcesses, PostgresProcesses, FullDisks])
def test_hundreds_of_steps(machine: type[ProcessMachine], request: pytest.FixtureRequest) -> None:
    if machine is PostgresProcesses:
        server: Server = request.getfixturevalue("postgres")
        machine = type("PostgresProcesses", (PostgresProcesses,), {"server": server})
    campaign = Campaign(machine, examples=5, steps=20, shrinks=False)
    campaign.run(steps(300))
    print(f"{campaign.made} steps without a finding")
