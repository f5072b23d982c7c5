"""Properties of the tables: how many configurations are good, how bad the worst is, what disjoint optimisation and all data cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from lynceus.errors import InputError, hint
from lynceus.problem.data_fraction import row_shares
from lynceus.replay.job import ReplayJob
from lynceus.replay.score import true_value
from lynceus_lab.statistics import FloatArray, quantiles

CLUSTER = ("vm_type", "vm_family", "vm_size", "vcpus", "nodes", "machines", "disk_type", "disk_speed", "disk_count")
"""Parameters of the cluster; all others belong to the job."""
ACCURATE = 0.85
"""The accuracy constraint of Mendes 2019."""


def cno_of_all(job: ReplayJob) -> FloatArray:
    """Cost of every configuration relative to the optimum, ignoring constraints as in Fig. 1a, cheapest first `[q]`."""
    cost = job.problem.billing.charges(job.measurements.seconds, job.problem.price)
    return np.sort(cost / job.optimum.cost_usd)


def disjoint(job: ReplayJob) -> FloatArray:
    """CNO of ideal disjoint optimisation for every reference cluster, best first `[clusters]` (Fig. 1b).

    First the best job parameters on the reference cluster are found, then the best cluster for them; both searches are perfect. If no
    parameters meet the constraints on the reference cluster, the cheapest are taken.
    """
    rows = _by_cluster_and_job(job)
    value = [_value(job, row) for row in range(len(job.problem.space))]
    cost = job.problem.billing.charges(job.measurements.seconds, job.problem.price)
    best_anywhere: dict[tuple[object, ...], float] = {}
    best_here: dict[tuple[object, ...], tuple[float, float, tuple[object, ...]]] = {}
    for (cluster, setting), row in rows.items():
        best_anywhere[setting] = min(best_anywhere.get(setting, math.inf), value[row])
        here = (value[row], float(cost[row]), setting)
        if cluster not in best_here or here[:2] < best_here[cluster][:2]:
            best_here[cluster] = here
    found = [best_anywhere[setting] for _, _, setting in best_here.values()]
    return np.sort([math.inf if math.isinf(one) else job.optimum.cno(one) for one in found])


def _by_cluster_and_job(job: ReplayJob) -> dict[tuple[tuple[object, ...], tuple[object, ...]], int]:
    space = job.problem.space
    names = [parameter.name for parameter in space.parameters]
    machine = [name for name in names if name in CLUSTER]
    own = [name for name in names if name not in CLUSTER]
    found: dict[tuple[tuple[object, ...], tuple[object, ...]], int] = {}
    for row in range(len(space)):
        point = space.point(row)
        found[tuple(point[name] for name in machine), tuple(point[name] for name in own)] = row
    return found


def _value(job: ReplayJob, row: int) -> float:
    value = true_value(job.problem, job.measurements, row)
    return math.inf if value is None else value


def _feasible(job: ReplayJob) -> list[int]:
    """Rows that meet every constraint and may be recommended."""
    return [row for row in range(len(job.problem.space)) if math.isfinite(_value(job, row))]


def _on_all_data(job: ReplayJob) -> float:
    return min(_value(job, row) for row in range(len(job.problem.space)) if row_shares(job.problem)[row] == 1)


FACTS: Mapping[str, Callable[[ReplayJob], float]] = MappingProxyType(
    {
        "within-2": lambda job: float(
            sum(_value(job, row) <= 2 * job.optimum.value for row in range(len(job.problem.space)))
        ),
        "worst": lambda job: float(cno_of_all(job)[-1]),
        "second": lambda job: float(cno_of_all(job)[1]) - 1,
        "feasible": lambda job: float(len(_feasible(job))),
        "accurate": lambda job: float(
            sum(job.measurements.metrics["accuracy"][row] >= ACCURATE for row in _feasible(job))
        ),
        "best-fraction": lambda job: float(row_shares(job.problem)[job.optimum.row]),
        "all-data": lambda job: _on_all_data(job) / job.optimum.value,
        "disjoint-share": lambda job: float((disjoint(job) <= 1 + 1e-9).mean()),
        "disjoint-p50": lambda job: float(quantiles(disjoint(job), 0.5)),
        "disjoint-p90": lambda job: float(quantiles(disjoint(job), 0.9)),
        "unpublished": lambda _: math.nan,
    }
)
"""`all-data` is the cost of the best run on all data relative to the best on any fraction; `unpublished` marks a property of a table that
was not published, so that the claim is listed as not measured."""


def fact(name: str, jobs: Sequence[ReplayJob]) -> float:
    """A property by name, averaged over jobs, or with `-least` / `-most` the extreme over them."""
    for ending, join in (("-least", min), ("-most", max)):
        if name.endswith(ending) and name.removesuffix(ending) in FACTS:
            return join(FACTS[name.removesuffix(ending)](job) for job in jobs)
    if name not in FACTS:
        raise InputError(f"claims: there is no fact {name!r}{hint(name, FACTS)}")
    return float(np.mean([FACTS[name](job) for job in jobs]))
