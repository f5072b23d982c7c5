"""How long a campaign is, and one campaign of a state machine: seeds are printed, each can be run again alone."""

import os

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

STEPS = "LYNCEUS_ATTACK_STEPS"
SEED = "LYNCEUS_ATTACK_SEED"
MINUTES = "LYNCEUS_ATTACK_MINUTES"


def steps(default: int) -> int:
    """Steps of a long campaign."""
    return int(os.environ.get(STEPS, default))


def minutes() -> float:
    """Minutes of a long fuzzing."""
    return float(os.environ.get(MINUTES, 10))


class Campaign:
    """Runs a machine with one seed after another until it made so many steps. `SEED` in the environment runs one seed alone."""

    def __init__(
        self, machine: type[RuleBasedStateMachine], *, examples: int, steps: int, shrinks: bool = True
    ) -> None:
        """Each seed runs `examples` studies of at most `steps` steps. Real processes are too slow, and too moody, to shrink a failure."""
        self._machine, self._examples, self._steps = machine, examples, steps
        self._phases = [Phase.reuse, Phase.generate, *([Phase.shrink] if shrinks else [])]
        self.made = 0
        """Steps so far."""

    def run(self, total: int) -> None:
        chosen, number = os.environ.get(SEED), 1
        while self.made < total:
            self.run_seed(int(chosen) if chosen else number)
            number += 1
            if chosen:
                return

    def run_seed(self, number: int) -> None:
        campaign = self

        class Counted(self._machine):  # type: ignore[misc, name-defined]
            def teardown(self) -> None:
                campaign.made += getattr(self, "steps", 0)
                super().teardown()

        Counted.__name__ = self._machine.__name__
        print(f"{self._machine.__name__}: seed {number}, {self.made} steps so far", flush=True)
        limits = settings(
            max_examples=self._examples,
            stateful_step_count=self._steps,
            deadline=None,
            derandomize=False,
            print_blob=True,
            phases=self._phases,
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(seed(number)(Counted), settings=limits)
