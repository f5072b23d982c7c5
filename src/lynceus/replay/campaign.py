"""Many replays: every policy with every seed, in one process or in several, with the same result."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from lynceus.errors import InfrastructureError, InputError
from lynceus.policy import Policy
from lynceus.replay.job import ReplayJob
from lynceus.replay.run import Replay, Until, replay


@dataclass(frozen=True)
class Campaign:
    """What is replayed."""

    job: ReplayJob
    policies: tuple[Policy, ...]
    seeds: int
    """Seeds 0 to this number, exclusive."""
    until: Until = "optimum"
    parallel: int = 1
    """Trials under way at the same time."""
    first_seed: int = 0

    def __post_init__(self) -> None:
        if self.seeds < 1:
            raise InputError(f"seeds: {self.seeds} came; replay at least 1.")
        if self.parallel < 1:
            raise InputError(f"parallel: {self.parallel} came; at least 1 trial must be under way.")
        names = [policy.name for policy in self.policies]
        twice = [name for place, name in enumerate(names) if name in names[:place]]
        if twice:
            raise InputError(f"policy: {twice[0]!r} was given twice; name each policy once.")

    @property
    def size(self) -> int:
        """How many replays there are."""
        return len(self.policies) * self.seeds

    def replay(self, number: int) -> Replay:
        """The replay with this number: seeds of the first policy first."""
        policy, seed = divmod(number, self.seeds)
        return replay(self.job, self.policies[policy], self.first_seed + seed, until=self.until, parallel=self.parallel)


Progress = Callable[[Replay], None]
"""Called with every replay that is done, in whatever order they end."""


def run_campaign(campaign: Campaign, workers: int = 1, progress: Progress | None = None) -> list[Replay]:
    """All replays, ordered by policy and seed whatever the number of workers."""
    if workers < 1:
        raise InputError(f"workers: {workers} came; give at least 1 process.")
    if workers == 1 or campaign.size == 1:
        done = []
        for number in range(campaign.size):
            done.append(campaign.replay(number))
            if progress is not None:
                progress(done[-1])
        return done
    return _in_processes(campaign, min(workers, campaign.size), progress)


def _in_processes(campaign: Campaign, workers: int, progress: Progress | None) -> list[Replay]:
    before = set(multiprocessing.active_children())
    with one_thread_each():
        pool = ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), initializer=_adopt, initargs=(campaign,)
        )
        try:
            futures = [pool.submit(_replay, number) for number in range(campaign.size)]
            if progress is not None:
                for future in futures:
                    future.add_done_callback(_reporter(progress))
            return [future.result() for future in futures]
        except BrokenProcessPool:
            raise InfrastructureError(
                "replay: a worker process died (out of memory, or killed); try again with fewer --workers."
            ) from None
        except BaseException:
            # Waiting for replays that nobody wants would make Ctrl-C look ignored.
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
            raise
        finally:
            pool.shutdown(cancel_futures=True)


def _reporter(progress: Progress) -> Callable[[Future[Replay]], None]:
    def report(future: Future[Replay]) -> None:
        if not future.cancelled() and future.exception() is None:
            progress(future.result())

    return report


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    """Workers inherit one thread per library, because several processes with several threads each fight for the cores."""
    names = ("LYNCEUS_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    added = [name for name in names if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


def end_with_parent() -> None:
    """Bind a worker to its parent: Ctrl-C ends it at once, the parent speaks for it; and it does not outlive a parent that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


_campaign: Campaign | None = None
"""The campaign of this worker process; set once, before its first replay."""


def _adopt(campaign: Campaign) -> None:
    global _campaign
    _campaign = campaign
    end_with_parent()


def _replay(number: int) -> Replay:
    if _campaign is None:
        raise RuntimeError("a worker was asked for a replay before it was given a campaign")
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
