"""What is to run: a plan of the policy, and the order that a study makes of it."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Literal

from lynceus.problem.job_input import JobInput
from lynceus.trial.nan_equality import NanEquality


@dataclass(frozen=True, slots=True)
class Expected:
    """What the model predicted for a row when it was ordered, in the model's own units (see `Prediction`)."""

    form: Literal["cost", "log time"]
    """`cost` (dollars, normal) or `log time` (natural logarithm of seconds, normal)."""
    mean: tuple[float, ...]
    """One mean per modelled target: time first, then the metrics of the problem."""
    std: tuple[float, ...]
    logs: tuple[bool, ...] = ()
    """Whether each metric's moments are those of its natural logarithm; empty: none is."""


class Purpose(enum.StrEnum):
    """What a run is for."""

    SEARCH = "search"
    """The policy chose it."""
    HISTORY = "history"
    """The policy chose it because earlier jobs suggested it."""
    QUEUE = "queue"
    """The user asked for it."""
    CONFIRM = "confirm"
    """It repeats the incumbent before it is recommended."""
    MOVE = "move"
    """It repeats on on-demand machines what was interrupted too often on spot machines."""
    BASELINE = "baseline"
    """It measures the configuration used until now."""
    IMPORT = "import"
    """It was measured elsewhere."""
    SHARED = "shared"
    """Another trial measured it, on the same deployment."""


UNORDERED = (Purpose.IMPORT, Purpose.SHARED)
"""Purposes of runs that a study knows without having ordered them: they count against no number of trials."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan(NanEquality):
    """What a chooser wants to run, and the numbers behind it."""

    row: int
    why: str
    """One clause for the user, such as `Latin hypercube 3 of 12`."""
    stoppable: bool = True
    """Whether a timeout may end the run early; initial designs of the papers run to the end."""
    score: float = math.nan
    """What the chooser maximised (expected improvement per dollar, for example)."""
    gain: float = math.nan
    """Expected improvement of this row alone, in the unit of the objective."""
    best_gain: float = math.nan
    """Largest expected improvement over all rows; stopping rules read it."""
    best_rate: float = math.nan
    """Largest expected improvement per expected dollar of a single run, over all rows."""
    chance_rate: float = math.nan
    """Largest probability to keep every constraint per expected dollar of a single run, over all rows; NaN once a run has kept them."""
    probability: float = math.nan
    """Probability that the row keeps every constraint."""
    usd: float = math.nan
    """Dollars that the chooser expects the run to be charged."""
    expected: Expected | None = None
    """The model's prediction for this row; None when no model was used."""
    path: tuple[int, ...] = ()
    """Rows that a look-ahead would most likely run next."""
    purpose: Purpose = Purpose.SEARCH


@dataclass(frozen=True, slots=True)
class Order:
    """One run to make. Its number exists before anything starts, so that a crash cannot lose or repeat it."""

    number: int
    """Position in the study, from 0."""
    row: int
    timeout_s: float
    """Seconds after which the run is stopped where it runs; infinite for none."""
    reserved_usd: float
    """The most that this run can be charged; reserved in the budget until it settles. Infinite without a timeout."""
    plan: Plan
    boots: bool = True
    """Whether machines are booted for this run (and charged)."""
    input: JobInput | None = None
    """What it reads; None where the job does not say."""
