"""The job file as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from lynceus.document import Section
from lynceus.job.notices import NotifySection
from lynceus.job.resources import ResourcesSection
from lynceus.job.sections import (
    BillingSection,
    BudgetSection,
    DerivedSection,
    ExecutorSection,
    FractionSection,
    ParameterSection,
    PricesSection,
    Run,
    TrialSection,
)
from lynceus.job.words import EnvName, EnvValue, SecretSource, study_name

_ELSEWHERE: Mapping[str, str] = {
    "fidelity": "the share of the data is a parameter of the space; name it, such as fraction: {column: share, answer: full}.",
    "num_nodes": "the number of nodes is something to search: write it as a parameter of the space.",
    "file_mounts": "jobs run on this machine, in workdir; no files are copied, so remove it.",
    "deadline": "write it as a limit: constraints: ['runtime <= 45m'].",
    "parameters": "parameters stand in the section 'space'.",
    "command": "the command stands in 'run'.",
}
"""Words that people bring from elsewhere, and what to write instead."""


class JobFile(Section):
    """A recurring job, the configurations it can run in, and what the search for the best one may cost."""

    version: Literal[1] = Field(default=1, description="the version of this format")
    name: str = Field(description="the name of the study")
    workdir: str = Field(default=".", description="where the job runs, relative to this file")
    setup: Run | None = Field(default=None, description="run once before the first trial, not charged")
    run: Run = Field(description="the job: a list of arguments, or a script")
    shell: bool = Field(
        default=False, description="paste parameter values into the script, quoted; otherwise they come by environment"
    )
    envs: dict[EnvName, EnvValue] = Field(
        default={}, description="environment variables; ${name} stands for a value of the configuration"
    )
    secrets: dict[EnvName, SecretSource] = Field(
        default={}, description="environment variables whose values are looked up at each start"
    )
    resources: ResourcesSection = Field(default_factory=ResourcesSection)
    space: dict[str, ParameterSection] = Field(
        default={},
        validate_default=True,
        description="what a configuration chooses, beside the machines that resources name",
    )
    derived: dict[str, DerivedSection] = Field(
        default={}, description="what follows from a configuration: memory of a machine, total cores"
    )
    forbid: list[str] = Field(
        default=[], description="expressions over columns; configurations where one is true do not exist"
    )
    fraction: FractionSection | None = Field(
        default=None, description="the parameter that is the share of the data a trial reads"
    )
    price: str | float | None = Field(
        default=None, description="dollars per hour of a configuration: a number, a column or an expression"
    )
    prices: PricesSection | None = Field(default=None, description="a catalog of machines, joined by name")
    billing: BillingSection = Field(default_factory=BillingSection)
    objective: str = Field(default="cost", description="cost, time, or like 'maximize accuracy'")
    constraints: list[str] = Field(
        default=[], description="limits such as 'runtime <= 45m @ 0.95' and 'accuracy >= 0.92'"
    )
    budget: BudgetSection = Field(description="what the search may use up")
    trial: TrialSection = Field(default_factory=TrialSection)
    metrics: dict[str, str] = Field(
        default={}, description="metrics of jobs that cannot be changed: a regular expression with one group each"
    )
    policy: str | dict[str, Any] = Field(default="lynceus", description="a named policy, or one composed of parts")
    seed: int = Field(default=0, ge=0, description="names the luck: the same seed makes the same decisions")
    baseline: dict[str, Any] | None = Field(
        default=None, description="the configuration used until now, to compare the winner with"
    )
    executor: ExecutorSection = Field(default_factory=ExecutorSection)
    notify: NotifySection | None = Field(
        default=None, description="who is told when the study ends, pauses or has used most of its budget"
    )
    storage: str | None = Field(
        default=None, description="where the study is kept: sqlite:///lynceus.db or postgresql+psycopg://…"
    )

    @model_validator(mode="before")
    @classmethod
    def _no_strangers(cls, value: Any) -> Any:
        if isinstance(value, dict):
            for word, advice in _ELSEWHERE.items():
                if word in value and word not in cls.model_fields:
                    raise ValueError(f"'{word}' is not used here: {advice}")
            for word in ("secrets",):
                if isinstance(value.get(word), list):
                    value = {**value, word: {name: f"env:{name}" for name in value[word]}}
        return value

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        return study_name(value)

    @field_validator("run", "setup", mode="before")
    @classmethod
    def _command(cls, value: Any) -> Any:
        if isinstance(value, list) and value and all(isinstance(one, str | int | float) for one in value):
            return [str(one) if not isinstance(one, bool) else str(one).lower() for one in value]
        if isinstance(value, str) and value.strip():
            return value
        raise ValueError("a list of arguments such as [python, train.py, '${depth}'] or a script is needed.")

    @field_validator("space")
    @classmethod
    def _some_parameters(cls, value: dict[str, ParameterSection], info: ValidationInfo) -> dict[str, ParameterSection]:
        resources = info.data.get("resources")  # absent when it is wrong itself
        if not value and resources is not None and not resources.from_catalog:
            raise ValueError("it has no parameters: name at least one, such as 'threads: [1, 2, 4]'.")
        if "forbid" in value:
            raise ValueError("'forbid' stands beside space, not inside it: move it one level up.")
        return value
