"""The section `resources`: what a trial may use of the local machine, or which machines of a cloud it may run on."""

from __future__ import annotations

from typing import Any

from pydantic import Field, field_validator, model_validator

from lynceus.document import Section
from lynceus.errors import InputError
from lynceus.prices.wanted import Amount, Place, Wanted, accelerator_of

_CHOOSING = ("infra", "instance_type", "accelerators", "any_of")
"""Fields that choose machines from a catalog; without one of them, resources speak of the local machine."""
_OF_MACHINES = ("num_nodes", "use_spot", "spot")
_ALTERNATIVE = ("infra", "instance_type", "accelerators", "cpus", "memory")
"""What an entry of `any_of` may say."""


class SpotSection(Section):
    """What is expected of spot machines, and what happens when the cloud takes one back."""

    rate_per_hour: float = Field(
        default=0.05,
        ge=0,
        description="interruptions of one machine per hour; a configuration has num_nodes times as many",
    )
    interruptions: int = Field(
        default=2, ge=1, description="a configuration that was interrupted so often is moved to on-demand machines"
    )
    on_demand: bool = Field(
        default=True, description="false: never moved; it is tried again as often as trial.retries.preempted says"
    )
    rehearse: bool = Field(
        default=False, description="end trials on spot machines at this rate by ourselves, to see what happens then"
    )


class ResourcesSection(Section):
    """Machines of a cloud that a trial may run on, or what it may use of the local machine."""

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
        default=None, description="machines by name, perhaps with *: m5.xlarge, [m5.*, c5.*]"
    )
    accelerators: str | list[str] | dict[str, float] | None = Field(
        default=None, description="accelerators of a machine: T4:1; a list or a mapping of alternatives"
    )
    any_of: list[dict[str, Any]] = Field(
        default=[], description="alternatives, each with fields of this section that take the place of those beside it"
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
            raise ValueError(f"{str(value)[:60]} came: give an amount above 0, or an expression over columns.")
        return value

    @field_validator("num_nodes", mode="after")
    @classmethod
    def _some_nodes(cls, value: int | list[int] | None) -> int | list[int] | None:
        if value is not None and (value == [] or any(one < 1 for one in _many(value))):
            raise ValueError(f"{value!r} came: give one whole number of at least 1, or a list such as [1, 2, 4].")
        return value

    @field_validator("use_spot", mode="after")
    @classmethod
    def _some_way(cls, value: bool | list[bool]) -> bool | list[bool]:
        if value == []:
            raise ValueError("an empty list came: write true, false, or [true, false].")
        return value

    @model_validator(mode="after")
    def _sense(self) -> ResourcesSection:
        given = self.model_fields_set
        if not self.from_catalog:
            for name in _OF_MACHINES:
                if name in given and name != "num_nodes" and getattr(self, name) is not False:
                    raise ValueError(f"{name} speaks of machines of a cloud: add infra, such as infra: aws/us-east-1.")
            if "num_nodes" in given:
                raise ValueError("num_nodes speaks of machines of a cloud: add infra, or make it a parameter of space.")
            for name in ("cpus", "memory"):
                if isinstance(value := getattr(self, name), str) and value.strip().endswith("+"):
                    raise ValueError(
                        f"{name}: {value} chooses machines of a catalog: add infra, such as infra: aws/us-east-1."
                    )
        if "spot" in given and not any(self.spots):
            raise ValueError("spot says what happens to spot machines, but use_spot asks for none: add use_spot: true.")
        try:
            self.wanted()
        except InputError as error:
            raise ValueError(str(error)) from None
        return self

    @property
    def from_catalog(self) -> bool:
        """Whether trials run on machines of a catalog, rather than within limits on this machine."""
        return any(getattr(self, name) for name in _CHOOSING)

    @property
    def spots(self) -> tuple[bool, ...]:
        """Whether spot machines may be used, on-demand ones, or both."""
        return tuple(dict.fromkeys(_many(self.use_spot)))

    @property
    def nodes(self) -> tuple[int, ...]:
        """How many machines a configuration may have; empty when the space says it."""
        return () if self.num_nodes is None else tuple(dict.fromkeys(_many(self.num_nodes)))

    def wanted(self) -> tuple[Wanted, ...]:
        """The machines that are asked for, one entry per alternative."""
        if not self.from_catalog:
            return ()
        base = {name: getattr(self, name) for name in _ALTERNATIVE}
        found = []
        for place, further in enumerate(self.any_of or [{}]):
            for name in further:
                if name not in _ALTERNATIVE:
                    raise InputError(
                        f"any_of, entry {place + 1}: {name!r} came; an alternative may say {', '.join(_ALTERNATIVE)}."
                    )
            found.append(_wanted({**base, **further}))
        return tuple(found)


def _wanted(values: dict[str, Any]) -> Wanted:
    infra, names, gpus = values["infra"], values["instance_type"], values["accelerators"]
    if isinstance(gpus, dict):
        gpus = [f"{name}:{count}" for name, count in gpus.items()]
    return Wanted(
        tuple(Place.parse(one) for one in _many(infra)) or (Place(),),
        tuple(str(one) for one in _many(names)),
        None if values["cpus"] is None else _amount(values["cpus"], "cpus"),
        None if values["memory"] is None else _amount(values["memory"], "memory"),
        tuple(accelerator_of(one) for one in _many(gpus)),
    )


def _amount(value: object, what: str) -> Amount:
    try:
        return Amount.parse(value, what)
    except InputError as error:
        raise InputError(f"{what}: {error}") from None


def _many(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list) else [value]
