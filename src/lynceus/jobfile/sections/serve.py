"""The section `serve`: a server that every trial starts, and the load that measures it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from lynceus.executors.serve import LoadCommand, Ramp, Ready, Requests, Serve
from lynceus.jobfile.sections.values import Run, short_form, shortened
from lynceus.problem.fields import Duration, Section
from lynceus.problem.problem import Problem

_COMMAND_SCHEMA = {
    "anyOf": [{"type": "array", "items": {"type": ["string", "number"]}, "minItems": 1}, {"type": "string"}]
}
_DEFAULT_LOAD_S = 30.0


def command_words(value: Any) -> Any:
    """A command as a list of texts, or a script; numbers become texts."""
    if isinstance(value, list) and value and all(isinstance(one, str | int | float) for one in value):
        return [str(one) if not isinstance(one, bool) else str(one).lower() for one in value]
    if isinstance(value, str) and value.strip():
        return value
    raise ValueError("expected a list of arguments such as [python, train.py, '${depth}'], or a script.")


class ReadySection(Section):
    """When the server is ready: an HTTP request that it answers."""

    model_config = short_form({"type": "string", "description": "the path alone"})

    path: str = Field(default="/health", description="what is requested from the server, such as /health")
    within: Duration = Field(default=300.0, description="the trial fails if the server is not ready after this time")
    status: int | None = Field(
        default=None, ge=100, le=599, description="the HTTP status of a server that is ready; null: any 2xx"
    )

    @model_validator(mode="before")
    @classmethod
    def _path_alone(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @field_validator("path")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if not value.startswith("/") or any(one.isspace() or not one.isprintable() for one in value):
            raise ValueError(f"got {shortened(value)}; write a path that begins with '/', such as /health.")
        return value

    @field_validator("within")
    @classmethod
    def _positive(cls, value: float) -> float:
        if value == 0:
            raise ValueError("got 0 seconds, in which no server is ready; give a duration above 0.")
        return value


class LoadSection(Section):
    """What is sent to the server: a command that drives load, or requests of Lynceus itself (`rate` or `concurrency`)."""

    model_config = short_form({**_COMMAND_SCHEMA, "description": "the command alone"})

    command: Run | None = Field(
        default=None, description="a program that drives load, such as [vllm, bench, serve, --port, '${port}']"
    )
    results: str | None = Field(
        default=None, description="the JSON file that the command writes; without it, what it prints counts"
    )
    rate: float | str | None = Field(default=None, description="requests per second that arrive at random (open loop)")
    concurrency: int | str | None = Field(
        default=None, description="clients that send one request after the other (closed loop)"
    )
    prompt_tokens: int | str = Field(default=64, description="words of a random prompt")
    output_tokens: int | str = Field(default=64, description="the most tokens of an answer (max_tokens)")
    prompts: str | None = Field(default=None, description="a file with one prompt per line, instead of random words")
    api: Literal["completions", "chat"] = Field(
        default="completions", description="/v1/completions or /v1/chat/completions"
    )
    model: str | None = Field(
        default=None, description="the model's name in requests; null: the first that the server lists"
    )
    warmup: Duration = Field(default=0.0, description="requests that arrive in this time are not counted")
    request_timeout: Duration = Field(
        default=60.0, description="how long an answer may take; then it counts as unfinished"
    )
    max_errors: float = Field(
        default=0.05, ge=0, le=1, description="the share of requests that may fail; beyond it, the trial fails"
    )
    extra: dict[str, Any] = Field(default={}, description="more fields of every request, such as {ignore_eos: true}")

    @model_validator(mode="before")
    @classmethod
    def _one_kind(cls, value: Any) -> Any:
        if isinstance(value, str | list):
            return {"command": value}
        if not isinstance(value, dict):
            raise ValueError(f"got {shortened(value)}; write a command, or {{rate: 4}} for requests of Lynceus itself.")
        kinds = [name for name in ("command", "rate", "concurrency") if value.get(name) is not None]
        if len(kinds) != 1:
            given = f"got {' and '.join(kinds)}" if kinds else "it says neither"
            raise ValueError(f"{given}; write one of command, rate (requests per second) and concurrency (clients).")
        if "results" in value and kinds != ["command"]:
            raise ValueError("'results' names the file of a load command; remove it, or write a command.")
        own = [name for name in value if kinds == ["command"] and name not in ("command", "results")]
        if own:
            raise ValueError(f"'{own[0]}' is for requests of Lynceus itself; write it as an argument of the command.")
        return value

    @field_validator("command", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        words = command_words(value)
        if isinstance(words, str) and words.startswith("#!"):
            raise ValueError(
                "a load with an interpreter of its own needs a file; write a list such as [python3, load.py]."
            )
        return words

    @field_validator("rate", "concurrency", "prompt_tokens", "output_tokens")
    @classmethod
    def _above_zero(cls, value: float | str | None) -> float | str | None:
        if isinstance(value, str) and "${" not in value:
            raise ValueError(f"got {shortened(value)}; write a number above 0, or a parameter such as '${{rate}}'.")
        if isinstance(value, int | float) and not 0 < value < float("inf"):
            raise ValueError(f"got {value:g}; write a number above 0.")
        return value

    def load(self, seed: int) -> LoadCommand | Requests:
        """The load, with the study's seed for arrivals and prompts."""
        if self.command is not None:
            command = self.command if isinstance(self.command, str) else tuple(self.command)
            return LoadCommand(command, self.results or "")
        return Requests(
            self.rate,
            self.concurrency,
            self.prompt_tokens,
            self.output_tokens,
            self.prompts or "",
            self.api,
            self.model or "",
            self.warmup,
            self.request_timeout,
            self.max_errors,
            self.extra,
            seed,
        )


