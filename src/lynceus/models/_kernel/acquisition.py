"""The parameters of `pick`: the acquisition function, which rows may be picked, and the remaining budget."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .values import Codes, Floats, Ints

FORMS = ("product", "exact", "lognormal")


@dataclass(frozen=True, eq=False, slots=True)
class Constraints:
    """Constraints on the metrics' own models; their probabilities multiply."""

    metric: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """[L] which metric is constrained."""
    sign: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """[L] +1: at most the bound, -1: at least the bound."""
    bound: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """[L,q] the bound at each row; infinite where there is none."""

    def __post_init__(self) -> None:
        for name, dtype in (("metric", np.int64), ("sign", np.int64), ("bound", np.float64)):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=dtype))
        number = self.metric.shape
        if len(number) != 1 or self.sign.shape != number or self.bound.ndim != 2 or self.bound.shape[:1] != number:
            raise ValueError(
                f"constraints: metric {number}, sign {self.sign.shape}, bound {self.bound.shape}; expected [L], [L], [L,q]."
            )
        if not np.isin(self.sign, (-1, 1)).all() or np.isnan(self.bound).any():
            raise ValueError("constraints need signs of +1 (at most) or -1 (at least) and bounds that are not NaN.")


@dataclass(frozen=True, eq=False, slots=True)
class Billing:
    """Cost from time: cost = price * max(time + boot, minimum). Needed by the "lognormal" form only."""

    price: Floats
    """[q] dollars per second, positive."""
    boot: Floats
    """[q] seconds billed before the job starts."""
    minimum: Floats
    """[q] the least number of seconds billed."""

    def __post_init__(self) -> None:
        for name in ("price", "boot", "minimum"):
            array = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            if (
                array.ndim != 1
                or array.shape != np.shape(self.price)
                or not np.isfinite(array).all()
                or (array < 0).any()
            ):
                raise ValueError(f"billing: {name} must be [q] finite numbers, 0 or more, and as many as prices.")
            object.__setattr__(self, name, array)
        if (self.price <= 0).any():
            raise ValueError("billing: every price must be above 0.")


@dataclass(frozen=True, eq=False, slots=True)
class Acquisition:
    """What `pick` maximises. Metric 0 is the objective (a cost, or the logarithm of a time) and is minimised."""

    form: Literal["product", "exact", "lognormal"]
    """product: EI times the probabilities of the constraints, taken as independent (EIc of the Lynceus paper).
    exact: a constraint on the objective's own model (`ceiling`) is integrated jointly, E[(best - C)+ ; C <= ceiling].
    lognormal: metric 0 is ln(seconds), E[(best - cost(T))+ ; T <= ceiling] with the cost of `billing`."""
    open: NDArray[np.bool_]
    """[q] rows that may be picked; the imagined rows of a state are closed in addition."""
    best: Floats
    """[b] objective of the best feasible observation; NaN: none yet, then worst + 3 max sigma is used instead."""
    worst: Floats
    """[b] largest objective observed."""
    left: Floats
    """[b] remaining budget in dollars; rows that may cost more are not picked. inf: no test."""
    confidence_z: float = -np.inf
    """Standard deviations added to the mean for the test against `left` (2.326: 99 %); -inf: no test."""
    ceiling: Floats | None = None
    """[q] bound on metric 0 in "exact" (cost) and "lognormal" (seconds); None: no bound."""
    constraints: Constraints = field(default_factory=Constraints)
    """Further constraints, each on its own metric's model."""
    billing: Billing | None = None
    """Prices for "lognormal"."""

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"form is {self.form!r}; expected one of {', '.join(FORMS)}.")
        if (self.form == "lognormal") != (self.billing is not None):
            raise ValueError('billing is needed by the form "lognormal" and by no other.')
        if self.form == "product" and self.ceiling is not None:
            raise ValueError('the form "product" takes no ceiling; give a constraint on metric 0 instead.')
        types: dict[str, Any] = {"open": np.bool_, "best": np.float64, "worst": np.float64, "left": np.float64}
        for name, dtype in types.items():
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), dtype=dtype))
        if self.ceiling is not None:
            object.__setattr__(self, "ceiling", np.ascontiguousarray(self.ceiling, dtype=np.float64))
        if np.isnan(self.confidence_z):
            raise ValueError("confidence_z must be a number.")

    def check(self, codes: Codes, states: int, metrics: int) -> None:
        """Raise an error for shapes that do not fit the table and the batch."""
        q, number = codes.q, len(self.constraints.metric)
        wanted: dict[str, tuple[NDArray[Any] | None, tuple[int, ...]]] = {
            "open": (self.open, (q,)),
            "best": (self.best, (states,)),
            "worst": (self.worst, (states,)),
            "left": (self.left, (states,)),
            "ceiling": (self.ceiling, (q,)),
            "price": (self.billing.price if self.billing else None, (q,)),
            "bound of constraints": (self.constraints.bound if number else None, (number, q)),
        }
        for name, (array, shape) in wanted.items():
            if array is not None and array.shape != shape:
                raise ValueError(f"{name} has shape {array.shape}; expected {shape}.")
        if number and (self.constraints.metric.min() < 0 or self.constraints.metric.max() >= metrics):
            raise ValueError(
                f"constraints name metrics {self.constraints.metric.tolist()}; there are {metrics}, counted from 0."
            )
        if np.isnan(self.left).any() or np.isnan(self.worst[np.isnan(self.best)]).any():
            raise ValueError("left must not be NaN, nor worst where best is NaN.")
        if self.ceiling is not None and np.isnan(self.ceiling).any():
            raise ValueError("ceiling holds NaN; use inf where there is no bound.")


@dataclass(frozen=True, eq=False, slots=True)
class Picked:
    """The result of `pick`, one entry per state."""

    row: Ints
    """[b] the row with the largest acquisition value (lowest row on ties); -1: no row is open and affordable."""
    value: Floats
    """[b] its acquisition value, 0 or more; NaN without a row."""
    mean: Floats
    """[b,m] predicted means at the row; NaN without a row."""
    std: Floats
    """[b,m] predicted standard deviations at the row; NaN without a row."""
