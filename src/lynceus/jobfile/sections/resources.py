"""The section `resources`: what a trial may use of the local machine, or which cloud machines it may run on."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator, model_validator

from lynceus.errors import InputError
from lynceus.jobfile.sections.values import as_list
from lynceus.prices.requirements import Infra, Range, Requirements, parse_accelerator
from lynceus.problem.fields import Section

_CHOOSING = ("infra", "instance_type", "accelerators", "any_of")
"""Fields that choose machines from a catalog; without one of them, resources describe the local machine."""
_CLOUD_ONLY = ("num_nodes", "use_spot", "spot")
_ALTERNATIVE = ("infra", "instance_type", "accelerators", "cpus", "memory")
"""Fields that an entry of `any_of` may have."""


class SpotSection(Section):
    """How often spot machines are interrupted, and what happens then."""

    rate_per_hour: float = Field(
        default=0.05,
        ge=0,
        description="interruptions of one machine per hour; a configuration has num_nodes times as many",
    )
    interruptions: int = Field(
        default=2, ge=1, description="after this many interruptions, a configuration is moved to on-demand machines"
    )
    on_demand: bool = Field(
        default=True, description="false: never move it; retry it as often as trial.retries.preempted says"
    )
    rehearse: bool = Field(
        default=False, description="let Lynceus interrupt trials on spot machines at this rate, to see what happens"
    )


class ResourcesSection(Section):
    """Cloud machines that a trial may run on, or what it may use of the local machine."""

    cpus: float | str | None = Field(
        default=None,
        description="with infra: vCPUs of a machine (4, 4+, 4-8); else cores of a trial: a number or an expression",
    )
    memory: float | str | None = Field(
        default=None,
        description="with infra: GiB of a machine (16, 16+, 16-64); else memory of a trial: 512 MB, or GiB as a number or expression",
    )
    infra: str | list[str] | None = Field(
        default=None,
        description="cloud, region and zone: aws, aws/us-east-1, aws/us-east-1/use1-az1; or a list of them",
    )
    instance_type: str | list[str] | None = Field(
        default=None, description="machines by name, with * as a wildcard: m5.xlarge, [m5.*, c5.*]"
    )
    accelerators: str | list[str] | dict[str, float] | None = Field(
        default=None, description="accelerators of a machine: T4:1; a list or a mapping of alternatives"
    )
    any_of: list[dict[str, Any]] = Field(
        default=[], description="alternatives; the fields of each replace those beside any_of"
    )
    num_nodes: int | list[int] | None = Field(default=None, description="how many machines: 4, or [1, 2, 4]")
    use_spot: bool | list[bool] = Field(
        default=False, description="spot machines: true, false, or [true, false] to let the search choose"
    )
    spot: SpotSection = Field(default_factory=SpotSection)

    @field_validator("cpus", "memory", mode="before")
    @classmethod
    def _positive(cls, value: object) -> object:
        if isinstance(value, bool) or (isinstance(value, int | float) and not value > 0):
            raise ValueError(f"got {str(value)[:60]}; give an amount above 0, or an expression over columns.")
        return value

    @field_validator("num_nodes", mode="after")
    @classmethod
    def _some_nodes(cls, value: int | list[int] | None) -> int | list[int] | None:
        if value is not None and (value == [] or any(one < 1 for one in as_list(value))):
            raise ValueError(f"got {value!r}; give a whole number of at least 1, or a list such as [1, 2, 4].")
        return value

    @field_validator("use_spot", mode="after")
    @classmethod
    def _some_tenancy(cls, value: bool | list[bool]) -> bool | list[bool]:
        if value == []:
            raise ValueError("got an empty list; write true, false, or [true, false].")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> ResourcesSection:
        given = self.model_fields_set
        if not self.from_catalog:
            for name in _CLOUD_ONLY:
                if name in given and name != "num_nodes" and getattr(self, name) is not False:
                    raise ValueError(f"{name} describes cloud machines; add infra, such as infra: aws/us-east-1.")
            if "num_nodes" in given:
                raise ValueError("num_nodes describes cloud machines; add infra, or make it a parameter of space.")
            for name in ("cpus", "memory"):
                if isinstance(value := getattr(self, name), str) and value.strip().endswith("+"):
                    raise ValueError(
                        f"{name}: {value} chooses machines from a catalog; add infra, such as infra: aws/us-east-1."
                    )
        if "spot" in given and not any(self.spots):
            raise ValueError("spot describes spot machines, but use_spot asks for none; add use_spot: true.")
        try:
            self.requirements()
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def from_catalog(self) -> bool:
        """Whether trials run on machines of a catalog, rather than within limits on this machine."""
        return any(getattr(self, name) for name in _CHOOSING)

    @property
    def spots(self) -> tuple[bool, ...]:
        """The allowed values of `use_spot`."""
        return tuple(dict.fromkeys(as_list(self.use_spot)))

    @property
    def nodes(self) -> tuple[int, ...]:
        """The allowed numbers of machines; empty when the space has a parameter for it."""
        return () if self.num_nodes is None else tuple(dict.fromkeys(as_list(self.num_nodes)))

    def requirements(self) -> tuple[Requirements, ...]:
        """What machines must have, one entry per alternative; empty for the local machine."""
        if not self.from_catalog:
            return ()
        base = {name: getattr(self, name) for name in _ALTERNATIVE}
        found = []
        for place, alternative in enumerate(self.any_of or [{}]):
            for name in alternative:
                if name not in _ALTERNATIVE:
                    raise InputError(
                        f"any_of, entry {place + 1}: {name!r} is not allowed here; use {', '.join(_ALTERNATIVE)}."
                    )
            found.append(_requirements({**base, **alternative}))
        return tuple(found)


def _requirements(values: dict[str, Any]) -> Requirements:
    accelerators = values["accelerators"]
    if isinstance(accelerators, dict):
        accelerators = [f"{name}:{count}" for name, count in accelerators.items()]
    return Requirements(
        tuple(Infra.parse(one) for one in as_list(values["infra"])) or (Infra(),),
        tuple(str(one) for one in as_list(values["instance_type"])),
        None if values["cpus"] is None else _range(values["cpus"], "cpus"),
        None if values["memory"] is None else _range(values["memory"], "memory"),
        tuple(parse_accelerator(one) for one in as_list(accelerators)),
    )


def _range(value: object, field: str) -> Range:
    try:
        return Range.parse(value, field)
    except InputError as error:
        raise InputError(f"{field}: {error}") from None
