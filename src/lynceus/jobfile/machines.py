"""From the section `resources` to columns of the space: which machine, how many, spot or not, what they have and cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.sections.resources import ResourcesSection
from lynceus.prices.machines import Machines
from lynceus.prices.store import catalogs
from lynceus.problem.preemption import Preemption
from lynceus.problem.problem import Problem
from lynceus.space.column import Scalar
from lynceus.space.derived import Computed, Derived, Joined
from lynceus.space.parameter import Categorical, Integer, Parameter
from lynceus.space.table import Space

PRICE = "num_nodes * price_usd_per_hour"
"""Dollars per hour of a whole configuration."""
_NOT_FEATURES = ("infra", "use_spot")
"""Provider, region and tenancy do not change the speed of a machine, so models do not use them."""
_SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class Expansion:
    """What resources add to a space."""

    parameters: tuple[Parameter, ...]
    derived: tuple[Derived, ...]
    forbid: tuple[str, ...]


def spots_of(resources: ResourcesSection) -> tuple[bool, ...]:
    """The values of `use_spot` in the space, including on-demand machines that interrupted trials are moved to."""
    spots = resources.spots
    return (*spots, False) if spots == (True,) and resources.spot.on_demand else spots


def with_machines(job: Job) -> Job:
    """The job with the machines that its resources match in the current catalogs; unchanged when it has them, or needs none."""
    resources = job.spec.resources
    if not resources.from_catalog or job.machines is not None:
        return job
    with job.at("resources"):
        return replace(job, machines=Machines.matching(resources.requirements(), catalogs(), spots_of(resources)))


def expansion_of(job: Job) -> Expansion | None:
    """Parameters and columns for the cloud machines of a job; None when it uses the local machine."""
    resources, machines = job.spec.resources, job.machines
    if not resources.from_catalog or machines is None:
        return None
    for name in ("infra", "instance_type", "use_spot", *(("num_nodes",) if resources.nodes else ())):
        if name in job.spec.space:
            raise InputError(
                f"{name!r} is already a parameter, because of resources; remove it from space, or rename it."
            )
    infras = list(dict.fromkeys(one.infra for one in machines.offers))
    names = list(dict.fromkeys(one.instance_type for one in machines.offers))
    parameters: list[Parameter] = [Categorical("infra", tuple(infras)), Categorical("instance_type", tuple(names))]
    if "num_nodes" not in job.spec.space:
        parameters.append(Integer("num_nodes", values=resources.nodes or (1,), log=len(resources.nodes) > 2))
    spots = spots_of(resources)
    if any(spots):
        parameters.append(Categorical("use_spot", spots))
    table = _table(machines, infras, names, spot=any(spots))
    features = [name for name in ("vcpus", "memory_gib", "accelerators", "ghz") if name in table]
    derived: list[Derived] = [Joined(["infra", "instance_type"], table, feature=features)]
    if any(spots):
        chosen = "spot_usd_per_hour if use_spot else on_demand_usd_per_hour" if len(spots) > 1 else "spot_usd_per_hour"
        derived.append(Computed("price_usd_per_hour", chosen, feature=False))
    if "num_nodes" in job.spec.space or len(resources.nodes) > 1:
        derived += [Computed(f"total_{name}", f"num_nodes * {name}") for name in ("vcpus", "memory_gib")]
    return Expansion(tuple(parameters), tuple(derived), ("not offered",) if "offered" in table else ())


def _table(machines: Machines, infras: list[str], names: list[str], *, spot: bool) -> dict[str, list[Scalar]]:
    """Machines by infra and name. Combinations that are not offered get a row, too, because a space starts as a full product."""
    offers = {(one.infra, one.instance_type): one for one in machines.offers}
    any_offer = machines.offers[0]
    pairs = [(infra, name) for infra in infras for name in names]
    rows = [offers.get(pair, any_offer) for pair in pairs]
    table: dict[str, list[Scalar]] = {
        "infra": [infra for infra, _ in pairs],
        "instance_type": [name for _, name in pairs],
        "vcpus": [one.vcpus for one in rows],
        "memory_gib": [one.memory_gib for one in rows],
        "accelerator": [one.accelerator for one in rows],
        "accelerators": [one.accelerators for one in rows],
        "on_demand_usd_per_hour" if spot else "price_usd_per_hour": [one.usd_per_hour or 0.0 for one in rows],
    }
    if spot:
        table["spot_usd_per_hour"] = [one.spot_usd_per_hour or 0.0 for one in rows]
    if all(one.ghz is not None for one in machines.offers):
        table["ghz"] = [one.ghz or 0.0 for one in rows]
    if len(offers) < len(pairs):
        table["offered"] = [pair in offers for pair in pairs]
    return table


def without_tenancy(space: Space, machines: Machines) -> Space:
    """The space whose models ignore where and how machines are rented, both as a feature and in the price."""
    hourly: dict[str, float] = {}
    for one in machines.offers:
        hourly.setdefault(one.instance_type, one.usd_per_hour or one.spot_usd_per_hour or 1.0)
    listed = np.array([hourly[name] for name in space.columns["instance_type"].tolist()])
    kept = [place for place, name in enumerate(space.feature_names) if name not in _NOT_FEATURES]
    return replace(
        space,
        features=space.features[:, kept],
        feature_names=tuple(space.feature_names[place] for place in kept),
        feature_kinds=tuple(space.feature_kinds[place] for place in kept),
        list_price=listed * space.columns["num_nodes"] / _SECONDS_PER_HOUR,
    )


def with_preemption(problem: Problem, resources: ResourcesSection) -> Problem:
    """The problem with interruptions of spot machines as the section `spot` describes them."""
    space = problem.space
    if "use_spot" not in space.columns or not resources.from_catalog:
        return problem
    spot = space.columns["use_spot"].astype(bool)
    rate = np.where(spot, resources.spot.rate_per_hour * space.columns["num_nodes"] / _SECONDS_PER_HOUR, 0.0)
    twin = np.full(len(space), -1, dtype=np.int64)
    if resources.spot.on_demand and not spot.all():
        place = [one.name for one in space.parameters].index("use_spot")
        others = [tuple(codes) for codes in np.delete(space.codes, place, axis=1).tolist()]
        on_demand = {key: row for row, key in enumerate(others) if not spot[row]}
        twin = np.array([on_demand.get(key, -1) if spot[row] else -1 for row, key in enumerate(others)], dtype=np.int64)
    testable = problem.testable
    if resources.spots == (True,) and not spot.all():
        testable = spot if testable is None else testable & spot
    return replace(problem, preemption=Preemption(rate, twin, resources.spot.interruptions), testable=testable)


def price_sources(job: Job) -> list[str]:
    """Source and age of the prices of a job's machines, one sentence per cloud."""
    sources = () if job.machines is None else job.machines.sources
    return [one.catalog().about() for one in sources]


def price_warnings(job: Job) -> list[str]:
    """A warning for every cloud whose prices are older than a month, or whose spot prices are estimates that the job uses."""
    sources = () if job.machines is None else job.machines.sources
    warnings = [one.catalog().warning() for one in sources]
    if any(spots_of(job.spec.resources)):
        warnings += [one.catalog().spot_warning() for one in sources]
    return [warning for warning in warnings if warning is not None]
