"""All fields of a job file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from lynceus.jobfile.sections.budget import BillingSection, BudgetSection
from lynceus.jobfile.sections.executor import ExecutorSection
from lynceus.jobfile.sections.history import History, checked
from lynceus.jobfile.sections.input import InputSection
from lynceus.jobfile.sections.metrics import MetricSection
from lynceus.jobfile.sections.notify import NotifySection
from lynceus.jobfile.sections.probe import ProbeSection
from lynceus.jobfile.sections.resources import ResourcesSection
from lynceus.jobfile.sections.savings import BaselineSection, FutureSection
from lynceus.jobfile.sections.serve import ServeSection, command_words
from lynceus.jobfile.sections.space import DerivedSection, FractionSection, ParameterSection, PricesSection
from lynceus.jobfile.sections.tracking import TrackingSection
from lynceus.jobfile.sections.trial import TrialSection
from lynceus.jobfile.sections.values import EnvName, EnvValue, Run, SecretSource, shortened, study_name
from lynceus.jobfile.yaml.errors import FieldError
from lynceus.problem.baseline import has_fields
from lynceus.problem.fields import Section
from lynceus.trial.shared_budget import LONGEST_NAME, is_payer_name

_FOREIGN_FIELDS: Mapping[str, str] = {
    "fidelity": "make the fraction of the data a parameter of the space and name it, such as fraction: {column: share, answer: full}.",
    "num_nodes": "make the number of nodes a parameter of the space.",
    "file_mounts": "no files are copied, because jobs run in workdir on this machine; remove it.",
    "deadline": "write it as a constraint: constraints: ['runtime <= 45m'].",
    "parameters": "list parameters in the section 'space'.",
    "command": "write the command in 'run'.",
}
"""Fields that users know from other tools, and what to write instead."""


class JobFile(Section):
    """A recurring job, the configurations it can run in, and what the search for the best one may cost."""

    version: Literal[1] = Field(default=1, description="the version of this format")
    name: str = Field(description="the name of the study")
    workdir: str = Field(default=".", description="where the job runs, relative to this file")
    setup: Run | None = Field(default=None, description="run once before the first trial, not charged")
    run: Run | None = Field(default=None, description="the job: a list of arguments, or a script")
    """None for servers (`serve`), and for studies whose trials other programs run: files need one of both, requests to the server none."""
    serve: ServeSection | None = Field(
        default=None, description="instead of run: a server that every trial starts, and the load that measures it"
    )
    shell: bool = Field(
        default=False,
        description="insert parameter values into the script, quoted; otherwise they are environment variables",
    )
    envs: dict[EnvName, EnvValue] = Field(
        default={}, description="environment variables; ${name} is replaced by a value of the configuration"
    )
    secrets: dict[EnvName, SecretSource] = Field(
        default={}, description="environment variables whose values are read whenever trials start"
    )
    resources: ResourcesSection = Field(default_factory=ResourcesSection)
    space: dict[str, ParameterSection] = Field(
        default={},
        validate_default=True,
        description="the parameters of a configuration, besides the machines that resources choose",
    )
    derived: dict[str, DerivedSection] = Field(
        default={}, description="columns that follow from a configuration: memory of a machine, total cores"
    )
    forbid: list[str] = Field(
        default=[], description="expressions over columns; configurations for which one is true are left out"
    )
    fraction: FractionSection | None = Field(
        default=None, description="the parameter that is the fraction of the data a trial reads"
    )
    probe: ProbeSection | None = Field(
        default=None,
        description="run small shares of the input on this machine first, to learn how much memory the whole input needs; needs 'fraction'",
    )
    price: str | float | None = Field(
        default=None, description="dollars per hour of a configuration: a number, a column or an expression"
    )
    prices: PricesSection | None = Field(default=None, description="a catalog of machines, joined by name")
    billing: BillingSection = Field(default_factory=BillingSection)
    objective: str = Field(
        default="cost",
        description="cost, time, 'maximize accuracy', or a formula: 'minimize price / throughput'",
    )
    constraints: list[str] = Field(
        default=[], description="constraints such as 'runtime <= 45m @ 0.95' and 'accuracy >= 0.92'"
    )
    budget: BudgetSection = Field(description="what the search may spend")
    trial: TrialSection = Field(default_factory=TrialSection)
    metrics: dict[str, MetricSection] = Field(
        default={},
        description="metrics that jobs report: their unit, and a regular expression with one group for jobs that cannot be changed",
    )
    policy: str | dict[str, Any] = Field(default="lynceus", description="a named policy, or one composed of parts")
    seed: int = Field(default=0, ge=0, lt=2**63, description="the random seed: the same seed makes the same decisions")
    baseline: BaselineSection | None = Field(
        default=None,
        description="the configuration used until now, to compare the best one with; alone, or with its runtime or measure",
    )
    future: FutureSection | None = Field(
        default=None, description="how often the result will be used: {runs: 100} or {per_month: 30, months: 6}"
    )
    family: str | None = Field(
        default=None, description="jobs of one family are relatives: history: auto learns from their studies"
    )
    input: InputSection | None = Field(
        default=None,
        description="what runs read from now on: {size: 120 GB}, further numbers, names; the model learns how time grows with it",
    )
    history: History | None = Field(
        default=None, description="earlier jobs to learn from: auto, or a list of studies and files"
    )
    executor: ExecutorSection = Field(default_factory=ExecutorSection)
    tracking: TrackingSection | None = Field(
        default=None, description="where trials are logged: MLflow, Weights & Biases, OpenTelemetry"
    )
    notify: NotifySection | None = Field(
        default=None, description="who is notified when the study ends, pauses or has used most of its budget"
    )
    project: str | None = Field(default=None, description="the project whose monthly budget the study draws on")
    owner: str | None = Field(
        default=None, description="the person whose monthly budget it draws on; by default who starts the study"
    )
    storage: str | None = Field(
        default=None, description="where the study is kept: sqlite:///lynceus.db or postgresql+psycopg://…"
    )

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, value: Any) -> Any:
        if isinstance(value, dict):
            for name, advice in _FOREIGN_FIELDS.items():
                if name in value and name not in cls.model_fields:
                    raise FieldError(name, f"'{name}' is not used here; {advice}")
            if value.get("run") is not None and value.get("serve") is not None:
                raise FieldError(
                    "serve",
                    "it has both 'run' and 'serve'; a trial is either a job or a server under load, so remove one.",
                )
            names = value.get("secrets")
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                value = {**value, "secrets": {name: f"env:{name}" for name in names}}
        return value

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        return study_name(value)

    @field_validator("project", "owner")
    @classmethod
    def _payer_name(cls, value: str | None) -> str | None:
        if value is not None and not is_payer_name(value):
            raise ValueError(
                f"got {shortened(value)}; give 1 to {LONGEST_NAME} printable characters, such as forecasts."
            )
        return value

    @field_validator("history", mode="before")
    @classmethod
    def _history(cls, value: Any) -> Any:
        return None if value is None else checked(value)

    @field_validator("run", "setup", mode="before")
    @classmethod
    def _command(cls, value: Any) -> Any:
        return command_words(value)

    @field_validator("baseline", mode="before")
    @classmethod
    def _long_form(cls, value: Any, info: ValidationInfo) -> Any:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ValueError(f"got {shortened(value)}; write a configuration, or {{config: …, runtime: 41m}}.")
        space = info.data.get("space", {})
        if not has_fields(value, space):
            return {"config": value}
        if "config" not in value and any(name in space for name in value):
            raise ValueError(
                "beside runtime and measure, the configuration needs a field: {config: {…}, runtime: 41m}."
            )
        return value

    @field_validator("space")
    @classmethod
    def _some_parameters(cls, value: dict[str, ParameterSection], info: ValidationInfo) -> dict[str, ParameterSection]:
        resources = info.data.get("resources")  # absent when it is invalid itself
        if not value and resources is not None and not resources.from_catalog:
            raise ValueError("it has no parameters; name at least one, such as 'threads: [1, 2, 4]'.")
        if "forbid" in value:
            raise ValueError("'forbid' belongs beside space, not inside it; move it one level up.")
        return value

    @model_validator(mode="after")
    def _probe_needs_fraction(self) -> JobFile:
        if self.probe is not None and self.fraction is None:
            raise FieldError(
                "probe",
                "'probe' runs shares of the input, but no 'fraction' names the parameter that holds the share; add it.",
            )
        if self.probe is not None and self.serve is not None:
            raise FieldError("probe", "'probe' runs a job on shares of its input; a server has none, so remove it.")
        return self

    @property
    def patterns(self) -> dict[str, str]:
        """Metric → the regular expression that reads it, where there is one."""
        return {name: one.pattern for name, one in self.metrics.items() if one.pattern is not None}

    @property
    def units(self) -> dict[str, str]:
        """Metric → unit, where one is declared."""
        return {name: one.unit for name, one in self.metrics.items() if one.unit is not None}
