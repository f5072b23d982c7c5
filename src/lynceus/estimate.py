"""How long the job takes on a machine, for those who plan with machines: SkyPilot's optimizer asks by its own resources."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lynceus.errors import InputError
from lynceus.history import End, History
from lynceus.policy import Policy
from lynceus.policy.belief import belief_of, believed_seconds, believed_values
from lynceus.problem import Problem
from lynceus.space.column import nearest

_MACHINE_COLUMNS = ("instance_type", "machine_type", "machine", "vm")
_AMOUNT_COLUMNS = {"cpus": ("vcpus", "cpus"), "memory": ("memory_gib", "memory_gb", "memory")}


@dataclass(frozen=True, eq=False)
class TimeEstimator:
    """Seconds of the job on given resources: measured where the machine was tried, predicted where it was not.

    Of several configurations on one machine the one counts that the study would choose there.
    """

    problem: Problem
    policy: Policy
    history: History
    seed: int = 0
    fixed: Mapping[str, object] = field(default_factory=dict)
    """Parameters whose values are given, such as the number of nodes."""

    def __post_init__(self) -> None:
        columns = self.problem.space.columns
        for name in self.fixed:
            if name not in columns:
                hint = nearest(name, columns) or f" Columns are {', '.join(columns)}."
                raise InputError(f"time_estimator: the study has no column {name!r}.{hint}")

    def __call__(self, resources: Any) -> int:
        """Whole seconds; `resources` is a `sky.Resources`, or anything with its attributes."""
        rows = self._rows(resources)
        measured: dict[int, list[float]] = {}
        for seen in self.history:
            if seen.outcome.end is End.FINISHED and rows[seen.row]:
                measured.setdefault(seen.row, []).append(seen.outcome.seconds)
        known = belief_of(self.problem, self.policy, self.history, self.seed)
        if known is None and not measured:
            raise InputError(
                "time_estimator: the study has too few finished runs to know any time; let it run trials first."
            )
        if known is None:
            return math.ceil(min(median(seconds) for seconds in measured.values()))
        belief, situation = known
        values = believed_values(belief, situation)
        sign = -1.0 if self.problem.goal.maximise else 1.0
        row = int(np.argmin(np.where(rows, sign * values, np.inf)))
        seconds = median(measured[row]) if row in measured else float(believed_seconds(belief, self.problem)[row])
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
            raise InputError(f"time_estimator: the study knows no machine like {resources}{_with(self.fixed)}.")
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
            hint = nearest(machine, known) or f" It knows {', '.join(known)}."
            raise InputError(f"time_estimator: the study knows no machine {machine!r}{_with(self.fixed)}.{hint}")
        return rows


def _equal(column: NDArray[Any], value: object) -> NDArray[np.bool_]:
    return np.array([one == value for one in column.tolist()], dtype=bool)


def _enough(column: NDArray[Any], amount: str) -> NDArray[np.bool_]:
    """`4` means exactly four, `4+` at least four, as SkyPilot writes it."""
    least = float(amount.rstrip("+x"))
    numbers = column.astype(float)
    return np.asarray(numbers >= least if amount.endswith("+") else numbers == least)


def _with(fixed: Mapping[str, object]) -> str:
    return "" if not fixed else " with " + ", ".join(f"{name} {value}" for name, value in fixed.items())
