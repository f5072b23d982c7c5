"""Jobs whose time is known for every configuration and input size: measured tables, and made-up ones for choosing constants.

Between two measured sizes ln time is linear in ln size. Runs differ as the repeated runs of the table do.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from lynceus.errors import InputError
from lynceus.replay.tables import data_folder
from lynceus.space.column import FloatArray
from lynceus.space.table import Space

_SCOUT = ("vm_family", "vm_size", "nodes")
_SCOUT_FEATURES = (*_SCOUT, "vm_vcpus", "vm_ram_gb")
MEASURED = ("sort", "transcode", "ocr", "kmeans", "pagerank", "wordcount")
"""Tables that judge: c3o (sort), serverless_inputs (transcode, ocr) and scout (the others)."""
SYNTHETIC = tuple(f"synthetic-{number}" for number in range(6))
"""Tables on which constants are chosen."""


@dataclass(frozen=True, eq=False)
class LifeTable:
    """A job on every configuration, at several input sizes."""

    name: str
    space: Space
    sizes: FloatArray
    """Input sizes in increasing order `[s]`."""
    seconds: FloatArray
    """Typical time of every configuration at every size `[s, q]`."""
    noise: tuple[FloatArray, ...]
    """ln of run over typical time in repeated runs of each configuration, sorted; one entry where all share them."""
    machines: tuple[str, ...]
    """The machine type of every configuration, for its price over time."""

    def seconds_at(self, size: float) -> FloatArray:
        """Typical time of every configuration `[q]` for an input of `size`."""
        z, known = math.log(size), np.log(self.sizes)
        place = int(np.clip(np.searchsorted(known, z) - 1, 0, len(known) - 2))
        share = (z - known[place]) / (known[place + 1] - known[place])
        logs = np.log(self.seconds[place : place + 2])
        return np.asarray(np.exp((1 - share) * logs[0] + share * logs[1]))

    def luck(self, row: int, quantile: float) -> float:
        """The factor on the typical time of a run whose luck is `quantile`: the same luck for every policy."""
        pool = self.noise[row % len(self.noise)]
        return math.exp(float(np.quantile(pool, quantile)))


@lru_cache(maxsize=32)
def life_table(name: str) -> LifeTable:
    """The table of this name."""
    if name in SYNTHETIC:
        return _synthetic(name, SYNTHETIC.index(name))
    if name not in MEASURED:
        raise InputError(f"got the table {name!r}; expected one of {', '.join((*MEASURED, *SYNTHETIC))}.")
    folder = data_folder()
    if folder is None:
        raise InputError("lives need measured tables; set LYNCEUS_DATA to the folder of the tables.")
    if name == "sort":
        return _c3o_sort(folder)
    if name in ("transcode", "ocr"):
        return _serverless(folder, name)
    return _scout(folder, name)


def _c3o_sort(folder: Path) -> LifeTable:
    rows = _rows(folder / "c3o" / "sort.csv")
    space, groups = _grouped(rows, ("vm_type", "nodes"), ("vm_type", "nodes", "slots", "memory_mb"), "data_size_gb")
    sizes = np.array(sorted({float(row["data_size_gb"]) for row in rows}))
    machines = tuple(str(group[0]["vm_type"]) for group in groups)
    return _measured("sort", space, groups, sizes, [float(row["data_size_gb"]) for row in rows], rows, machines)


def _serverless(folder: Path, name: str) -> LifeTable:
    """Sizes are not published: the geometric mean of an input's times over all configurations is taken as its size."""
    rows = _rows(folder / "serverless_inputs" / f"{name}.csv")
    names = ("vm_family", "cpu_millis")
    failed = {tuple(row[one] for one in names) for row in rows if row["completed"] == "0"}
    rows = [row for row in rows if tuple(row[one] for one in names) not in failed]
    logs: dict[str, list[float]] = {}
    for row in rows:
        logs.setdefault(row["input"], []).append(math.log(float(row["time_s"])))
    size = {one: math.exp(sum(found) / len(found)) for one, found in logs.items()}
    space, groups = _grouped(rows, names, names, "input")
    machines = tuple(f"{group[0]['vm_family']}.2xlarge" for group in groups)
    return _measured(
        name, space, groups, np.array(sorted(size.values())), [size[row["input"]] for row in rows], rows, machines
    )