class RampSection(Section):
    """Further loads that a trial measures on its server."""

    model_config = short_form({"type": "string", "description": "the parameter alone"})

    parameter: str = Field(description="the parameter that is the load, such as clients; the server does not read it")
    most: int = Field(default=3, ge=1, le=100, description="the most further loads of one trial")

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"parameter": value} if isinstance(value, str) else value


class ServeSection(Section):
    """A server under load: every trial starts it, waits until it is ready, measures and ends it."""

    command: Run = Field(description="the server; ${port} is the port on which it has to listen")
    ready: ReadySection = Field(default_factory=ReadySection)
    load: LoadSection = Field(description="what is sent to the server")
    stop_after: Duration | None = Field(
        default=None,
        description="how long the load lasts: 30s for requests of Lynceus itself, otherwise until the command ends",
    )
    port: int | None = Field(default=None, ge=1, le=65535, description="the port of a server that cannot be told one")
    ramp: RampSection | None = Field(
        default=None,
        description="further loads on the server of a trial: higher ones while every limit is kept, lower ones while one is broken",
    )

    @field_validator("command", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        return command_words(value)

    @model_validator(mode="after")
    def _long_enough(self) -> ServeSection:
        if self.stop_after is not None and self.stop_after <= self.load.warmup:
            raise ValueError(
                f"stop_after is {self.stop_after:g} s and the warm-up {self.load.warmup:g} s, so nothing would count; raise stop_after."
            )
        return self

    def longest_s(self, seed: int) -> float | None:
        """Seconds after which a trial is over, however the server behaves; None if only the load command knows."""
        one = self.serve(seed)
        if one.longest_s is None or one.measuring_s is None or self.ramp is None:
            return one.longest_s
        return one.longest_s + self.ramp.most * one.measuring_s

    def serve(self, seed: int, problem: Problem | None = None) -> Serve:
        """What the executor needs besides the command; without the problem a trial measures one load."""
        own = self.load.command is None
        stop_after_s = _DEFAULT_LOAD_S + self.load.warmup if self.stop_after is None and own else self.stop_after
        ready = Ready(self.ready.path, self.ready.within, self.ready.status)
        ramp = None
        if self.ramp is not None and problem is not None:
            ramp = Ramp(self.ramp.parameter, problem.space, problem.metric_constraints, self.ramp.most)
        return Serve(ready, self.load.load(seed), stop_after_s, self.port, ramp)
