"""A server and the load that measures it, as a job file describes them; `serving` is what runs them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from lynceus.errors import InputError, shown
from lynceus.executors.placeholders import as_text, fill
from lynceus.executors.shell_text import fill_script
from lynceus.problem.objective import Constraint
from lynceus.space.table import Space

ROW_MARK = "@"
"""`throughput@clients=16`: what was measured of the configuration with another value of one parameter."""
MEASURING = "measuring_s"
"""The metric with the seconds of a measurement, without the start of the server."""
NAMES = ("port", "url")
"""`${port}` and `${url}`: values that the runner chooses for each run."""
DEFAULT_PORT = 8000
"""Of a server that is started by hand or deployed."""


@dataclass(frozen=True)
class Ready:
    """The HTTP check after which the load begins."""

    path: str = "/health"
    within_s: float = 300.0
    status: int | None = None
    """None: any 2xx."""


@dataclass(frozen=True)
class LoadCommand:
    """A program that drives load and measures."""

    run: tuple[str, ...] | str
    results: str = ""
    """A JSON file that it writes; empty: what it prints or reports counts."""


Number = float | str
"""A number, or a text such as `${rate}` that becomes one for a configuration."""


@dataclass(frozen=True)
class Requests:
    """Streaming requests over the OpenAI API that Lynceus sends itself. Exactly one of `rate` and `concurrency` is given."""

    rate: Number | None = None
    """Requests per second, at random times."""
    concurrency: Number | None = None
    """Clients that send one request after the other."""
    prompt_tokens: Number = 64
    output_tokens: Number = 64
    prompts: str = ""
    api: Literal["completions", "chat"] = "completions"
    model: str = ""
    warmup_s: float = 0.0
    request_timeout_s: float = 60.0
    max_errors: float = 0.05
    """The share of requests that may fail before the measurement is refused."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Ramp:
    """Further loads on the server of a trial: higher ones while every limit is kept, lower ones while one is broken."""

    parameter: str
    """What tells the loads of one deployment apart; the server does not read it."""
    space: Space
    limits: tuple[Constraint, ...] = ()
    """Limits on reported metrics."""
    most: int = 3
    """Further loads of one trial."""

    def beside(self, params: Mapping[str, object], *, higher: bool) -> list[dict[str, object]]:
        """Configurations with the same deployment and a higher (lower) load, the nearest first."""
        space, row = self.space, self.space.row(params)
        place = next(place for place, one in enumerate(space.parameters) if one.name == self.parameter)
        others, loads = np.delete(space.codes, place, axis=1), space.codes[:, place]
        same = (others == others[row]).all(axis=1) & (loads > loads[row] if higher else loads < loads[row])
        rows = sorted(np.flatnonzero(same).tolist(), key=lambda each: int(loads[each]), reverse=not higher)
        return [dict(space.point(each)) for each in rows[: self.most]]


@dataclass(frozen=True)
class Serve:
    """What `request.json` needs besides the server's command."""

    ready: Ready
    load: LoadCommand | Requests
    stop_after_s: float | None = None
    port: int | None = None
    ramp: Ramp | None = None
    """None: a trial measures one load."""

    @property
    def measuring_s(self) -> float | None:
        """Seconds after which the measurement of one load is over, however the server behaves; None if only the load command knows."""
        if self.stop_after_s is None:
            return None
        return self.stop_after_s + 2 * (self.load.request_timeout_s if isinstance(self.load, Requests) else 10.0)

    @property
    def longest_s(self) -> float | None:
        """Seconds after which a trial of one load is over; None if only the load command knows."""
        return None if self.measuring_s is None else self.ready.within_s + self.measuring_s


def serve_record(serve: Serve, params: Mapping[str, object], *, shell: bool) -> dict[str, Any]:
    """The field `serve` of a request, with the values of a configuration.

    >>> record = serve_record(Serve(Ready(), Requests(rate="${rate}"), 30.0), {"rate": 4}, shell=False)
    >>> record["load"]["rate"], record["stop_after_s"]
    (4.0, 30.0)
    """
    ready = {"path": fill(serve.ready.path, params), "within_s": serve.ready.within_s, "status": serve.ready.status}
    record: dict[str, Any] = {"port": serve.port, "ready": ready, "load": _load_record(serve.load, params, shell=shell)}
    record["stop_after_s"] = serve.stop_after_s
    if serve.ramp is not None:
        record["ramp"] = _ramp_record(serve, serve.ramp, params, shell=shell)
    return record


def _ramp_record(serve: Serve, ramp: Ramp, params: Mapping[str, object], *, shell: bool) -> dict[str, Any]:
    def loads(*, higher: bool) -> list[dict[str, Any]]:
        return [
            {
                "row": f"{ramp.parameter}={as_text(one[ramp.parameter])}",
                "load": _load_record(serve.load, one, shell=shell),
            }
            for one in ramp.beside(params, higher=higher)
        ]

    limits = [{"name": one.metric, "bound": one.bound, "at_least": one.at_least} for one in ramp.limits]
    directions = {"higher": loads(higher=True), "lower": loads(higher=False)}
    return {**directions, "limits": limits, "most": ramp.most, "measuring_s": serve.measuring_s}


def _load_record(load: LoadCommand | Requests, params: Mapping[str, object], *, shell: bool) -> dict[str, Any]:
    record: dict[str, Any]
    if isinstance(load, LoadCommand):
        record = {"argv": _load_arguments(load.run, params, shell=shell), "results": fill(load.results, params)}
    else:
        record = {
            "rate": None if load.rate is None else _number(load.rate, params, "rate"),
            "concurrency": None
            if load.concurrency is None
            else round(_number(load.concurrency, params, "concurrency")),
            "prompt_tokens": round(_number(load.prompt_tokens, params, "prompt_tokens")),
            "output_tokens": round(_number(load.output_tokens, params, "output_tokens")),
            "prompts": fill(load.prompts, params),
            "api": load.api,
            "model": fill(load.model, params),
            "warmup_s": load.warmup_s,
            "request_timeout_s": load.request_timeout_s,
            "max_errors": load.max_errors,
            "extra": dict(load.extra),
            "seed": load.seed,
        }
    return record


def with_unit_costs(metrics: Mapping[str, float], usd_per_s: float) -> dict[str, float]:
    """Metrics with the dollars of a million output tokens and of a million requests, where the load measured their rates.

    >>> with_unit_costs({"throughput": 1000.0}, 3.6 / 3600)["usd_per_mtok"]
    1.0
    """
    costs = {"throughput": "usd_per_mtok", "requests_per_s": "usd_per_mrequest"}
    found = {}
    for name, rate in metrics.items():
        metric, mark, row = name.partition(ROW_MARK)
        if metric in costs and rate > 0:
            found[costs[metric] + mark + row] = usd_per_s / rate * 1e6
    return {**found, **metrics}


def _load_arguments(run: tuple[str, ...] | str, params: Mapping[str, object], *, shell: bool) -> list[str]:
    if not isinstance(run, str):
        return [fill(element, params) for element in run]
    return ["/bin/sh", "-e", "-c", fill_script(run, params) if shell else run]


def _number(value: Number, params: Mapping[str, object], name: str) -> float:
    text = fill(value, params) if isinstance(value, str) else value
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise InputError(
            f"serve.load.{name}: {shown(text)} is not a number above 0; correct it, or the parameter that it names."
        )
    return number
