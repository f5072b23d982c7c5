"""The runs of a study, as executors and workers use them: order, launch, keep alive, settle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from lynceus.errors import InputError
from lynceus.policy.next_step import observe
from lynceus.policy.policy import Policy
from lynceus.policy.retries import RetryRules, with_retries
from lynceus.problem.problem import Problem
from lynceus.storage.journal import Journal
from lynceus.study.reported_rows import separated
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observation, Outcome, accounted
from lynceus.trial.present_input import present_runs
from lynceus.trial.record import OpenRun, RequestedState


class TakenOverError(InputError):
    """Another worker looks after a run by now: what this one says about it does not count."""

    see = "durability.md#leases"


class StudyRuns:
    """What workers do with the runs of one study."""

    def __init__(
        self,
        problem: Callable[[], Problem],
        policy: Policy,
        rules: RetryRules,
        journal: Journal,
        order: Callable[[int], Order | None],
    ) -> None:
        self._problem, self._policy, self._rules, self._journal, self._order = problem, policy, rules, journal, order

    def order(self, slots: int = 1) -> Order | None:
        """The next run; None when there is none now. `slots` is the number of runs that could start now."""
        return self._order(slots)

    def launched(self, number: int, ticket: str) -> bool:
        """The run was started; the ticket finds it again. False, and nothing changes, when another worker looks after it."""
        return self._journal.launched(number, ticket)

    def holds(self, number: int) -> bool:
        """Whether a run is open and no other worker took it over from us, as of the last read or write."""
        return any(run.order.number == number and not run.taken_over for run in self._journal.record.open_runs)

    def confirm(self, number: int) -> bool:
        """Whether a run is ours at this moment: asked right before it is started, which must not happen twice."""
        self._journal.heartbeat([number])
        return self.holds(number)

    def settle(self, order: Order, outcome: Outcome) -> Observation:
        """How a run ended. A run settles once: a second call returns what was written the first time.

        A run that went beyond its timeout counts as stopped, with its true time and charge. `TakenOverError`, and nothing changes, when
        another worker looks after the run by now.
        """
        return self.settle_all(order, outcome)[0]

    def settle_all(self, order: Order, outcome: Outcome) -> tuple[Observation, ...]:
        """The same; after the run itself come further rows that it measured, which are written down with it or not at all."""
        journal = self._journal
        with journal.exclusive():
            record = journal.record
            if all(run.order.number != order.number for run in record.open_runs):
                for seen in reversed(record.observations):
                    if seen.order.number == order.number:
                        return (seen,)
            observations = with_retries(record.observations, self._rules, record.resumed_at)
            problem = replace(self._problem(), input=order.input)
            own, further = separated(problem, order, accounted(order, outcome), record.started)
            observations = present_runs(problem, observations)
            observation = observe(problem, self._policy, observations, order, own)
            if not journal.settled(observation, problem.space.point(order.row)):
                raise TakenOverError(
                    f"trial {order.number} was taken over by another worker, which will tell how it went; nothing was changed."
                )
            shared = [observe(problem, self._policy, observations, each, told) for each, told in further]
            if shared:
                journal.imported(shared, [problem.space.point(seen.row) for seen in shared])
        return (observation, *shared)

    def heartbeat(self, numbers: Sequence[int]) -> RequestedState:
        """A worker still looks after these runs; returns what the user wants of the workers by now."""
        self._journal.heartbeat(numbers)
        return self._journal.record.requested_state

    def refresh(self) -> None:
        """Read what other workers have written since."""
        self._journal.refresh()

    def adopt(self) -> tuple[OpenRun, ...]:
        """Take over open runs that no worker looks after; returns them with those that are ours already."""
        return self._journal.adopt()

    def release(self) -> None:
        """Give up our open runs, so that another worker may take them over."""
        self._journal.release()
