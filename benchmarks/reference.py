"""Our reproduction of the program published with ICDCS'20: python -m benchmarks.reference FILE [--seeds N] [--deep].

FILE holds the program's results, one row per job, policy and seed, with the columns job, policy and usd_to_cno_1.1 (empty: not
reached). Printed: dollars until CNO 1.1 of both, p50 and p90, and the bootstrap interval of the ratio ours / theirs. A ratio of 1
inside the interval means that these seeds do not distinguish the two.
"""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from lynceus.policy.presets import preset
from lynceus.replay.job import load_job
from lynceus.replay.run import replay

SHALLOW = {"LA0": (0, "none"), "LA0+TG": (0, "authors")}
DEEP = {"LA2": (2, "none"), "LA2+TG": (2, "authors")}
JOBS = ("tensorflow/cnn", "tensorflow/multilayer", "tensorflow/rnn")
RESAMPLES = 4_000


def theirs(path: Path) -> dict[tuple[str, str], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Dollars until CNO 1.1 per (job, policy)."""
    found: dict[tuple[str, str], list[float]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault((row["job"], row["policy"]), []).append(float(row["usd_to_cno_1.1"] or math.inf))
    return {key: np.array(values) for key, values in found.items()}


def ours(job_name: str, lookahead: int, timeout: str, seeds: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Dollars until CNO 1.1 with the reference settings, one per seed."""
    job, policy = load_job(job_name), preset("authors-2020", lookahead, timeout)
    return np.array([replay(job, policy, seed, until=1.1).reached(1.1).usd for seed in range(seeds)])


def interval(
    a: np.ndarray[tuple[int], np.dtype[np.float64]], b: np.ndarray[tuple[int], np.dtype[np.float64]], percentile: float
) -> tuple[float, float]:
    """95 % bootstrap interval of the ratio of two percentiles."""
    rng = np.random.default_rng(1)
    top = np.percentile(rng.choice(a, (RESAMPLES, len(a))), percentile, axis=1, method="inverted_cdf")
    bottom = np.percentile(rng.choice(b, (RESAMPLES, len(b))), percentile, axis=1, method="inverted_cdf")
    low, high = np.percentile(top / bottom, [2.5, 97.5])
    return float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--deep", action="store_true", help="look-ahead 2 instead of 0 (minutes)")
    given = parser.parse_args()
    reference = theirs(given.file)
    table = Table(title=f"Dollars until CNO 1.1, {given.seeds} seeds of ours")
    for heading in ("job", "policy", "", "ours", "theirs", "ratio", "95 % interval", "1 inside"):
        table.add_column(heading, justify="left" if heading in ("job", "policy") else "right")
    for name, (lookahead, timeout) in (DEEP if given.deep else SHALLOW).items():
        for job in JOBS:
            a, b = ours(job, lookahead, timeout, given.seeds), reference[(job, name)]
            for percentile in (50, 90):
                low, high = interval(a, b, percentile)
                mine, other = (float(np.percentile(x, percentile, method="inverted_cdf")) for x in (a, b))
                cells = (
                    f"p{percentile}",
                    f"{mine:.3g}",
                    f"{other:.3g}",
                    f"{mine / other:.2f}",
                    f"{low:.2f} – {high:.2f}",
                )
                table.add_row(job, name, *cells, "yes" if low <= 1 <= high else "no")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
