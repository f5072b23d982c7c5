"""Load of our own: streaming requests over the OpenAI API, at random times (open loop) or back to back (closed loop).

With a `rate`, requests arrive as a Poisson process whether or not the server keeps up, and their latency counts from the arrival: a
server that falls behind cannot hide it by receiving less. With a `concurrency`, so many clients send one request after the other, which
measures what the server can deliver at most.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lynceus.executors.serving.errors import AnswerError, MeasurementError
from lynceus.executors.serving.http_stream import request
from lynceus.executors.serving.prompts import Prompts

PATHS = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}
_WATCH_S = 0.1
_HOPELESS = 10
"""So many failed answers before the first good one end the load: more of them cost money and teach nothing."""


@dataclass
class Exchange:
    """One request and what became of it. Times are seconds since the load began."""

    arrived: float
    """When it was due; later than that it may have been sent."""
    tokens: array[float] = field(default_factory=lambda: array("d"))
    """When each piece of text arrived."""
    ended: float = 0.0
    output_tokens: int = 0
    """As the server counts them; 0 if it does not say."""
    prompt_tokens: int = 0
    error: str = ""
    """Why the answer cannot be used; empty if it can."""
    unfinished: bool = False
    """The server had not finished the answer when we stopped waiting; what arrived until then counts."""


@dataclass(frozen=True)
class Load:
    """What is sent."""

    stop_after_s: float
    rate: float | None = None
    """Requests per second."""
    concurrency: int | None = None
    warmup_s: float = 0.0
    """What arrives before is not counted."""
    request_timeout_s: float = 60.0
    api: str = "completions"
    model: str = ""
    """Empty: the first that the server lists."""
    prompt_tokens: int = 64
    output_tokens: int = 64
    prompts: str = ""
    """A file with one prompt per line, as text or as JSON with a field `prompt`."""
    extra: dict[str, Any] = field(default_factory=dict)
    """More fields of the body; null removes one."""
    seed: int = 0


class LoadRun:
    """Drives a load against the server on a port. `alive` raises if the server has ended; `report` gets the share that is done."""

    def __init__(self, load: Load, port: int, alive: Callable[[], None], report: Callable[[float], None]) -> None:
        self._load, self._port, self._alive, self._report = load, port, alive, report
        self._prompts = Prompts(load.prompts, load.prompt_tokens, load.seed)
        self._random = random.Random(load.seed)
        self._model = load.model
        self._began = 0.0
        self._hopeless = ""
        self.exchanges: list[Exchange] = []

    async def drive(self) -> list[Exchange]:
        """Send requests until the time is over and wait for their answers."""
        self._model = self._model or await self._served_model()
        self._began = time.monotonic()
        send = self._open_loop() if self._load.rate is not None else self._closed_loop()
        sender = asyncio.ensure_future(send)
        try:
            while not sender.done():
                self._alive()
                if self._hopeless:
                    raise MeasurementError(self._hopeless)
                self._report(min(self._now() / self._load.stop_after_s, 1.0))
                await asyncio.wait([sender], timeout=_WATCH_S)
            await sender
        finally:
            sender.cancel()
            await asyncio.gather(sender, return_exceptions=True)
        self._alive()
        if self._hopeless:
            raise MeasurementError(self._hopeless)
        return self.exchanges

    def _now(self) -> float:
        return time.monotonic() - self._began

    async def _open_loop(self) -> None:
        assert self._load.rate is not None
        sent: list[asyncio.Future[None]] = []
        due = self._random.expovariate(self._load.rate)
        while due < self._load.stop_after_s and not self._hopeless:
            await asyncio.sleep(max(due - self._now(), 0.0))
            sent.append(asyncio.ensure_future(self._send(due)))
            due += self._random.expovariate(self._load.rate)
        await self._all(sent)

    async def _closed_loop(self) -> None:
        async def client() -> None:
            while self._now() < self._load.stop_after_s and not self._hopeless:
                await self._send(self._now())

        await self._all([asyncio.ensure_future(client()) for _ in range(self._load.concurrency or 1)])

    async def _all(self, tasks: list[asyncio.Future[None]]) -> None:
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def _send(self, arrived: float) -> None:
        exchange = Exchange(arrived)
        self.exchanges.append(exchange)
        try:
            await asyncio.wait_for(self._exchange(exchange), self._load.request_timeout_s)
        except AnswerError as error:
            exchange.error = str(error)
        except asyncio.TimeoutError:  # noqa: UP041 - the built-in one from Python 3.11 on
            exchange.unfinished = True
        except OSError as error:
            exchange.error = os.strerror(error.errno).lower() if error.errno else str(error)
        finally:
            exchange.ended = self._now()
        if exchange.error and len(self.exchanges) >= _HOPELESS:
            self._give_up_if_hopeless(exchange.error)

    def _give_up_if_hopeless(self, error: str) -> None:
        over = [one for one in self.exchanges if one.ended]
        if len(over) >= _HOPELESS and all(one.error for one in over):
            self._hopeless = f"all of the first {len(over)} requests failed: {error}"

    async def _exchange(self, exchange: Exchange) -> None:
        body = json.dumps(self._body()).encode()
        async with request(self._port, PATHS[self._load.api], body, _headers()) as answer:
            if answer.status != 200:
                text = (await answer.body(2048)).decode("utf-8", "replace")
                raise AnswerError(f"HTTP {answer.status}{_message(text)}")
            if "text/event-stream" not in answer.headers.get("content-type", ""):
                raise AnswerError("the answer is not a stream of events")
            async for line in answer.lines():
                if line.startswith(b"data:") and self._event(line[5:].strip(), exchange):
                    break
        if not exchange.tokens:
            raise AnswerError("the answer has no text")

    def _event(self, data: bytes, exchange: Exchange) -> bool:
        """Take one event of a stream; whether it was the last."""
        if data == b"[DONE]":
            return True
        try:
            event = json.loads(data)
            text = "".join(_text(choice) for choice in event.get("choices") or ())
            usage = event.get("usage") or {}
            output_tokens, prompt_tokens = usage.get("completion_tokens") or 0, usage.get("prompt_tokens") or 0
            if not isinstance(output_tokens, int) or not isinstance(prompt_tokens, int):
                raise TypeError
        except (ValueError, AttributeError, TypeError, RecursionError):
            raise AnswerError("an event of the answer is not what the OpenAI API sends") from None
        if "error" in event:
            raise AnswerError(f"the server reports an error{_message(json.dumps(event))}")
        if text:
            exchange.tokens.append(self._now())
        exchange.output_tokens = max(exchange.output_tokens, output_tokens)
        exchange.prompt_tokens = max(exchange.prompt_tokens, prompt_tokens)
        return False

    def _body(self) -> dict[str, Any]:
        load, prompt = self._load, self._prompts.next()
        body: dict[str, Any] = {"model": self._model, "max_tokens": load.output_tokens, "temperature": 0.0}
        body.update({"stream": True, "stream_options": {"include_usage": True}})
        if load.api == "chat":
            body["messages"] = [{"role": "user", "content": prompt}]
        else:
            body["prompt"] = prompt
        body.update(load.extra)
        return {name: value for name, value in body.items() if value is not None}

    async def _served_model(self) -> str:
        """The first model that the server lists; a server that lists none may not care."""

        async def ask() -> str:
            async with request(self._port, "/v1/models", None, _headers()) as answer:
                return str(json.loads(await answer.body())["data"][0]["id"])

        try:
            return await asyncio.wait_for(ask(), self._load.request_timeout_s)
        except (OSError, AnswerError, ValueError, KeyError, IndexError, TypeError):
            return "default"
        except asyncio.TimeoutError:  # noqa: UP041 - the built-in one from Python 3.11 on
            return "default"


def _headers() -> dict[str, str]:
    key = os.environ.get("OPENAI_API_KEY", "")
    return {"Authorization": f"Bearer {key}"} if key.isprintable() and key else {}


def _text(choice: dict[str, Any]) -> str:
    """The text of one choice: of completions, or of chats, where reasoning counts as well."""
    delta = choice.get("delta") or {}
    return str(choice.get("text") or delta.get("content") or delta.get("reasoning_content") or "")


def _message(text: str) -> str:
    """The message of an error after a colon; empty if there is none."""
    try:
        found = json.loads(text)
        found = found.get("error", found)
        found = found.get("message", "") if isinstance(found, dict) else found
    except (ValueError, AttributeError, RecursionError):
        found = text
    words = " ".join(str(found).split())
    return f": {words[:100]}" if words else ""
