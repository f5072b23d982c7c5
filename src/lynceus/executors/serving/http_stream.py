"""A small HTTP/1.1 client for one request per connection, which hands on the answer as it arrives."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from lynceus.executors.serving.errors import AnswerError

HOST = "127.0.0.1"
_MAX_LINE_BYTES = 1 << 20
_MAX_HEADERS = 200
_READ_BYTES = 65536


class Answer:
    """The head of an answer, and its body as a stream of pieces."""

    def __init__(self, status: int, headers: dict[str, str], reader: asyncio.StreamReader) -> None:
        self.status, self.headers, self._reader = status, headers, reader

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body, piece by piece; `AnswerError` if it ends early."""
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            while True:
                size = _number(await self._reader.readline(), 16)
                if size == 0:
                    return
                yield await self._exactly(size)
                await self._exactly(2)
        length = self.headers.get("content-length")
        left = None if length is None else _number(length.encode(), 10)
        while left is None or left > 0:
            data = await self._reader.read(_READ_BYTES if left is None else min(left, _READ_BYTES))
            if not data:
                if left:
                    raise AnswerError("the answer ended early")
                return
            left = None if left is None else left - len(data)
            yield data

    async def lines(self) -> AsyncIterator[bytes]:
        """The body, line by line."""
        rest = b""
        async for piece in self.pieces():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line.rstrip(b"\r")
            if len(rest) > _MAX_LINE_BYTES:
                raise AnswerError("an endless line")
        if rest:
            yield rest

    async def body(self, most: int = _MAX_LINE_BYTES) -> bytes:
        """The body as a whole, cut after `most` bytes."""
        found = b""
        async for piece in self.pieces():
            found += piece
            if len(found) > most:
                break
        return found[:most]

    async def _exactly(self, size: int) -> bytes:
        try:
            return await self._reader.readexactly(size)
        except asyncio.IncompleteReadError:
            raise AnswerError("the answer ended early") from None


@contextlib.asynccontextmanager
async def request(
    port: int, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> AsyncIterator[Answer]:
    """One request to the server of this run; the connection is closed with the context.

    Raises OSError if there is no connection, and `AnswerError` if what answers does not speak HTTP.
    """
    reader, writer = await asyncio.open_connection(HOST, port, limit=_MAX_LINE_BYTES)
    try:
        head = {"Host": f"{HOST}:{port}", "Connection": "close", **(headers or {})}
        if body is not None:
            head.update({"Content-Type": "application/json", "Content-Length": str(len(body))})
        lines = [f"{'GET' if body is None else 'POST'} {path} HTTP/1.1", *(f"{key}: {head[key]}" for key in head)]
        writer.write("\r\n".join([*lines, "", ""]).encode("utf-8") + (body or b""))
        await writer.drain()
        yield await _head(reader)
    finally:
        writer.transport.abort()


async def _head(reader: asyncio.StreamReader) -> Answer:
    try:
        first = (await reader.readline()).split(None, 2)
        if not first:
            raise AnswerError("the connection was closed without an answer")
        if not first[0].startswith(b"HTTP/") or len(first) < 2:
            raise AnswerError("the answer is not HTTP")
        status = _number(first[1], 10)
        headers: dict[str, str] = {}
        for _ in range(_MAX_HEADERS):
            line = (await reader.readline()).strip()
            if not line:
                return Answer(status, headers, reader)
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
    except ValueError:  # a line without an end
        raise AnswerError("the answer is not HTTP") from None
    raise AnswerError("the answer has too many headers")


def _number(text: bytes, base: int) -> int:
    """A size or a status; chunk sizes may have extensions after a semicolon."""
    try:
        found = int(text.split(b";")[0], base)
    except ValueError:
        found = -1
    if found < 0:
        raise AnswerError("the answer ended early" if not text.strip() else "the answer is not HTTP")
    return found
