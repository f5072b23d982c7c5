"""A pool of worker processes with one thread each; they end with their parent, and Ctrl-C always leaves a clean state.

`concurrent.futures` alone loses two of these: a worker outlives a parent that is killed, and a Ctrl-C that interrupts the pool's own
code leaves its locks taken.
"""

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
"""Longest time between Ctrl-C and the exception that it raises."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Pool:
    """Runs calls in worker processes."""

    executor: ProcessPoolExecutor
    interrupted: Callable[[], bool]

    def submit(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> Future[T]:
        """Run a call in one of the processes; the first call starts them."""
        with _interrupts_blocked():
            return self.executor.submit(work, *given, **named)

    def finished(self, running: Collection[Future[T]]) -> set[Future[T]]:
        """Wait until some of the calls are done, and return these. Only here is Ctrl-C raised."""
        while True:
            done = wait(running, _POLL_S, FIRST_COMPLETED).done
            if self.interrupted():
                raise KeyboardInterrupt
            if done:
                return done


@contextlib.contextmanager
def process_pool(workers: int, initializer: Callable[..., None] | None = None, *given: Any) -> Iterator[Pool]:
    """A pool for the duration of the context; every process calls `initializer` first. An exception ends running calls at once."""
    before = set(multiprocessing.active_children())
    with one_thread_each(), _interrupts_noted() as interrupted:
        executor = ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=(initializer, given)
        )
        try:
            yield Pool(executor, interrupted)
        except BaseException:
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
            raise
        finally:
            # Without waiting, Python would wake a closing pool when the program ends, and complain about its closed pipe.
            executor.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def one_thread_each() -> Iterator[None]:
    """Let child processes inherit one thread per library; several processes with several threads each compete for the cores."""
    names = ("LYNCEUS_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    added = [name for name in names if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


@contextlib.contextmanager
def _interrupts_noted() -> Iterator[Callable[[], bool]]:
    """Note Ctrl-C instead of raising: an exception in the middle of the pool's own code would leave its locks taken."""
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:  # the second time, the user wants it to end now
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
def _interrupts_blocked() -> Iterator[None]:
    """Processes that start meanwhile receive Ctrl-C only once they are ready for it: see `_start_worker`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(initializer: Callable[..., None] | None, given: tuple[Any, ...]) -> None:
    """Ctrl-C ends a worker at once, without a traceback, and a worker does not outlive its parent."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if initializer is not None:
        initializer(*given)


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)
