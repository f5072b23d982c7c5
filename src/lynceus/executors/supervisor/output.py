"""The output of a job, up to a maximum size: its beginning and its end, with a line between them that says how much is missing.

A job may print faster than we can save. So output is kept in memory until `flush`, and what is too old by then is never masked or
written.
"""

from __future__ import annotations

import collections
import contextlib
import os

from lynceus.executors.supervisor.files import open_regular, read_regular
from lynceus.executors.supervisor.masking import Secrets


class Output:
    """Writes one stream to `path`: the first half of `max_bytes`; what follows goes to `path.tail`, which is rotated."""

    def __init__(self, path: str, max_bytes: int, secrets: Secrets | None = None) -> None:
        self._path, self._half = path, max(max_bytes // 2, 1)
        self._secrets = secrets or Secrets()
        self._held = b""
        self._pieces: collections.deque[bytes] = collections.deque()
        """What is not saved yet, not masked. No secret is in two pieces."""
        self._waiting = 0
        """Bytes in `_pieces`."""
        self._gap = False
        """Whether pieces were dropped, so that what is saved of the end does not continue with the others."""
        self._head = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._tail: int | None = None
        self._written = self._in_tail = self._dropped = 0
        self.problem = ""
        """Why output could not be saved, for the first time."""

    def write(self, data: bytes, *, last: bool = False) -> None:
        """Take some bytes; `flush` saves them. A secret that arrives in two pieces is masked, too."""
        if self._held:
            data = self._held + data
        keep = 0 if last else self._secrets.unsettled(data)
        if keep:
            data, self._held = data[: len(data) - keep], data[len(data) - keep :]
        else:
            self._held = b""
        self._pieces.append(data)
        self._waiting += len(data)
        if self._written < self._half:
            self.flush()
        while self._pieces and self._waiting - len(self._pieces[0]) >= self._half:
            self._gap = True
            self._waiting -= len(self._pieces[0])
            self._dropped += len(self._pieces.popleft())

    def flush(self) -> None:
        """Save what was taken."""
        if not self._pieces:
            return
        data = b"".join(map(self._secrets.masked, self._pieces))
        self._pieces.clear()
        self._waiting = 0
        try:
            if self._gap:
                self._forget_end()
            self._save(data)
        except OSError as error:  # a full disk must not stop the job
            self.problem = self.problem or f"its output could not be saved: {error.strerror}"

    def _forget_end(self) -> None:
        self._gap = False
        if self._tail is not None:
            os.close(self._tail)
            self._tail = None
        for suffix in (".older", ".tail"):
            with contextlib.suppress(FileNotFoundError):
                self._dropped += os.path.getsize(f"{self._path}{suffix}")
                os.unlink(f"{self._path}{suffix}")

    def _save(self, data: bytes) -> None:
        room = self._half - self._written
        if room > 0:
            self._written += os.write(self._head, data[:room])
            data = data[room:]
        while data:
            if self._tail is None:
                self._tail = open_regular(f"{self._path}.tail", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                self._in_tail = 0
            count = os.write(self._tail, data[: self._half - self._in_tail])
            self._in_tail += count
            data = data[count:]
            if self._in_tail >= self._half:
                self._rotate()

    def _rotate(self) -> None:
        if self._tail is not None:
            os.close(self._tail)
        self._tail = None
        old = f"{self._path}.older"
        if os.path.exists(old):
            self._dropped += os.path.getsize(old)
        os.rename(f"{self._path}.tail", old)

    def close(self) -> None:
        """Join beginning and end."""
        self.write(b"", last=True)
        self.flush()
        if self._tail is not None:
            os.close(self._tail)
        try:
            end = b"".join(_saved(f"{self._path}{suffix}") for suffix in (".older", ".tail"))
            dropped = self._dropped + max(len(end) - self._half, 0)
            if dropped:
                os.write(self._head, b"\n[... %d bytes left out ...]\n" % dropped)
            os.write(self._head, end[-self._half :] if end else b"")
            for suffix in (".older", ".tail"):
                if os.path.exists(f"{self._path}{suffix}"):
                    os.unlink(f"{self._path}{suffix}")
        except OSError as error:
            self.problem = self.problem or f"its output could not be saved: {error.strerror}"
        os.close(self._head)


def read_output(path: str) -> bytes:
    """What is saved of a stream, while the job runs or afterwards."""
    end = b"".join(_saved(f"{path}{suffix}") for suffix in (".older", ".tail"))
    return _saved(path) + (b"\n[... some bytes may be missing here ...]\n" + end if end else b"")


def _saved(path: str) -> bytes:
    try:
        return read_regular(path) or b""
    except OSError:
        return b""
