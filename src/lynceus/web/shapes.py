"""The shapes of requests and answers, with an example each: they become the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Header, Path, Query
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

LONGEST_TEXT = 2_000
MOST_METRICS = 200
MOST_POINTS = 10_000
MOST_AT_ONCE = 1_000


def _writable(value: str) -> str:
    """Databases store neither NUL nor half a surrogate pair."""
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError("the text holds a character that cannot be stored (NUL, or half a surrogate pair)")
    return value


def _finite_number(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, float) and value - value != 0.0):
        raise ValueError("a finite number is needed")
    if isinstance(value, int) and abs(value) > 10**15:
        raise ValueError("a smaller number is needed")
    return value


Text = Annotated[str, AfterValidator(_writable), Field(max_length=LONGEST_TEXT)]
Word = Annotated[str, AfterValidator(_writable), Field(min_length=1, max_length=200)]
Number = Annotated[float, BeforeValidator(_finite_number), Field(ge=-1e300, le=1e300)]
Amount = Annotated[float | Annotated[str, Field(max_length=60)], BeforeValidator(_finite_number)]
Scalar = Annotated[str | bool | int | float, BeforeValidator(lambda value: value)]
Params = Annotated[
    dict[Word, Text | bool | Number | None],
    Field(max_length=MOST_METRICS, description="a configuration: parameter and value"),
]
Metrics = Annotated[dict[Word, Number], Field(max_length=MOST_METRICS)]

StudyName = Annotated[
    str, Path(min_length=1, max_length=200, description="the name of a study", examples=["nightly-sessions"])
]
TrialNumber = Annotated[int, Path(ge=0, le=2_147_483_647, description="the number of a trial, from 0 on", examples=[3])]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="a random text, the same for every repetition of this request: it is done once, whichever server hears it",
        examples=["8c2f4a1e-9c7e-4f83-a7d0-0d3f5f1f2b61"],
    ),
]
Deadline = Annotated[
    str,
    Query(min_length=1, max_length=30, description="a time such as 45m, or seconds", examples=["45m"]),
]


class Body(BaseModel):
    """A JSON object with known fields; any other field is a mistake."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Tell(Body):
    """How a trial went."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"runtime": 312.5, "metrics": {"accuracy": 0.93}}, {"runtime": "10m", "state": "TIMEOUT"}]
        },
    )

    runtime: Amount | None = Field(default=None, description="seconds, or a time such as '12m'")
    state: Literal["COMPLETE", "TIMEOUT", "FAIL"] = Field(
        default="COMPLETE", description="TIMEOUT: it was stopped at its timeout, which teaches a lower bound"
    )
    reason: Literal["infra", "preempted", "oom", "job", "user"] | None = Field(
        default=None, description="whose fault, when it failed; job by default"
    )
    charged: Amount | None = Field(
        default=None, description="dollars, when the real bill is known; else the tariff tells"
    )
    metrics: Metrics = Field(default_factory=dict)
    progress: list[tuple[Number, Number]] = Field(
        default_factory=list, max_length=MOST_POINTS, description="(seconds, progress) pairs"
    )
    detail: Text = Field(default="", description="one sentence for people")


class Stop(Body):
    """End a study."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"kill": False}]})

    kill: bool = Field(default=False, description="end open trials, too")
    reason: Annotated[Text, Field(max_length=500)] = "stopped by the user"


class Resume(Body):
    """Continue a study."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"add_budget": "5 USD"}]})

    add_budget: Amount = Field(default=0.0, description="more money for the search")


class Empty(Body):
    """No fields."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{}]})


class Wanted(Body):
    """A configuration that a person wants to be run next."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"params": {"threads": 4, "level": 1}}]})

    params: Params


class Measurement(Body):
    """A past run."""

    params: Params
    runtime: Amount = Field(description="seconds, or a time such as '12m'")
    metrics: Metrics = Field(default_factory=dict)


class Measurements(Body):
    """Past runs as free knowledge: all are taken, or none."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"trials": [{"params": {"threads": 4, "level": 1}, "runtime": "12m"}]}]},
    )

    trials: list[Measurement] = Field(min_length=1, max_length=MOST_AT_ONCE)


class SignIn(Body):
    """A token, from a form."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"token": "a long random text"}]})

    token: Annotated[str, Field(min_length=1, max_length=500)]


class Problem(BaseModel):
    """What went wrong, in one sentence (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"title": "Not Found", "status": 404, "detail": "There is no study 'weekly' here."}]
        }
    )

    title: str
    status: int
    detail: str


class AskedTrial(BaseModel):
    """A trial that is to be run."""

    number: int
    params: dict[str, Any]
    timeout_s: float | None = Field(description="stop the run after so many seconds; null: let it finish")
    why: str
    price_usd_per_hour: float
    max_charge_usd: float | None = Field(description="set aside in the budget until the trial is told")


class Asked(BaseModel):
    """The next trial, or why there is none now."""

    trial: AskedTrial | None
    reason: str | None = Field(description="why there is no trial")
    wait: bool = Field(description="trials are open: when one of them has settled there may be more to do")


class Told(BaseModel):
    """What was written down of a trial."""

    trial: dict[str, Any]
    spent_usd: float


class Beat(BaseModel):
    """What a person wants by now."""

    wish: Literal["run", "stop", "kill"] = Field(
        description="run: go on; stop: go on, ask for no more; kill: end this trial and tell FAIL with reason user"
    )


class Created(BaseModel):
    """A study that exists now."""

    name: str


class Health(BaseModel):
    """The server lives and reaches its storage."""

    status: Literal["ok"]
    version: str


class Session(BaseModel):
    """What the browser may do."""

    signed_in: bool
    can_read: bool
    can_write: bool
    csrf: str | None = Field(description="the value of X-CSRF-Token for changes")
    needs_token: bool = Field(description="a read token is configured")
    writes: bool = Field(description="a write token is configured")
    version: str
