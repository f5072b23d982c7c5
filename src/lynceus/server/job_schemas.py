"""Schemas of requests and responses about recurring jobs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Path
from pydantic import BaseModel, ConfigDict, Field

from lynceus.server.schemas import Amount, Body, Name, Number, Params, Sentence, StoredText

JobName = Annotated[
    StoredText, Path(min_length=1, max_length=200, description="the name of a recurring job", examples=["nightly"])
]
RunId = Annotated[Name, Field(description="of the scheduler; a run is recorded once", examples=["2026-11-18"])]
Size = Annotated[Amount, Field(description="of the input: a number, or '120 GB' (10⁹ bytes each)", examples=["120 GB"])]
VersionNumber = Annotated[int, Field(ge=1, le=2_147_483_647)]


class Authored(Body):
    """A change with who made it and why, for the audit."""

    by: Annotated[Sentence, Field(description="who does it; the address of the client by default")] = ""
    reason: Sentence = ""


class Adopt(Authored):
    """What production runs are to have from now on."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"study": "nightly-sessions", "by": "ana", "reason": "first"}]}
    )

    study: Name | None = Field(
        default=None, description="a study of this storage; by default the one of the job's name"
    )
    params: Params | None = Field(default=None, description="the configuration; by default the study's answer")


class Rollback(Authored):
    """An earlier version."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"to": 1, "by": "ana"}]})

    to: VersionNumber = Field(description="its number")


class StartRun(Body):
    """A run that starts now."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"run_id": "2026-11-18", "input": "120 GB"}]}
    )

    run_id: RunId
    input: Size | None = None


class RecordRun(Body):
    """A run that has ended."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"run_id": "2026-11-18", "runtime": "31m", "input": "120 GB", "cost": "$1.20"}]
        },
    )

    run_id: RunId
    runtime: Amount = Field(description="seconds, or a duration such as '31m'")
    input: Size | None = None
    cost: Amount | None = Field(default=None, description="in dollars; by default its time at the price of its version")
    version: VersionNumber | None = Field(default=None, description="the one in production by default")
    state: Literal["COMPLETE", "TIMEOUT", "FAIL"] = "COMPLETE"
    reason: Literal["infra", "preempted", "oom", "job", "user"] | None = Field(
        default=None, description="why it failed; `job` by default"
    )
    ended_s: Annotated[Number, Field(ge=0, le=1e11)] | None = Field(
        default=None, description="seconds since the epoch; now by default"
    )
    detail: Sentence = ""


class ChangeSettings(Authored):
    """What Lynceus may do; fields that are left out stay."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"mode": "apply", "allowance": "$20", "exclude": ["sat", "sun"]}]},
    )

    mode: Literal["observe", "suggest", "apply"] | None = None
    deadline: Amount | None = Field(default=None, description="a run that takes longer is late: '45m'")
    late_chance: Annotated[Number, Field(gt=0, lt=1)] | None = Field(
        default=None, description="the largest chance to be late with which something is tried"
    )
    allowance: Amount | None = Field(default=None, description="dollars that trying may cost more in a calendar month")
    exclude: Annotated[list[Name], Field(max_length=50)] | None = Field(
        default=None, description="when nothing is tried: 'sat', '2026-12-24', 'mon-fri 08:00-18:00'"
    )
    timezone: Name | None = None
    held: bool | None = Field(default=None, description="the kill switch")


class RunConfig(BaseModel):
    """What a run is to have."""

    job: str
    version: int
    params: dict[str, Any]
    run_id: str | None
    canary: bool = Field(description="the run tries this version; stop it after timeout_s")
    timeout_s: float | None = Field(description="of a canary; null: never stop it")
    instead_usd: float | None
    reason: str
    stale: bool


class Recorded(BaseModel):
    """Whether the run is new, and what Lynceus changed because of it."""

    new: bool
    version: int = Field(description="the version in production now")
    changes: list[dict[str, Any]]
