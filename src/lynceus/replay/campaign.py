"""Many replays: every policy with every seed, in one or several processes, with the same result."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from lynceus.errors import InfrastructureError, InputError
from lynceus.executors.table import MeasuredNoise
from lynceus.policy.policy import Policy
from lynceus.replay.job import ReplayJob
from lynceus.replay.process_pool import process_pool
from lynceus.replay.run import Replay, Until, replay

_AHEAD = 8
"""Replays queued per process: enough to keep all of them busy, few enough that Ctrl-C discards little."""


@dataclass(frozen=True)
class Campaign:
    """The replays to run: policies × seeds on one job."""

    job: ReplayJob
    policies: tuple[Policy, ...]
    seeds: int
    """Number of seeds, from `first_seed` on."""
    until: Until = "optimum"
    parallel: int = 1
    """Trials that run at the same time."""
    first_seed: int = 0
    noise: MeasuredNoise = "none"
    """`measured`: every run takes one of the times that were measured of its row."""

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise InputError(f"seeds: got {self.seeds}; replay at least 1.")
        if self.parallel < 1:
            raise InputError(f"parallel: got {self.parallel}; run at least 1 trial at a time.")
        names = [policy.name for policy in self.policies]
        twice = [name for place, name in enumerate(names) if name in names[:place]]
        if twice:
            raise InputError(f"policy: {twice[0]!r} was given twice; name each policy once.")

    @property
    def size(self) -> int:
        """The number of replays."""
        return len(self.policies) * self.seeds

    def replay(self, number: int) -> Replay:
        """Run the replay with this number; all seeds of the first policy come first."""
        policy, seed = divmod(number, self.seeds)
        return replay(
            self.job,
            self.policies[policy],
            self.first_seed + seed,
            until=self.until,
            parallel=self.parallel,
            noise=self.noise,
        )


Progress = Callable[[Replay], None]
"""Called with every replay as it ends, in any order."""


def run_campaign(campaign: Campaign, workers: int = 1, progress: Progress | None = None) -> list[Replay]:
    """All replays, ordered by policy and seed for any number of workers."""
    if workers < 1:
        raise InputError(f"workers: got {workers}; give at least 1 process.")
    if workers == 1 or campaign.size == 1:
        done = []
        for number in range(campaign.size):
            done.append(campaign.replay(number))
            if progress is not None:
                progress(done[-1])
        return done
    return _in_processes(campaign, min(workers, campaign.size), progress)


def _in_processes(campaign: Campaign, workers: int, progress: Progress | None) -> list[Replay]:
    done: dict[int, Replay] = {}
    running: dict[Future[Replay], int] = {}
    remaining = iter(range(campaign.size))
    try:
        with process_pool(workers, _set_campaign, campaign) as pool:
            while len(done) < campaign.size:
                for number in itertools.islice(remaining, _AHEAD * workers - len(running)):
                    running[pool.submit(_replay, number)] = number
                for future in pool.finished(running):
                    finished = done[running.pop(future)] = future.result()
                    if progress is not None:
                        progress(finished)
    except BrokenProcessPool:
        raise InfrastructureError(
            "replay: a worker process died (out of memory, or killed); try again with fewer --workers."
        ) from None
    return [done[number] for number in range(campaign.size)]


_campaign: Campaign | None = None
"""The campaign of this worker process, set once before its first replay."""


def _set_campaign(campaign: Campaign) -> None:
    global _campaign
    _campaign = campaign


def _replay(number: int) -> Replay:
    if _campaign is None:
        raise RuntimeError("the worker process has no campaign")
    return _campaign.replay(number)


def traced(campaign: Campaign, replays: Sequence[Replay]) -> Iterator[dict[str, object]]:
    """One record per trial, for JSON lines; an infinite CNO is null."""
    for done in replays:
        for number, step in enumerate(done.steps, start=1):
            yield {
                "job": campaign.job.name,
                "policy": done.policy,
                "seed": done.seed,
                "step": number,
                "params": dict(step.params),
                "state": step.state,
                "charged_usd": step.charged_usd,
                "spent_usd": step.spent_usd,
                "cno": None if step.cno == float("inf") else step.cno,
                "decision_s": step.decision_s,
            }
