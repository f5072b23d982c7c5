"""How soon a change of a job's time is found, and how often one is found where there is none, by the variation between runs.

Made-up runs: ln time grows with ln size (exponent 0.8), sizes grow by 30 % and vary by 10 %, noise is normal or has the heavy tails of
Student's t with four degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lynceus.models.seeds import generator
from lynceus.recurring.change_test import find_change
from lynceus.recurring.record import ProductionRun
from lynceus.recurring.series import Series
from lynceus.recurring.time_model import design, fit
from lynceus.space.column import FloatArray
from lynceus_lab.markdown import header, row

VARIATIONS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2)
AFTER = 60
"""Runs that are looked at after a change."""
NOISES = ("normal", "heavy tails")


def made_up_runs(count: int, variation: float, noise: str, seed: int) -> tuple[FloatArray, FloatArray]:
    """ln seconds and ln sizes of runs without a change `[n]`, `[n]`."""
    rng = generator(seed, f"detection {noise}")
    draws = rng.standard_normal(count) if noise == "normal" else rng.standard_t(4, count) / math.sqrt(2)
    log_sizes = np.log(np.linspace(1.0, 1.3, count)) + 0.1 * rng.standard_normal(count)
    return 5.0 + 0.8 * log_sizes + variation * draws, log_sizes


def delay(change: float, variation: float, before: int, shape: str, noise: str, seed: int) -> float:
    """Runs from the moment of a change (of a ramp over ten runs: of its beginning) until it is found; infinite if it is not."""
    log_s, log_sizes = made_up_runs(before + AFTER, variation, noise, seed)
    age = np.maximum(np.arange(len(log_s)) - before + 1, 0)
    log_s = log_s + math.log1p(change) * (np.minimum(age, 1) if shape == "step" else np.minimum(age / 10, 1))
    for count in range(before + 1, len(log_s) + 1):
        fitted = fit(log_s[:count], design(log_sizes[:count], (), count), sized=True)
        if find_change(fitted, 0) is not None:
            return float(count - before)
    return math.inf


def alarms(runs: int, variation: float, noise: str, seed: int) -> tuple[int, int]:
    """Alarms, and alarms that may be acted upon, in runs without a change."""
    log_s, log_sizes = made_up_runs(runs, variation, noise, seed)
    series = Series.scan(
        tuple(
            ProductionRun(str(place), 1, math.exp(seconds), float(place), size=math.exp(size))
            for place, (seconds, size) in enumerate(zip(log_s, log_sizes, strict=True))
        )
    )
    return len(series.changes) + len(series.spreads), sum(series.sure(one) for one in series.changes)


def delay_table(repeats: int, before: Sequence[int] = (20, 50, 100), change: float = 0.2) -> str:
    """Median and 90th percentile of the delay of a step and of a ramp, by variation and by runs before it."""
    lines = [*header(["variation", "noise", *(f"step after {one} runs" for one in before), "ramp after 50 runs"])]
    for variation in VARIATIONS:
        for noise in NOISES:
            cells = [f"{variation:.0%}".replace("%", " %"), noise]
            for shape, runs in [*(("step", one) for one in before), ("ramp", 50)]:
                found = [delay(change, variation, runs, shape, noise, seed) for seed in range(repeats)]
                middle, most = (_shown(float(np.quantile(found, one, method="higher"))) for one in (0.5, 0.9))
                cells.append(f"{middle}, {most}")
            lines.append(row(cells))
    return "\n".join(lines)


def alarm_table(series: int, runs: int = 200) -> str:
    """False alarms per 1,000 runs, by variation."""
    lines = [*header(["variation", "noise", "runs", "alarms per 1,000 runs", "of them acted upon"])]
    for variation in VARIATIONS:
        for noise in NOISES:
            found = [alarms(runs, variation, noise, seed) for seed in range(series)]
            total, sure = (sum(one[place] for one in found) for place in (0, 1))
            rate = f"{1000 * total / (series * runs):.2f}"
            lines.append(row([f"{variation:.0%}".replace("%", " %"), noise, f"{series * runs:,}", rate, str(sure)]))
    return "\n".join(lines)


def _shown(runs: float) -> str:
    return f"over {AFTER}" if math.isinf(runs) else f"{runs:.0f}"
