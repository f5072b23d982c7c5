"""A connection that is lost while a transaction commits: the writer finds out whether it was kept."""

import contextlib
import re
import socket
import threading
from collections.abc import Iterator
from multiprocessing.pool import ThreadPool
from pathlib import Path
from uuid import uuid4

import pytest

from journal_cases import observation, order
from lynceus.errors import StorageOutageError
from lynceus.policy.presets import preset
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.storage.sql.storage import Storage
from lynceus.study.stored import open_study
from postgres import Server

SOCKET = ".s.PGSQL.5432"
COMMIT = re.compile(rb"COMMIT")


class Wire:
    """A proxy in front of a server's socket that cuts one connection when it sees a COMMIT."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.cut = ""
        """`before` the server sees it, `after` it has answered, or `hang`: only the client is cut, the server waits."""
        self._server = server
        self._kept: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in (self._listener, *self._kept):
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                upstream = socket.socket(socket.AF_UNIX)
                upstream.connect(str(self._server / SOCKET))
                self._kept += [client, upstream]
                threading.Thread(target=self._upwards, args=(client, upstream), daemon=True).start()
                threading.Thread(target=self._downwards, args=(upstream, client), daemon=True).start()

    def _upwards(self, client: socket.socket, upstream: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65_536):
                if self.cut and COMMIT.search(data):
                    cut, self.cut = self.cut, ""
                    if cut == "after":
                        with contextlib.suppress(OSError):
                            client.shutdown(socket.SHUT_RDWR)
                        upstream.sendall(data)
                        return
                    if cut == "before":
                        upstream.shutdown(socket.SHUT_RDWR)
                    client.shutdown(socket.SHUT_RDWR)
                    return
                upstream.sendall(data)
            upstream.shutdown(socket.SHUT_WR)

    def _downwards(self, upstream: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := upstream.recv(65_536):
                client.sendall(data)
            client.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def wire(tmp_path: Path, postgres: Server) -> Iterator[Wire]:
    running = Wire(tmp_path, postgres.folder)
    yield running
    running.close()


def test_a_commit_without_an_answer_is_looked_up(wire: Wire, tmp_path: Path, postgres: Server) -> None:
    direct = postgres.database(f"test-{uuid4().hex}")
    with Storage(direct.replace(str(postgres.folder), str(tmp_path))) as storage, Storage(direct) as observer:
        storage.create_study("nightly", document={}, fingerprint="f", policy={})
        journal = storage.journal("nightly")

        wire.cut = "after"
        journal.ordered(order(0), {})  # it was kept, and the writer knows
        assert not wire.cut
        assert [run.number for run in journal.record.pending] == [0]
        assert [trial.number for trial in observer.trials("nightly")] == [0]

        for cut in ("before", "hang"):
            wire.cut = cut
            with pytest.raises(StorageOutageError, match=r"nothing that was settled is lost"):
                journal.settled(observation(0), {})
            assert not wire.cut
            # What was not kept never will be, and its lock is free.
            assert (journal.record.observations, [run.number for run in journal.record.pending]) == ((), [0])
            observer.journal("nightly").enqueued([1])

        wire.cut = "after"
        assert journal.settled(observation(0), {})
        assert not journal.settled(observation(0, charged_usd=9.0), {})
        assert [seen.outcome.charged_usd for seen in observer.journal("nightly").record.observations] == [0.5]

        wire.cut = "after"
        storage.create_study("weekly", document={}, fingerprint="f", policy={})
        assert [record.name for record in observer.studies()] == ["nightly", "weekly"]


def test_several_processes_may_create_one_study_at_once(url: str) -> None:
    problem = Problem(Space.build([Integer("n", 1, 3)], price=36.0))
    together = threading.Barrier(4)

    def create(number: int) -> str:
        together.wait()
        with Storage(url) as storage:
            together.wait()
            study = open_study(storage, "nightly", problem, preset("sweep"), seed=number, load_if_exists=True)
            return study.record.identity

    with ThreadPool(4) as pool:
        assert len(set(pool.map(create, range(4)))) == 1
    with Storage(url) as storage:
        assert [event.kind for event in storage.events("nightly")] == ["created"]
