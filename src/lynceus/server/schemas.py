"""Schemas of requests and responses, with an example each; they become part of the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Header, Path
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from lynceus.space.column import is_storable
from lynceus.storage.access_token import Role
from lynceus.storage.sql.notes import MAX_NOTE
from lynceus.trial.text import clean_line, clean_name, clean_text

MAX_TEXT = 2_000
MAX_NAME = 200
MAX_METRICS = 200
MAX_POINTS = 10_000
MAX_TRIALS = 1_000


def _storable(value: str) -> str:
    if not is_storable(value):
        raise ValueError("the text has a character that cannot be stored (NUL, or half a surrogate pair)")
    return value


def _finite_number(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, float) and value - value != 0.0):
        raise ValueError("give a finite number")
    if isinstance(value, int) and abs(value) > 10**15:
        raise ValueError("give a smaller number")
    return value


def _clean_sentence(value: object) -> object:
    return clean_line(value) if isinstance(value, str) and len(value) <= MAX_TEXT else value


def _clean_names(value: object) -> object:
    """Metrics by clean names; like a job that reports a metric twice, the last value of a name counts."""
    if not isinstance(value, dict):
        return value
    return {clean_name(name) if len(name) <= MAX_NAME else name: one for name, one in value.items()}


def _clean_note(value: object) -> object:
    return clean_text(value) if isinstance(value, str) and len(value) <= MAX_NOTE else value


Text = Annotated[str, AfterValidator(_storable), Field(max_length=MAX_TEXT)]
Sentence = Annotated[str, BeforeValidator(_clean_sentence), Field(max_length=MAX_TEXT)]
"""Text for people: characters that cannot be stored or shown are replaced."""
Name = Annotated[str, AfterValidator(_storable), Field(min_length=1, max_length=MAX_NAME)]
Number = Annotated[float, BeforeValidator(_finite_number), Field(ge=-1e300, le=1e300)]
Amount = Annotated[float | Annotated[str, Field(max_length=60)], BeforeValidator(_finite_number)]
Params = Annotated[
    dict[Name, Text | bool | Number | None],
    Field(max_length=MAX_METRICS, description="a configuration: values by parameter name"),
]
Metrics = Annotated[dict[Name, Number], BeforeValidator(_clean_names), Field(max_length=MAX_METRICS)]

StoredText = Annotated[str, AfterValidator(_storable)]
StudyName = Annotated[
    StoredText,
    Path(min_length=1, max_length=200, description="the name of a study", examples=["nightly-sessions"]),
]
TrialNumber = Annotated[
    int, Path(ge=0, le=2_147_483_647, description="the number of a trial; the first one is 0", examples=[3])
]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="a random text, the same whenever this request is repeated; the request takes effect once, on whichever server",
        examples=["8c2f4a1e-9c7e-4f83-a7d0-0d3f5f1f2b61"],
    ),
]


class Body(BaseModel):
    """A JSON object; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Tell(Body):
    """The result of a trial."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"runtime": 312.5, "metrics": {"accuracy": 0.93}}, {"runtime": "10m", "state": "TIMEOUT"}]
        },
    )

    runtime: Amount | None = Field(default=None, description="seconds, or a duration such as '12m'")
    state: Literal["COMPLETE", "TIMEOUT", "FAIL"] = Field(
        default="COMPLETE", description="TIMEOUT: the run was stopped at its timeout; the model learns a lower bound"
    )
    reason: Literal["infra", "preempted", "oom", "job", "user"] | None = Field(
        default=None, description="why it failed; `job` by default"
    )
    charged: Amount | None = Field(
        default=None, description="what was charged, in dollars; computed from runtime and price if left out"
    )
    metrics: Metrics = Field(default_factory=dict)
    progress: list[tuple[Number, Number]] = Field(
        default_factory=list, max_length=MAX_POINTS, description="(seconds, progress) pairs"
    )
    detail: Sentence = Field(default="", description="one sentence for the user")


class Stop(Body):
    """Stop a study."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"kill": False}]})

    kill: bool = Field(default=False, description="also end the open trials")
    reason: Annotated[Sentence, Field(max_length=500)] = "stopped by the user"


class Resume(Body):
    """Resume a study."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"add_budget": "5 USD"}]})

    add_budget: Amount = Field(default=0.0, description="money to add to the budget")
    add_trials: int = Field(default=0, ge=0, le=1_000_000, description="trials to add, where the budget limits them")
    constraints: list[Annotated[str, Field(max_length=300)]] = Field(
        default=[],
        max_length=20,
        description="other limits, as in a job file; each takes the place of the one on its quantity, or is added",
        examples=[["runtime <= 45m"]],
    )


class Empty(Body):
    """No fields."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{}]})


