"""How much memory a job needs, from small samples of its input; and what that says of every configuration, as a past job would.

Peak memory is a straight line of the share of the input for many jobs, and the line at the whole input is what keeps all of it in memory
(Will et al. 2023, "Ruya"; 2022, "Crispy"). It is soft: the same data say 754 GB where 38 suffice. So the need is not a limit. It
becomes the expectation that configurations with less memory read a part of their data again, and that expectation is weighed against the
runs like every other past job (`lynceus.models.transfer`).

Shapes: q configurations, n samples.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from lynceus.errors import InputError
from lynceus.problem.data_fraction import shares
from lynceus.problem.history import PastJob
from lynceus.problem.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lynceus.space.column import FloatArray
    from lynceus.space.table import Space

Kind = Literal["linear", "unclear", "flat"]
"""Whether peak memory grows with the sample: R² above 0.99, above 0.1, or neither (Ruya's rule)."""

_LINEAR, _UNCLEAR = 0.99, 0.1
_DOUBT = 0.35
"""Std of ln need beside what the samples leave open: a line through 5 % of the input may bend."""
_AGAIN = 3.0
"""How much longer a run takes that holds nothing of its data in memory."""
_PRICE_SLOPE = -0.5
"""Of ln time along ln price, as in the default policy's model."""
_NODES_DOUBTS = 9
_MEMORY = re.compile(r"(^|_)(memory|mem|ram)_([kmgt]i?b|bytes)$", re.IGNORECASE)
_NODES = re.compile(r"^(num_?)?(nodes?|workers?|machines?|instances?|executors?|hosts?|servers?)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """The memory and the time that small samples let expect of the whole input."""

    kind: Kind
    bytes: float
    """The line at the whole input."""
    std: float
    """Of its natural logarithm."""
    r2: float
    seconds: float
    """The line of the running time at the whole input, on the machine of the samples."""

    def __str__(self) -> str:
        if self.kind != "linear":
            return (
                f"peak memory does not grow in a straight line with the sample (R² {self.r2:.2f}), so it says nothing"
            )
        low, high = (format_bytes(self.bytes * math.exp(sign * 1.2816 * self.std)) for sign in (-1, 1))
        return f"the whole input needs about {format_bytes(self.bytes)} of memory, {low} to {high} with a probability of 80 %"


def memory_need(shares: Sequence[float], peak_bytes: Sequence[float], seconds: Sequence[float]) -> MemoryNeed:
    """Straight lines through samples of the input: shares in (0, 1], at least two different ones.

    >>> need = memory_need([0.01, 0.02, 0.05], [1.6e9, 2.2e9, 4.0e9], [5.0, 6.0, 9.0])
    >>> need.kind, round(need.bytes / 1e9), round(need.seconds)
    ('linear', 61, 104)
    """
    x, memory, time = (np.asarray(one, dtype=float) for one in (shares, peak_bytes, seconds))
    if len(x) < 2 or np.ptp(x) == 0 or not (len(x) == len(memory) == len(time)):
        raise InputError(f"probe: got samples of {len(set(shares))} sizes; two different ones are needed.")
    (base, slope), (start, pace) = (_line(x, one) for one in (memory, time))
    left = memory - base - slope * x
    spread = float(np.square(memory - memory.mean()).sum())
    r2 = 1.0 - float(np.square(left).sum()) / spread if spread > 0 else 0.0
    need = base + slope
    kind: Kind = "linear" if r2 > _LINEAR and slope > 0 and need > 0 else "unclear" if r2 > _UNCLEAR else "flat"
    # The error of a straight line at 1, by the residuals (Draper and Smith 1998, eq. 1.4.10).
    noise = math.sqrt(float(np.square(left).sum()) / max(len(x) - 2, 1))
    reach = math.sqrt(1.0 / len(x) + (1.0 - float(x.mean())) ** 2 / float(np.square(x - x.mean()).sum()))
    own = noise * reach / need if need > 0 else 0.0
    return MemoryNeed(kind, max(need, 0.0), math.hypot(_DOUBT, own), r2, max(start + pace, 0.0))


def _line(x: FloatArray, y: FloatArray) -> tuple[float, float]:
    """Intercept and slope of the least squares."""
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / np.square(x - x.mean()).sum())
    return float(y.mean() - slope * x.mean()), slope


def total_memory(space: Space) -> FloatArray | None:
    """The memory of all machines of each configuration in bytes `[q]`, by a column such as `memory_gib`; None if there is none.

    A column that already counts all machines of a cluster grows in proportion to their number.
    """
    found = [(name, match) for name in space.columns if (match := _MEMORY.search(name))]
    if not found:
        return None
    name, match = found[0]
    amount = _numbers(space, name)
    if amount is None:
        return None
    unit = match[3].lower()
    factor = 1.0 if unit == "bytes" else (1024.0 if "i" in unit else 1000.0) ** ("kmgt".index(unit[0]) + 1)
    nodes = next((each for each in space.columns if _NODES.match(each)), None)
    if nodes is not None:
        count = _numbers(space, nodes)
        if count is None:
            return None
        if not _is_total(space, nodes, amount, count):
            amount = amount * count
    return np.asarray(amount * factor)


def _numbers(space: Space, name: str) -> FloatArray | None:
    """A column as numbers `[q]`; None where it has names, or values that some configurations do not have."""
    try:
        return np.array([float(cell) for cell in space.columns[name].tolist()])
    except (TypeError, ValueError):
        return None


def _is_total(space: Space, nodes: str, amount: FloatArray, count: FloatArray) -> bool:
    """Whether an amount grows in proportion to the machines, for each kind of machine."""
    others = [i for i, one in enumerate(space.parameters) if one.name != nodes]
    if not others or np.ptp(count) == 0:
        return False
    groups = np.unique(space.codes[:, others], axis=0, return_inverse=True)[1].reshape(-1)
    each = [groups == one for one in np.unique(groups)]
    varied = [one for one in each if np.ptp(count[one]) > 0]
    return bool(varied) and all(np.ptp(amount[one] / count[one]) < 1e-6 * amount[one].max() for one in varied)


def need_as_history(space: Space, need: MemoryNeed, fraction: str | None = None) -> PastJob | None:
    """What the need says of every configuration, in the form of a past job; None where it says nothing, no column tells the memory,
    or most configurations have enough: then other things decide.

    A configuration reads the part of the data again that its memory does not hold: t = price^−½ · (1 + 3 · E[1 − memory / need]⁺), with
    the expectation over the uncertain need. Where the column `fraction` holds the share of the input that a run reads, need and time are
    in proportion to it.
    """
    memory = total_memory(space)
    if need.kind != "linear" or memory is None:
        return None
    share = np.ones(len(space)) if fraction is None else shares(space, fraction)
    if float(np.median((memory / share)[share == share.max()])) >= need.bytes:
        return None
    doubts, weights = np.polynomial.hermite_e.hermegauss(_NODES_DOUBTS)
    needs = need.bytes * np.exp(need.std * doubts)
    missing = np.maximum(1.0 - (memory / share)[:, None] / needs, 0.0) @ (weights / weights.sum())
    price = np.log(space.size_price)
    seconds = max(need.seconds, 1.0) * share * np.exp(_PRICE_SLOPE * (price - price.mean())) * (1.0 + _AGAIN * missing)
    columns = {name: tuple(cells.tolist()) for name, cells in space.columns.items()}
    return PastJob(
        "the probe", columns, tuple(seconds.tolist()), (False,) * len(space), f"probe: {format_bytes(need.bytes)}"
    )
