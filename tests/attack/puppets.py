"""Workers that move only when they are told: threads that hand a baton back and forth, so that every interleaving can be repeated."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lynceus.errors import InfrastructureError, StorageOutageError

_PATIENCE_S = 300.0
_WRITES = frozenset(
    ["ordered", "launched", "heartbeat", "settled", "imported", "closed", "resumed", "request_cancel"]
) | frozenset(["enqueued", "announced", "adopt", "release"])


class KilledError(BaseException):
    """The worker is dead: like SIGKILL, nothing that it still wants to do has an effect."""


class Puppet:
    """One worker. `move` lets it run to its next pause; between two moves it stands still, as if stopped by SIGSTOP."""

    def __init__(self, host: str, work: Callable[["Puppet"], None]) -> None:
        self.host = host
        self.clock_offset_s = 0.0
        self.alive = True
        self.error: BaseException | None = None
        """What ended the worker, if that was neither its own end, a kill, nor a broken storage."""
        self.fuse: int | None = None
        """How many calls of the journal and the executor are left before the worker dies or fails."""
        self.fuse_kills, self.fuse_after = True, False
        self._work = work
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._thread.start()

    def move(self) -> None:
        if self.alive:
            self._go.release()
            assert self._done.acquire(timeout=_PATIENCE_S), "a worker neither paused nor ended"

    def kill(self) -> None:
        if self.alive:
            self.alive = False
            self._go.release()
            assert self._done.acquire(timeout=_PATIENCE_S), "a killed worker did not end"
            self._thread.join()

    def pause(self) -> None:
        """Called by the worker: stand still until the next move."""
        self._done.release()
        self._go.acquire()
        self.check()

    def check(self) -> None:
        if not self.alive:
            raise KilledError

    @contextmanager
    def call(self) -> Iterator[None]:
        """One call of the journal or the executor: the fuse burns down, and a dead worker calls nothing."""
        self.check()
        burnt = self._burn()
        if burnt and not self.fuse_after:
            self._die()
        yield
        if burnt:
            self._die()

    def _burn(self) -> bool:
        if self.fuse is None:
            return False
        self.fuse -= 1
        if self.fuse > 0:
            return False
        self.fuse = None
        return True

    def _die(self) -> None:
        if self.fuse_kills:
            self.alive = False
            raise KilledError
        raise StorageOutageError("the connection to the storage was lost")

    def _main(self) -> None:
        self._go.acquire()
        try:
            self.check()
            self._work(self)
        except (KilledError, InfrastructureError):
            pass
        except BaseException as error:
            self.error = error
        self.alive = False
        self._done.release()


class MortalJournal:
    """A journal that dies with its worker, before or after any of its calls, inside transactions and between them."""

    def __init__(self, journal: Any, puppet: Puppet) -> None:
        self._journal, self._puppet = journal, puppet

    @contextmanager
    def exclusive(self, *arguments: Any) -> Iterator[Any]:
        with self._puppet.call(), self._journal.exclusive(*arguments) as connection:
            yield connection

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._journal, name)
        if name not in _WRITES:
            return found

        def write(*arguments: Any, **options: Any) -> Any:
            with self._puppet.call():
                return found(*arguments, **options)

        return write


class MortalExecutor:
    """An executor that dies with its worker; the worker may stand still before and after every launch."""

    def __init__(self, executor: Any, puppet: Puppet) -> None:
        self._executor, self._puppet = executor, puppet

    def launch(self, request: Any) -> str:
        self._puppet.pause()
        with self._puppet.call():
            ticket: str = self._executor.launch(request)
        self._puppet.pause()
        return ticket

    def collect(self, ticket: str) -> Any:
        with self._puppet.call():
            return self._executor.collect(ticket)

    def cancel(self, ticket: str) -> None:
        with self._puppet.call():
            self._executor.cancel(ticket)
