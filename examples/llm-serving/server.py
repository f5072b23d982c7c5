"""A small language model behind the OpenAI API, on NumPy: real attention, a key-value cache and continuous batching.

The weights are random numbers made at the start, so the text is nonsense, but the work is that of a real decoder: at batch size 1 every
token reads all weights from memory, and a larger batch shares that reading.
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import queue
import threading
import time
from dataclasses import dataclass, field

VOCABULARY, WIDTH, LAYERS, HEADS, CONTEXT = 1024, 320, 4, 5, 128


@dataclass
class Sequence:
    """One request: the tokens so far, and where new ones go."""

    tokens: list[int]
    wanted: int
    sent: queue.Queue = field(default_factory=queue.Queue)
    slot: int = -1
    made: int = 0


class Model:
    """A decoder with pre-normalisation, as arrays."""

    def __init__(self, precision: str, slots: int) -> None:
        import numpy as np

        self.np, rng = np, np.random.default_rng(0)

        def weights(*shape: int) -> np.ndarray:
            return (rng.standard_normal(shape) / shape[0] ** 0.5).astype(precision)

        self.embedding, self.positions = weights(VOCABULARY, WIDTH), weights(CONTEXT, WIDTH)
        self.layers = [
            (weights(WIDTH, 3 * WIDTH), weights(WIDTH, WIDTH), weights(WIDTH, 4 * WIDTH), weights(4 * WIDTH, WIDTH))
            for _ in range(LAYERS)
        ]
        self.unembedding = weights(WIDTH, VOCABULARY)
        shape = (LAYERS, 2, slots, HEADS, CONTEXT, WIDTH // HEADS)
        self.cache = np.zeros(shape, dtype=precision)
        """Keys and values `[layer, 2, slot, head, position, feature]`."""

    def forward(self, tokens: list[int], first: int, slot: int) -> int:
        """Run tokens of one sequence from position `first` on, and return the token that follows."""
        np, n = self.np, len(tokens)
        x = self.embedding[tokens] + self.positions[first : first + n]
        mask = np.triu(np.full((n, first + n), -1e9, dtype=x.dtype), k=first + 1)
        for layer, (attend, project, up, down) in enumerate(self.layers):
            q, k, v = np.split((self._normed(x) @ attend).reshape(n, 3 * HEADS, -1).swapaxes(0, 1), 3)
            self.cache[layer, 0, slot, :, first : first + n] = k
            self.cache[layer, 1, slot, :, first : first + n] = v
            keys, values = self.cache[layer, :, slot, :, : first + n]
            scores = self._softmax(q @ keys.swapaxes(1, 2) * (WIDTH // HEADS) ** -0.5 + mask)
            x = x + (scores @ values).swapaxes(0, 1).reshape(n, WIDTH) @ project
            x = x + np.maximum(self._normed(x) @ up, 0) @ down
        return int((self._normed(x[-1:]) @ self.unembedding).argmax())

    def step(self, sequences: list[Sequence]) -> list[int]:
        """The next token of several sequences at once, with the cache: the weights are read once for all of them."""
        np, b = self.np, len(sequences)
        slots = np.array([one.slot for one in sequences])
        at = np.array([len(one.tokens) - 1 for one in sequences])
        longest = int(at.max()) + 1
        x = self.embedding[[one.tokens[-1] for one in sequences]] + self.positions[at]
        mask = np.where(np.arange(longest) <= at[:, None], 0, -1e9).astype(x.dtype)[:, None, None]
        for layer, (attend, project, up, down) in enumerate(self.layers):
            q, k, v = np.split((self._normed(x) @ attend).reshape(b, 3 * HEADS, 1, -1), 3, axis=1)
            self.cache[layer, 0, slots, :, at] = k[:, :, 0]
            self.cache[layer, 1, slots, :, at] = v[:, :, 0]
            keys, values = (self.cache[layer, one, slots, :, :longest] for one in (0, 1))
            scores = self._softmax(q @ keys.swapaxes(2, 3) * (WIDTH // HEADS) ** -0.5 + mask)
            x = x + (scores @ values).reshape(b, WIDTH) @ project
            x = x + np.maximum(self._normed(x) @ up, 0) @ down
        return [int(one) for one in (self._normed(x) @ self.unembedding).argmax(axis=1)]

    def _normed(self, x):
        return (x - x.mean(axis=-1, keepdims=True)) / (x.std(axis=-1, keepdims=True) + 1e-5)

    def _softmax(self, x):
        x = self.np.exp(x - x.max(axis=-1, keepdims=True))
        return x / x.sum(axis=-1, keepdims=True)


class Engine(threading.Thread):
    """Decides at every step which sequences run: new ones join as soon as there is a free slot."""

    def __init__(self, model: Model, batch: int, *, cached: bool) -> None:
        super().__init__(daemon=True)
        self.model, self.batch, self.cached = model, batch, cached
        self.waiting: queue.Queue[Sequence] = queue.Queue()

    def run(self) -> None:
        running: list[Sequence] = []
        while True:
            while len(running) < self.batch and (running == [] or not self.waiting.empty()):
                one = self.waiting.get()
                one.slot = min(set(range(self.batch)) - {other.slot for other in running})
                self.emit(one, self.model.forward(one.tokens, 0, one.slot))
                running.append(one)
            running = [one for one in running if one.made < one.wanted]
            if running and self.cached:
                for one, token in zip(running, self.model.step(running), strict=True):
                    self.emit(one, token)
            else:
                for one in running:
                    self.emit(one, self.model.forward(one.tokens, 0, one.slot))

    def emit(self, sequence: Sequence, token: int) -> None:
        sequence.tokens.append(token)
        sequence.made += 1
        sequence.sent.put(token)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine: Engine

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        body = json.dumps({"data": [{"id": "tiny-numpy"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        wanted = min(int(asked.get("max_tokens", 16)), CONTEXT // 2)
        prompt = [sum(word.encode()) % VOCABULARY for word in str(asked["prompt"]).split()][-(CONTEXT - wanted) :] or [
            0
        ]
        sequence = Sequence(list(prompt), wanted)
        self.engine.waiting.put(sequence)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for _ in range(wanted):
            self.event({"choices": [{"text": f"w{sequence.sent.get()} "}]})
        self.event({"choices": [], "usage": {"completion_tokens": wanted, "prompt_tokens": len(prompt)}})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def event(self, content: dict) -> None:
        self.wfile.write(b"data: " + json.dumps(content).encode() + b"\n\n")
        self.wfile.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=["float32", "float64"], default="float32")
    parser.add_argument("--cache", choices=["on", "off"], default="on")
    options = parser.parse_args()
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(options.threads)  # before NumPy is imported
    began = time.monotonic()
    Handler.engine = Engine(Model(options.precision, options.batch), options.batch, cached=options.cache == "on")
    Handler.engine.start()
    print(f"weights made in {time.monotonic() - began:.1f} s, listening on {options.port}", flush=True)
    http.server.ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