def _scout(folder: Path, name: str) -> LifeTable:
    """Two input sizes. Scout has no repeated runs: its runs vary as those of c3o sort do."""
    files, sizes = {
        "kmeans": (("kmeans_huge_spark15", "kmeans_bigdata_spark15"), (200.9, 401.6)),
        "pagerank": (("pagerank_huge_spark", "pagerank_bigdata_spark"), (2.993, 6.104)),
        "wordcount": (("wordcount-large_huge_hadoop", "wordcount-large_bigdata_hadoop"), (1.0, 2.0)),
    }[name]
    rows = []
    for file, size in zip(files, sizes, strict=True):
        rows += [{**row, "size": str(size)} for row in _rows(folder / "scout" / f"{file}.csv")]
    space, groups = _grouped(rows, _SCOUT, _SCOUT_FEATURES, "size")
    seconds = np.array(
        [[float(row["time_s"]) for group in groups for row in group if float(row["size"]) == one] for one in sizes]
    )
    machines = tuple(f"{group[0]['vm_family']}.{group[0]['vm_size']}" for group in groups)
    noise = np.sort(np.concatenate(life_table("sort").noise))
    return LifeTable(name, space, np.array(sizes), seconds, (noise,), machines)


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _grouped(
    rows: Sequence[Mapping[str, str]], names: Sequence[str], features: Sequence[str], context: str
) -> tuple[Space, list[list[Mapping[str, str]]]]:
    """The space of the configurations, and the rows of each of them, one per input."""
    groups: dict[tuple[str, ...], list[Mapping[str, str]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    inputs = {row[context] for row in rows}
    whole = [group for group in groups.values() if {row[context] for row in group} == inputs]
    columns = {
        name: [_cell(group[0][name]) for group in whole] for name in dict.fromkeys((*features, "price_usd_per_hour"))
    }
    return Space.from_table(columns, names, features), whole


def _measured(
    name: str,
    space: Space,
    groups: Sequence[Sequence[Mapping[str, str]]],
    sizes: FloatArray,
    size_of_row: Sequence[float],
    rows: Sequence[Mapping[str, str]],
    machines: tuple[str, ...],
) -> LifeTable:
    size = {id(row): one for row, one in zip(rows, size_of_row, strict=True)}
    seconds, noise = np.full((len(sizes), len(groups)), np.nan), []
    for column, group in enumerate(groups):
        pool: list[float] = []
        for row in group:
            seconds[int(np.argmin(np.abs(sizes - size[id(row)]))), column] = float(row["time_s"])
            repeats = [float(one) for one in row["repeats"].split()]
            if len(repeats) > 2:
                pool += np.log(np.array(repeats) / np.median(repeats)).tolist()
        noise.append(np.sort(np.array(pool or [0.0])))
    return LifeTable(name, space, sizes, seconds, tuple(noise), machines)


def _cell(text: str) -> str | float | int:
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def _synthetic(name: str, seed: int) -> LifeTable:
    """Serial part, part that scales with machines, overhead per machine, and a wall where the memory no longer suffices."""
    rng = np.random.default_rng(1000 + seed)
    kinds = {"c": (1.0, 2.0, 0.10), "m": (0.9, 4.0, 0.115), "r": (0.88, 8.0, 0.15)}
    nodes = [2, 3, 4, 6, 8, 12, 16]
    speed = {kind: value[0] * math.exp(0.15 * rng.standard_normal()) for kind, value in kinds.items()}
    serial, work, power = rng.uniform(5, 60), rng.uniform(600, 3000), rng.uniform(0.8, 1.15)
    overhead, need = rng.uniform(0.2, 3.0), rng.uniform(0.0, 1.5) * 16
    scaling = rng.uniform(0.55, 0.95)
    cells = [(kind, count) for kind in kinds for count in nodes]
    sizes = np.array([1.0, 1.3, 1.7, 2.2, 3.0])
    seconds = np.empty((len(sizes), len(cells)))
    for place, size in enumerate(sizes):
        for column, (kind, count) in enumerate(cells):
            short = max(need * size / (count * kinds[kind][1] * 4) - 1.0, 0.0)
            base = serial + work * size**power / (speed[kind] * count**scaling) + overhead * count
            seconds[place, column] = base * (1 + min(2.0 * short, 3.0)) * math.exp(0.03 * rng.standard_normal())
    columns: dict[str, Sequence[object]] = {
        "kind": [kind for kind, _ in cells],
        "nodes": [count for _, count in cells],
        "price_usd_per_hour": [kinds[kind][2] * count for kind, count in cells],
    }
    space = Space.from_table(columns, ["kind", "nodes"])
    noise = np.sort(rng.choice([0.02, 0.05, 0.1]) * rng.standard_t(5, 400))
    machine = {"c": "c4.2xlarge", "m": "m4.2xlarge", "r": "r4.2xlarge"}
    return LifeTable(name, space, sizes, seconds, (noise,), tuple(machine[kind] for kind, _ in cells))
