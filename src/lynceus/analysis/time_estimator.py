"""How long the job takes on a machine, for SkyPilot's optimizer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lynceus.analysis.predictions import predict, predicted_objective, predicted_times
from lynceus.errors import InputError, did_you_mean
from lynceus.policy.policy import Policy
from lynceus.problem.problem import Problem
from lynceus.study.view import StudyView, conclusive
from lynceus.trial.outcome import End, Observations

_MACHINE_COLUMNS = ("instance_type", "machine_type", "machine", "vm")
_AMOUNT_COLUMNS = {"cpus": ("vcpus", "cpus"), "memory": ("memory_gib", "memory_gb", "memory")}


@dataclass(frozen=True, eq=False)
class TimeEstimator:
    """Seconds of the job on given resources: measured if the machine was tried, otherwise predicted.

    Of several configurations on one machine it takes the one that the study would choose there.
    """

    problem: Problem
    policy: Policy
    observations: Observations
    seed: int = 0
    fixed: Mapping[str, object] = field(default_factory=dict)
    """Parameters with fixed values, such as the number of nodes."""

    def __post_init__(self) -> None:
        columns = self.problem.space.columns
        for name in self.fixed:
            if name not in columns:
                hint = did_you_mean(name, columns) or f" Columns are {', '.join(columns)}."
                raise InputError(f"time_estimator: the study has no column {name!r}.{hint}")

    def __call__(self, resources: Any) -> int:
        """Whole seconds; `resources` is a `sky.Resources`, or anything with its attributes."""
        rows = self._rows(resources)
        measured: dict[int, list[float]] = {}
        for seen in self.observations:
            if seen.outcome.end is End.FINISHED and rows[seen.row]:
                measured.setdefault(seen.row, []).append(seen.outcome.seconds)
        prediction = predict(self.problem, self.policy, self.observations, self.seed)
        if prediction is None and not measured:
            raise InputError(
                "time_estimator: the study has too few finished runs to estimate a time; let it run trials first."
            )
        if prediction is None:
            return math.ceil(min(median(seconds) for seconds in measured.values()))
        values = self.problem.objective.sign * predicted_objective(prediction, self.problem)
        row = int(np.argmin(np.where(rows, values, np.inf)))
        seconds = median(measured[row]) if row in measured else float(predicted_times(prediction, self.problem)[row])
        return max(math.ceil(seconds), 1)

    def _rows(self, resources: Any) -> NDArray[np.bool_]:
        """The configurations that run on these resources."""
        columns = self.problem.space.columns
        rows = np.ones(len(self.problem.space), dtype=bool)
        for name, value in self.fixed.items():
            rows &= _equal(columns[name], value)
        if "use_spot" in columns and getattr(resources, "use_spot", None) is not None:
            rows &= _equal(columns["use_spot"], bool(resources.use_spot))
        machine = getattr(resources, "instance_type", None)
        if machine is not None:
            return self._of_machine(rows, machine)
        for attribute, names in _AMOUNT_COLUMNS.items():
            amount, place = getattr(resources, attribute, None), next((one for one in names if one in columns), None)
            if amount is not None and place is not None:
                rows &= _enough(columns[place], str(amount))
        if not rows.any():
            raise InputError(f"time_estimator: the study has no machine like {resources}{_with(self.fixed)}.")
        return rows

    def _of_machine(self, rows: NDArray[np.bool_], machine: str) -> NDArray[np.bool_]:
        columns = self.problem.space.columns
        place = next((one for one in _MACHINE_COLUMNS if one in columns), None)
        if place is None:
            raise InputError(
                f"time_estimator: no column of the study names machines ({', '.join(_MACHINE_COLUMNS)}); "
                f"{machine!r} cannot be looked up."
            )
        rows = rows & _equal(columns[place], machine)
        if not rows.any():
            known = sorted(set(map(str, columns[place].tolist())))
            hint = did_you_mean(machine, known) or f" It has {', '.join(known)}."
            raise InputError(f"time_estimator: the study has no machine {machine!r}{_with(self.fixed)}.{hint}")
        return rows


def time_estimator(study: StudyView, **fixed: object) -> TimeEstimator:
    """How long the job takes on a machine, for SkyPilot: `task.set_time_estimator(lynceus.time_estimator(study, nodes=4))`.

    `fixed` sets parameters that SkyPilot's resources do not describe; the study chooses the others.
    """
    return TimeEstimator(study.problem, study.policy, conclusive(study), study.seed, fixed)


def _equal(column: NDArray[Any], value: object) -> NDArray[np.bool_]:
    return np.array([one == value for one in column.tolist()], dtype=bool)


def _enough(column: NDArray[Any], amount: str) -> NDArray[np.bool_]:
    """`4` means exactly four, `4+` at least four, as SkyPilot writes it."""
    least = float(amount.rstrip("+x"))
    numbers = column.astype(float)
    return np.asarray(numbers >= least if amount.endswith("+") else numbers == least)


def _with(fixed: Mapping[str, object]) -> str:
    return "" if not fixed else " with " + ", ".join(f"{name} {value}" for name, value in fixed.items())