class Enqueue(Body):
    """A configuration to run next."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"params": {"threads": 4, "level": 1}}]})

    params: Params


class Measurement(Body):
    """A past run."""

    params: Params
    runtime: Amount | None = Field(
        default=None, description="seconds, or a duration such as '12m'; may be left out of a run that failed"
    )
    metrics: Metrics = Field(default_factory=dict)
    state: Literal["COMPLETE", "TIMEOUT", "FAIL"] = Field(
        default="COMPLETE", description="TIMEOUT: the run was stopped; the model learns a lower bound"
    )
    reason: Literal["infra", "preempted", "oom", "job", "user"] | None = Field(
        default=None, description="why it failed; `job` by default"
    )
    detail: Sentence = Field(default="", description="one sentence for the user")


class Measurements(Body):
    """Past runs; either all of them are added, or none."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"trials": [{"params": {"threads": 4, "level": 1}, "runtime": "12m"}]}]},
    )

    trials: list[Measurement] = Field(min_length=1, max_length=MAX_TRIALS)
    input: dict[str, Any] | str | None = Field(
        default=None, description="what these runs read, such as 120 GB; by default the present input of the study"
    )


class WriteNote(Body):
    """A note on a study."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"text": "Moved to larger disks on Monday.", "replaces": 2}]}
    )

    text: Annotated[str, BeforeValidator(_clean_note), Field(max_length=MAX_NOTE)]
    replaces: int | None = Field(
        default=None,
        ge=0,
        le=2_147_483_647,
        description="the version that the writer has read; refused (409) when there is a newer one. Left out: whatever it is",
    )


class Rename(Body):
    """Another name for a study."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"name": "nightly-sessions-2025"}]})

    name: Name


class SignIn(Body):
    """A token from the sign-in form."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"token": "a long random text"}]})

    token: Annotated[str, Field(min_length=1, max_length=500)]


class Problem(BaseModel):
    """An error, in one sentence (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"title": "Not Found", "status": 404, "detail": "There is no study 'weekly' here."}]
        }
    )

    title: str
    status: int
    detail: str
    see: str | None = Field(
        default=None, description="the page of the documentation that says more, where there is one"
    )


class AskedTrial(BaseModel):
    """A trial to run."""

    number: int
    params: dict[str, Any]
    timeout_s: float | None = Field(description="stop the run after so many seconds; null: let it finish")
    why: str
    price_usd_per_hour: float
    max_charge_usd: float | None = Field(description="reserved in the budget until the trial is reported")


class Asked(BaseModel):
    """The next trial, or why there is none now."""

    trial: AskedTrial | None
    reason: str | None = Field(description="why there is no trial")
    wait: bool = Field(description="trials are open; there may be another trial when one of them has settled")


class Settled(BaseModel):
    """The trial as it is stored now."""

    trial: dict[str, Any]
    spent_usd: float


class Heartbeat(BaseModel):
    """What the user wants of the client by now."""

    requested_state: Literal["run", "stop", "kill"] = Field(
        description="run: go on; stop: finish this trial, then ask for no more; kill: end this trial and report FAIL with reason user"
    )


class Renamed(BaseModel):
    """The study under its new name."""

    name: str


class Created(BaseModel):
    """The study that was created."""

    name: str
    note: str | None = Field(default=None, description="what of its history the study does not use, and why")


class Note(BaseModel):
    """What users have written about a study."""

    text: str
    version: int = Field(description="how often it was written; 0: never")
    written_s: float | None = Field(description="seconds since the epoch; null while nothing was written")


class Deleted(BaseModel):
    """The study that was deleted."""

    name: str
    trials: int = Field(description="settled trials whose results are gone")
    left: str | None = Field(description="what could not be removed outside the storage, as a sentence")


class Health(BaseModel):
    """The server runs and reaches its storage."""

    status: Literal["ok"]
    version: str


class Session(BaseModel):
    """What the browser is allowed to do."""

    signed_in: bool
    role: Role | None = Field(description="null: only what needs no token")
    token: str | None = Field(description="the name of the token, where it has one")
    can_read: bool
    can_write: bool
    csrf: str | None = Field(description="the value of X-CSRF-Token for changes")
    needs_token: bool = Field(description="reading needs a token")
    writes: bool = Field(description="there is a token that allows changes")
    version: str
