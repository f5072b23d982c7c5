"""Worker processes have one thread each; Ctrl-C is raised where the pool expects it, and never lost."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from local_runs import eventually
from lynceus.replay.process_pool import process_pool


@pytest.fixture(autouse=True)
def interrupts() -> Iterator[None]:
    """Ctrl-C as in a terminal, even when the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "the handler is restored"
    signal.signal(signal.SIGINT, before)


def test_every_process_is_initialized_and_has_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with process_pool(2, os.chdir, tmp_path) as pool:
        running: set[Future[str | None]] = {pool.submit(os.getcwd) for _ in range(5)}
        running.add(pool.submit(os.getenv, "OMP_NUM_THREADS"))
        seen: list[str | None] = []
        while running:
            done = pool.finished(running)
            running -= done
            seen += [future.result() for future in done]
    assert sorted(map(str, seen)) == sorted(["1", *[str(tmp_path)] * 5])
    assert "OMP_NUM_THREADS" not in os.environ


def test_ctrl_c_ends_the_wait_and_the_work() -> None:
    began = time.monotonic()
    processes: list[int] = []

    def interrupted() -> None:
        with process_pool(1) as pool:
            [first] = pool.finished([pool.submit(os.getpid)])
            processes.append(first.result())
            endless = pool.submit(time.sleep, 1000)
            signal.raise_signal(signal.SIGINT)
            pool.finished([endless])

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    eventually(lambda: not os.path.exists(f"/proc/{processes[0]}"))
    assert time.monotonic() - began < 900


def test_ctrl_c_outside_a_wait_is_raised_at_the_end() -> None:
    results: list[int] = []

    def interrupted() -> None:
        with process_pool(1) as pool:
            future: Future[int] = pool.submit(abs, -3)
            signal.raise_signal(signal.SIGINT)
            results.append(future.result())

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert results == [3]


def test_the_second_ctrl_c_is_raised_at_once() -> None:
    def impatient() -> None:
        with process_pool(1):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            pytest.fail("no exception was raised")

    with pytest.raises(KeyboardInterrupt):
        impatient()


def test_a_process_that_dies_is_reported() -> None:
    with process_pool(1) as pool:
        [done] = pool.finished([pool.submit(os._exit, 1)])
        assert isinstance(done.exception(), BrokenProcessPool)
