"""The section `trial`: timeouts, retries and parallelism of trials."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from lynceus.errors import InputError
from lynceus.jobfile.sections.values import shortened
from lynceus.problem.fields import Duration, Section
from lynceus.problem.units import parse_duration


class RetriesSection(Section):
    """How often a failed trial is retried, by the cause of the failure."""

    infra: int = Field(default=2, ge=0, description="after failures of machines (exit code 75, lost processes)")
    preempted: int = Field(
        default=2, ge=0, description="after the cloud took the machines back (exit code 85); see resources.spot"
    )
    job: int = Field(default=0, ge=0, description="after failures of the job itself, which usually repeat")


def _pattern(value: object) -> str:
    """A pattern of paths that stay inside the working directory."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError(f"got {shortened(value)}; write a path or a pattern such as 'data/*.csv'.")
    if value.startswith(("/", "~")) or ".." in value.split("/"):
        raise ValueError(
            f"got {shortened(value)}; files are brought in from the working directory only, so write a path inside it."
        )
    return value


Pattern = Annotated[str, BeforeValidator(_pattern), WithJsonSchema({"type": "string", "minLength": 1})]
"""A path inside the working directory; `*`, `?`, `[...]` and `**` stand for parts of it."""


class TrialSection(Section):
    """How single trials are run."""

    timeout: str = Field(default="auto", description="auto (the policy's own rule), none, or a named rule such as tg")
    max_duration: Duration | None = Field(
        default=None, description="every trial is stopped after this time, whatever the timeout rule says"
    )
    stop_hopeless: float | None = Field(
        default=None,
        gt=0,
        le=0.5,
        description="stop a training whose learning curve says that it will miss a limit on a metric; the chance of error, such as 0.05",
    )
    parallel: int = Field(default=1, ge=1, le=1024, description="trials at the same time")
    retries: RetriesSection = Field(default_factory=RetriesSection)
    confirm_best: int | None = Field(
        default=None,
        ge=0,
        le=20,
        description="reruns of the best configuration to confirm it, from a reserved part of the budget; null: as the policy decides",
    )
    grace: Duration = Field(default=10.0, description="between SIGTERM and SIGKILL; reserved, and charged if used")
    max_failures: int = Field(default=5, ge=1, description="consecutive failures after which the study pauses")
    scratch: Literal["none", "env", "cwd"] = Field(
        default="env",
        description="a directory for each trial: none, env (its path is in LYNCEUS_SCRATCH) or cwd (the trial is also started in it)",
    )
    copy_: list[Pattern] = Field(
        default=[], alias="copy", description="with scratch: cwd, what is copied into it from the working directory"
    )
    link: list[Pattern] = Field(
        default=[], description="with scratch: cwd, what is linked into it from the working directory, to be read only"
    )
    keep_scratch: bool = Field(
        default=False, description="keep the scratch directories in the run directories after trials have ended"
    )

    @model_validator(mode="before")
    @classmethod
    def _needs_scratch(cls, value: object) -> object:
        where = value.get("scratch", "env") if isinstance(value, dict) else None
        for name in ("copy", "link") if where in ("none", "env") else ():
            if value.get(name):  # type: ignore[attr-defined]
                raise ValueError(
                    f"'{name}' brings files into the directory that a trial is started in, which scratch: {where} does not give it; "
                    "add scratch: cwd."
                )
        if where == "none" and value.get("keep_scratch"):  # type: ignore[attr-defined]
            raise ValueError("'keep_scratch' keeps nothing with scratch: none; write scratch: env or scratch: cwd.")
        return value

    @field_validator("timeout", mode="before")
    @classmethod
    def _rule(cls, value: object) -> object:
        if isinstance(value, int | float) or (isinstance(value, str) and re.match(r"\s*\d", value)):
            try:
                parse_duration(value)
            except InputError:
                pass
            else:
                raise ValueError(
                    f"{shortened(value)} is a duration, but timeout names a rule; write max_duration: {value} instead."
                )
        if not isinstance(value, str):
            raise ValueError(f"got {shortened(value)}; write auto, none, or the name of a rule such as tg.")
        return value

    @field_validator("max_duration")
    @classmethod
    def _positive(cls, value: float | None) -> float | None:
        if value == 0:
            raise ValueError("got 0 seconds, in which no trial finishes; give a duration above 0.")
        return value
