"""A small server with the OpenAI API and bad habits, for the checks of the serving runner. It needs the standard library only.

python3 unruly_server.py PORT [HABIT ...]
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import socketserver
import sys
import threading
import time
from collections.abc import Iterator

TOKENS, TOKEN_S = 8, 0.004


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as the habits of its server demand."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""

    def do_GET(self) -> None:
        """Health and models."""
        habits = self.server.habits
        if "not-http" in habits:
            self.connection.sendall(b"\x00\x01 what is HTTP?\r\n\r\n")
            self.close_connection = True
            return
        unready = "never-ready" in habits or time.monotonic() < self.server.ready_at
        body = json.dumps({"data": [{"id": "tiny"}]}).encode()
        self.send_response(503 if unready else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """A completion, token by token."""
        habits = self.server.habits
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.visit() as visitors:
            self.answer(habits, request["max_tokens"], visitors)

    def answer(self, habits: list[str], max_tokens: int, visitors: int) -> None:
        """Answer one completion, as one of several at a time."""
        if ("crashes" in habits and self.server.count() >= 5) or ("crashes-in-a-crowd" in habits and visitors > 4):
            sys.stderr.write("Segmentation fault (core dumped)\n")
            sys.stderr.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        if "hangs" in habits:
            time.sleep(1000)
        if "errors" in habits or ("some-errors" in habits and self.server.count() % 2):
            self.send_error(500, "no more memory")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if "html" in habits else "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(min(max_tokens, TOKENS)):
            time.sleep(TOKEN_S)
            self.event(b"{]" if "garbage" in habits else json.dumps({"choices": [{"text": "a "}]}).encode())
            if "cuts" in habits:
                self.connection.close()
                return
        usage = {"completion_tokens": 2 * TOKENS, "prompt_tokens": 3}
        self.event(json.dumps({"choices": [], "usage": usage}).encode())
        self.event(b"[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def event(self, data: bytes) -> None:
        """One event as a chunk."""
        text = b"data: " + data + b"\n\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.flush()


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """A thread per connection."""

    daemon_threads = True

    def __init__(self, port: int, habits: list[str]) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.habits, self._count, self._visitors, self._lock = habits, 0, 0, threading.Lock()
        self.ready_at = time.monotonic() + (0.5 if "slow-start" in habits else 0.0)

    def count(self) -> int:
        """How many completions were requested."""
        with self._lock:
            self._count += 1
            return self._count

    @contextlib.contextmanager
    def visit(self) -> Iterator[int]:
        """How many completions are being answered, this one included."""
        with self._lock:
            self._visitors += 1
            visitors = self._visitors
        try:
            yield visitors
        finally:
            with self._lock:
                self._visitors -= 1

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients may leave."""


def leave_daemon(port: int) -> None:
    """A process of its own session, without our environment, that ignores SIGTERM and keeps the port open."""
    if os.fork():
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    note_process()
    time.sleep(1000)


def note_process() -> None:
    """Write our process id where the check looks for it."""
    if "FOLDER" in os.environ:
        with open(os.path.join(os.environ["FOLDER"], "pids"), "a", encoding="ascii") as file:
            file.write(f"{os.getpid()}\n")


def main(arguments: list[str]) -> None:
    """Serve until somebody ends us."""
    port, habits = int(arguments[0]), arguments[1:]
    note_process()
    sys.stdout.write(f"listening on {port}; throughput=999\n")
    sys.stdout.flush()
    if "no-start" in habits:
        sys.exit("CUDA out of memory, said the server")
    if "retries" in habits:
        sys.exit(75)
    if "no-listen" in habits:
        time.sleep(1000)
    if "stubborn" in habits:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server = Server(port, habits)
    if "daemon" in habits:
        leave_daemon(port)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
