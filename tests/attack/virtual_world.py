"""Runs in virtual time: scripted jobs that end well, badly, late or not at all, and an account of what they really cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hypothesis import strategies as st

from attack.ledger import Billing, charge
from lynceus.errors import InfrastructureError, InputError
from lynceus.executors.interface import LostRunError, Request
from lynceus.trial.outcome import End, FailureReason, Outcome

if TYPE_CHECKING:
    from attack.puppets import Puppet

EPOCH_S = 1_700_000_000.0

Kind = Literal[
    "finishes",
    "job",
    "oom",
    "infra",
    "preempted",
    "silent",
    "refused",
    "unstartable",
    "lost",
    "garbage",
    "shy",
    "overruns",
]
"""`silent` reports no metric, `refused` and `unstartable` never start, `garbage` leaves files that make no sense, `shy` cannot be read
for a while, `overruns` is not stopped at its timeout."""


@dataclass(frozen=True)
class Script:
    """What a job does."""

    kind: Kind
    seconds: float


scripts = st.builds(
    Script,
    st.sampled_from(["finishes", "finishes", "finishes", *Kind.__args__]),  # type: ignore[attr-defined]
    st.sampled_from([0.25, 1.0, 3.0, 7.5, 20.0, 90.0]),
)


@dataclass
class Run:
    """One execution."""

    request: Request
    script: Script
    began_s: float
    cancelled_s: float | None = None
    lost_s: float | None = None

    @property
    def seconds(self) -> float:
        """How long it runs in the end, as far as that is known."""
        timeout_s = math.inf if self.script.kind == "overruns" else self.request.timeout_s
        stops = [self.script.seconds, timeout_s]
        stops += [moment - self.began_s for moment in (self.cancelled_s, self.lost_s) if moment is not None]
        return min(stops)

    @property
    def ended_s(self) -> float:
        return self.began_s + self.seconds


class World:
    """Virtual time, and everything that runs."""

    def __init__(self, deck: list[Script], price_usd_per_s: list[float], billing: Billing) -> None:
        self.now_s = EPOCH_S
        self.runs: dict[int, Run] = {}
        """Executions by the number of their trial."""
        self._deck, self._price, self._billing = deck, price_usd_per_s, billing

    def runs_now(self, number: int) -> bool:
        return number in self.runs and self.runs[number].ended_s > self.now_s

    def lose(self, number: int) -> None:
        """The machine of a run vanishes with everything on it."""
        if self.runs_now(number):
            self.runs[number].lost_s = self.now_s

    def cost(self, number: int, seconds: float) -> float:
        request = self.runs[number].request
        return charge(self._billing, seconds, self._price[request.row], boots=request.boots)

    # The executor

    def launch(self, request: Request) -> str:
        script = self._deck[request.number % len(self._deck)]
        if request.number not in self.runs:
            if script.kind == "refused":
                raise InputError("this request can never run")
            if script.kind == "unstartable":
                raise InfrastructureError("no machine answers")
            self.runs[request.number] = Run(request, script, self.now_s)
        return f"{request.identity}/{request.number}"

    def collect(self, ticket: str) -> Outcome | None:
        number = int(ticket.rpartition("/")[2])
        if number not in self.runs:
            raise LostRunError(f"there is no run {number}")
        run = self.runs[number]
        if run.lost_s is not None:
            raise LostRunError(f"the machine of run {number} is gone")
        if run.script.kind == "shy" and self.now_s < run.began_s + min(run.seconds, 5.0):
            raise OSError("too many open files")
        if run.ended_s > self.now_s:
            return None
        if run.script.kind == "garbage" and run.cancelled_s is None:
            raise ValueError("the outcome is not JSON")
        if run.script.kind == "lost" and run.cancelled_s is None:
            raise LostRunError(f"nothing is left of run {number}")
        return self._outcome(number, run)

    def cancel(self, ticket: str) -> None:
        number = int(ticket.rpartition("/")[2])
        if self.runs_now(number) and self.runs[number].cancelled_s is None:
            self.runs[number].cancelled_s = self.now_s

    def _outcome(self, number: int, run: Run) -> Outcome:
        seconds, usd = run.seconds, self.cost(number, run.seconds)
        if run.cancelled_s is not None and run.began_s + seconds >= run.cancelled_s:
            return Outcome.failed(FailureReason.USER, "cancelled", seconds=seconds, charged_usd=usd)
        if seconds >= run.request.timeout_s:
            return Outcome(End.TIMEOUT, seconds, usd, trace=((seconds, 0.5),))
        if run.script.kind in ("job", "oom", "infra", "preempted"):
            reason = FailureReason(run.script.kind)
            return Outcome.failed(reason, f"{reason} failure", seconds=seconds, charged_usd=usd)
        if run.script.kind == "silent":
            return Outcome.failed(FailureReason.JOB, "reported nothing", seconds=seconds, charged_usd=usd)
        return Outcome(End.FINISHED, seconds, usd, {"loss": float(run.request.row)})


class WorldClock:
    """The clock of one worker, which may be wrong. To sleep is to stand still."""

    def __init__(self, world: World, puppet: Puppet) -> None:
        self._world, self._puppet = world, puppet

    def now(self) -> float:
        return self._world.now_s + self._puppet.clock_offset_s

    def sleep(self, seconds: float) -> None:
        self._puppet.pause()
