"""Processes that work side by side, one thread each; they end with their parent, and Ctrl-C does no harm."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from types import FrameType
from typing import Any, ParamSpec, TypeVar

_POLL_S = 0.2
"""How long Ctrl-C may wait for an answer."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Pool:
    """Give it work and ask what has ended."""

    executor: ProcessPoolExecutor
    interrupted: Callable[[], bool]

    def submit(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> Future[T]:
        """Work for one of the processes; they are started with the first."""
        with _blocked_interrupts():
            return self.executor.submit(work, *given, **named)

    def ended(self, running: Collection[Future[T]]) -> set[Future[T]]:
        """Wait until some of them are done, and return these. Here, and nowhere else, Ctrl-C is raised."""
        while True:
            done = wait(running, _POLL_S, FIRST_COMPLETED).done
            if self.interrupted():
                raise KeyboardInterrupt
            if done:
                return done


@contextlib.contextmanager
def pool_of(workers: int, begin: Callable[..., None] | None = None, *given: Any) -> Iterator[Pool]:
    """A pool for a while; every process calls `begin` first. Nobody waits for work that is under way when an error leaves it."""
    before = set(multiprocessing.active_children())
    with one_thread_each(), _noted_interrupts() as interrupted:
        executor = ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), initializer=_begun, initargs=(begin, given)
        )
        try:
            yield Pool(executor, interrupted)
        except BaseException:
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
            raise
        finally:
            # Waited for: at the end of the program Python would wake a pool that is closing, and complain about its closed pipe.
            executor.shutdown(wait=True, cancel_futures=True)


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


@contextlib.contextmanager
def _noted_interrupts() -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C was pressed. An exception in the middle of the pool's own code would leave its locks taken, for ever."""
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:  # twice: whoever waits has lost patience
            signal.default_int_handler(number, frame)
        pressed = True

    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield lambda: pressed
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if pressed:
        raise KeyboardInterrupt


@contextlib.contextmanager
def _blocked_interrupts() -> Iterator[None]:
    """Processes that are started meanwhile hear of Ctrl-C when they are ready for it: see `_begun`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begun(begin: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    """Bind a worker to its parent: Ctrl-C ends it at once, the parent speaks for it; and it does not outlive a parent that is killed."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_follow, daemon=True).start()
    if begin is not None:
        begin(*given)


def _follow() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)
