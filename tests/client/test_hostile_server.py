"""A client whose server answers garbage, too much, too slowly, or sends it elsewhere: one sentence each, and the token stays here."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

import lynceus
from lynceus.client import http
from lynceus.client.http import Http
from lynceus.errors import InfrastructureError, InputError, LynceusError

TOKEN = "secret-token-0123456789"


class Answering:
    """A server that reads one request per connection and answers it with given bytes."""

    def __init__(self, answer: Callable[[socket.socket], None]) -> None:
        self.requests: list[bytes] = []
        self._answer = answer
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                with connection, contextlib.suppress(OSError):
                    self.requests.append(connection.recv(65536))
                    self._answer(connection)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@contextlib.contextmanager
def answering(answer: bytes | Callable[[socket.socket], None]) -> Iterator[Answering]:
    given = (lambda connection: connection.sendall(answer)) if isinstance(answer, bytes) else answer
    server = Answering(given)
    try:
        yield server
    finally:
        server.close()


def whole(body: bytes, status: bytes = b"200 OK", more: bytes = b"") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s" % (status, len(body), more, body)


def test_the_token_does_not_follow_a_redirect() -> None:
    with answering(whole(b"{}")) as other:
        for code in (b"301 Moved", b"302 Found", b"307 Temporary Redirect", b"308 Permanent Redirect"):
            away = whole(b"", code, b"Location: %s/api/v1/studies\r\n" % other.url.encode())
            with answering(away) as server:
                with pytest.raises(InputError, match="it redirects to http://127") as error:
                    lynceus.Client(server.url, TOKEN).studies()
                with pytest.raises(InputError, match="it redirects"):
                    lynceus.Client(server.url, TOKEN).create_study({"name": "x"})
            assert TOKEN not in str(error.value)
        assert other.requests == []


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (whole(b"<html>welcome to the hotel</html>"), "its answer is not a JSON object"),
        (whole(b"[" * 100_000), "its answer is not a JSON object"),
        (whole(b"\xff\xfe\x00"), "its answer is not a JSON object"),
        (whole(b"[1, 2]"), "its answer is not a JSON object"),
        (whole(b"{}"), "has no field 'studies'"),
        (whole(b'{"detail": 7}', b"418 I'm a teapot"), "server .*: 7$"),
        (whole(b"\x1b[2J" * 100, b"400 \x1b[2Jbad"), "it answered 400"),
        (whole(b'{"detail": "wait"}', b"429 Slow", b"Retry-After: \xb2\r\n"), "wait; gave up"),
        (whole(b'{"detail": "wait"}', b"429 Slow", b"Retry-After: 99999999999\r\n"), "wait; gave up"),
        (b"not HTTP at all", "it cannot be reached"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n{}", "it cannot be reached"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n{}", "it cannot be reached"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}", "it cannot be reached"),
    ],
)
def test_garbage_is_one_sentence(answer: bytes, sentence: str) -> None:
    with answering(answer) as server, pytest.raises(LynceusError, match=sentence) as error:
        lynceus.Client(server.url, TOKEN, patience_s=0.3).studies()
    text = str(error.value)
    assert (text.isprintable(), len(text) < 700, TOKEN in text) == (True, True, False)


def test_too_much_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_ANSWER_BYTES", 1000)
    with (
        answering(whole(b'"' + b"x" * 5000 + b'"')) as server,
        pytest.raises(InputError, match="more than 1,000 bytes"),
    ):
        lynceus.Client(server.url).studies()


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"])
def test_a_server_that_sends_a_byte_now_and_then_does_not_hold_the_client(start: bytes) -> None:
    """Each byte comes well within the timeout, the whole answer does not."""

    def trickle(connection: socket.socket) -> None:
        connection.sendall(start)
        for _ in range(300):
            connection.sendall(b"y")
            time.sleep(0.1)

    with answering(trickle) as server:
        began = time.monotonic()
        with pytest.raises(InfrastructureError, match=r"longer than 0\.5 s to answer; gave up"):
            Http(server.url, timeout_s=0.5, patience_s=0.2).get("health")
        assert time.monotonic() - began < 15


@pytest.mark.parametrize(
    "url",
    [
        "http://host:99999", "http://host:x", "http://[::1", "http://", "ftp://host", "http://me:hush@host", "http://host/?a=b",
        "http://host:0", "//host", "",
    ],
)  # fmt: skip
def test_bad_addresses_are_one_sentence(url: str) -> None:
    with pytest.raises(InputError, match="is not the address of a server; write http://host:8080") as error:
        lynceus.Client(url)
    assert "hush" not in str(error.value)


@pytest.mark.parametrize("token", ["a\nX-Evil: yes", "with space", "\ud800", "ü" * 20])
def test_bad_tokens_are_one_sentence_without_the_token(token: str) -> None:
    with pytest.raises(InputError, match="the token has characters that no token has") as error:
        lynceus.Client("http://127.0.0.1:9", token)
    assert token not in str(error.value)
