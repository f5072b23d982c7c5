"""How much ending a measurement early saves, and how often it is wrong: request streams and learning curves.

Nobody publishes single requests. Streams are log-normal with the published median and 95th percentile of each deployment, and are called
synthetic. Learning curves are measured: the accuracy of every training of the tensorflow tables, every 30 seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lynceus.errors import InputError
from lynceus.executors.interface import Request
from lynceus.executors.supervisor.learning_curve import LearningCurve
from lynceus.executors.synthetic_streams import SyntheticStream, early_end
from lynceus.problem.objective import Constraint
from lynceus.replay.tables import data_folder
from lynceus.space.column import FloatArray
from lynceus.space.table_file import read_table

LIMITS = {
    "ttft p95 ≤ 500 ms, itl median ≤ 25 ms": ("p95(ttft) <= 500", "median(itl) <= 25"),
    "ttft p95 ≤ 1 s, itl p95 ≤ 100 ms": ("p95(ttft) <= 1000", "p95(itl) <= 100"),
}
"""The limits of the tasks `interactive` and `tail` on what a server streams."""
_TOKENS_OF_ANSWER = 100.0
"""An assumption: with the published throughput it tells how many requests a run sees."""
_ITL_EVERY_S = 0.05
"""Times between tokens are looked at so often; there are more."""
_TARGET, _DEADLINE_S, _EVERY_S = 0.85, 600.0, 30.0
_ERROR_RATE = 0.01


@dataclass(frozen=True)
class Ends:
    """Measurements that could have been ended early."""

    name: str
    kept: int
    """Measurements that keep every limit, or reach their target."""
    wrong: int
    """Of these, ended as hopeless."""
    broken: int
    """Measurements that do not."""
    ended: int
    """Of these, ended early."""
    saved: float
    """Share of the money of all broken ones that ending early saves, the start of the server included."""
    saved_measuring: float
    """The same of the money for measuring alone."""


def stream_ends(seeds: int) -> list[Ends]:
    """Every deployment of IBM's tables with synthetic streams, by limits."""
    tables = [_numbers(path) for path in _tables("llm_serving/ibm_*.csv")]
    return [_stream_ends(name, limits, tables, seeds) for name, limits in LIMITS.items()]


def _stream_ends(name: str, limits: Sequence[str], tables: Sequence[dict[str, FloatArray]], seeds: int) -> Ends:
    parsed = tuple(Constraint.parse(text) for text in limits)
    counted = [
        (_keeps(table, row, parsed), *_one_stream(table, row, parsed, seed))
        for table in tables
        for row in range(len(table["time_s"]))
        for seed in range(seeds)
    ]
    kept = [one for one in counted if one[0]]
    broken = np.array([one[1:] for one in counted if not one[0]])
    early, saved, whole, measuring = (broken[:, place] for place in range(4))
    return Ends(
        name,
        len(kept),
        int(sum(one[1] for one in kept)),
        len(broken),
        int(early.sum()),
        float(saved.sum() / whole.sum()),
        float(saved.sum() / measuring.sum()),
    )


def _one_stream(
    table: dict[str, FloatArray], row: int, limits: tuple[Constraint, ...], seed: int
) -> tuple[bool, float, float, float]:
    """Whether a run is ended as broken; dollars saved, of the whole run, and of its measuring."""
    streams = {
        "ttft": _stream(table, row, "ttft", _TOKENS_OF_ANSWER / float(table["output_tokens_per_s"][row])),
        "itl": _stream(table, row, "itl", _ITL_EVERY_S),
    }
    full_s, boot_s = float(table["time_s"][row]), float(table["boot_s"][row])
    request = Request("streams", row, 0, {}, full_s, True, limits=limits, ends_when="broken")
    end = early_end(streams, request, full_s, seed)
    usd_per_s = float(table["price_usd_per_hour"][row]) / 3600
    saved_s = 0.0 if end is None else full_s - end.seconds
    return end is not None, usd_per_s * saved_s, usd_per_s * full_s, usd_per_s * (full_s - boot_s)


def _stream(table: dict[str, FloatArray], row: int, metric: str, every_s: float) -> SyntheticStream:
    median, p95 = table[f"median_{metric}_ms"][row : row + 1], table[f"p95_{metric}_ms"][row : row + 1]
    return SyntheticStream(median, np.fmax(p95, median), every_s, float(table["boot_s"][row]))


def _keeps(table: dict[str, FloatArray], row: int, limits: Sequence[Constraint]) -> bool:
    """Whether the quantiles that the streams are drawn from keep every limit."""
    for one in limits:
        statistic, _, rest = one.metric.partition("(")
        median, value = (float(table[f"{kind}_{rest.rstrip(')')}_ms"][row]) for kind in ("median", statistic))
        if not one.holds(max(value, median)):
            return False
    return True


def curve_ends() -> list[Ends]:
    """Every measured training of the tensorflow tables with at least two reports: 85 % accuracy within ten minutes."""
    return [_curve_ends(path) for path in _tables("tensorflow/*.csv")]


def _curve_ends(path: Path) -> Ends:
    counted = list(_trainings(path))
    broken = np.array([one[1:] for one in counted if not one[0]])
    share = float(broken[:, 1].sum() / broken[:, 2].sum())
    wrong = [one for one in counted if one[0] and one[1]]
    return Ends(
        f"tensorflow, {path.stem}",
        sum(one[0] for one in counted),
        len(wrong),
        len(broken),
        int(broken[:, 0].sum()),
        share,
        share,
    )


def _trainings(path: Path) -> Iterator[tuple[bool, bool, float, float]]:
    """Whether a training reaches the target, whether it is stopped, dollars saved, and dollars of it until the deadline."""
    table = read_table(path)
    columns = ("accuracy_every_30s", "measured_time_s", "price_usd_per_hour", "reached_target")
    for reports, seconds, price, reached in zip(*(table[name] for name in columns), strict=True):
        values = [float(word) for word in str(reports or "").split()]
        if len(values) < 2:
            continue
        whole_s = min(float(seconds or 0.0), _DEADLINE_S)
        stopped_s = _stopped_s(values, whole_s)
        usd_per_s = float(price or 0.0) / 3600
        yield bool(reached), stopped_s < whole_s, usd_per_s * (whole_s - stopped_s), usd_per_s * whole_s


def _stopped_s(values: Sequence[float], whole_s: float) -> float:
    """When a training is stopped for its learning curve; its own end if it is not."""
    curve = LearningCurve("accuracy", _TARGET, above=True, end_s=_DEADLINE_S, error_rate=_ERROR_RATE)
    for place, value in enumerate(values, start=1):
        if place * _EVERY_S >= whole_s:
            break
        curve.add("accuracy", value, place * _EVERY_S)
        if curve.verdict():
            return place * _EVERY_S
    return whole_s


def _tables(pattern: str) -> list[Path]:
    folder = data_folder()
    found = sorted(folder.glob(pattern)) if folder else []
    if not found:
        raise InputError(f"lab serving: there is no {pattern} in the data folder; set LYNCEUS_DATA to it.")
    return found


def _numbers(path: Path) -> dict[str, FloatArray]:
    """The columns that hold numbers alone."""
    return {
        name: np.array([float(cell) for cell in cells if cell is not None])
        for name, cells in read_table(path).items()
        if not any(isinstance(cell, str) for cell in cells)
    }
