"""Where traces are kept: one small Parquet file per finished cell, written whole or not at all.

A file's place follows from what was run (`<setting's fingerprint>/<seed>.parquet`), so a campaign that was interrupted goes on where
it stopped, and two experiments that share a setting share its traces.
"""

from __future__ import annotations

import datetime
import json
import math
import os
import platform
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

from lynceus.errors import InputError, MissingExtraError
from lynceus.lab.cell import Cell, Done, Setting
from lynceus.replay import Replay, Step

_META = b"lynceus"
_COLUMNS = ("row", "state", "charged_usd", "spent_usd", "cno", "decision_s", "seconds", "told_s", "modelled")


@dataclass(frozen=True)
class Kept:
    """A replay as it was kept, with where and when it was made."""

    replay: Replay
    made: Mapping[str, Any]
    """date, lynceus, python, machine, wall_s."""


class Store:
    """A folder of traces."""

    def __init__(self, folder: Path) -> None:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MissingExtraError("Traces of the lab", "lab") from None
        self.folder = folder

    def path(self, cell: Cell) -> Path:
        """Where the trace of a cell lies, or will lie."""
        return self.folder / cell.setting.fingerprint / f"{cell.seed}.parquet"

    def find(self, cell: Cell) -> Path | None:
        """The trace of a cell, or one of the same replay that went on for longer: decisions do not depend on where it ends."""
        longer = (replace(cell.setting, trials=None), replace(cell.setting, until="optimum", trials=None))
        for setting in (cell.setting, *(longer if isinstance(cell.setting.until, float) else longer[:1])):
            if (path := self.path(Cell(setting, cell.seed))).is_file():
                return path
        return None

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells that have not been run, each once."""
        return [cell for cell in dict.fromkeys(cells) if self.find(cell) is None]

    def keep(self, done: Done) -> None:
        """Write a trace."""
        import pyarrow
        import pyarrow.parquet

        steps, replay = done.replay.steps, done.replay
        columns = {name: [getattr(step, name) for step in steps] for name in _COLUMNS}
        columns["params"] = [json.dumps(dict(step.params), default=str) for step in steps]
        facts = {
            "policy": replay.policy,
            "seed": replay.seed,
            "reason": replay.reason,
            "cno_at_stop": replay.cno_at_stop,
            "setting": done.cell.setting.written(),
            "made": provenance() | {"wall_s": round(done.wall_s, 3)},
        }
        table = pyarrow.table(columns).replace_schema_metadata({_META: json.dumps(facts).encode()})
        target = self.path(done.cell)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".part")
            os.close(handle)
        except OSError as error:
            raise InputError(
                f"--store: {self.folder} cannot be written: {error.strerror}; choose another folder."
            ) from None
        try:
            pyarrow.parquet.write_table(table, temporary, compression="zstd")
            os.replace(temporary, target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def read(self, setting: Setting, seeds: Iterable[int]) -> list[Kept]:
        """The traces that there are, in order of seeds."""
        cells = [Cell(setting, seed) for seed in seeds]
        return [_cut(_read(path), setting) for cell in cells if (path := self.find(cell)) is not None]


def _read(path: Path) -> Kept:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    facts = json.loads(table.schema.metadata[_META])
    columns = {name: table.column(name).to_pylist() for name in (*_COLUMNS, "params")}
    steps = tuple(
        Step(json.loads(params), **dict(zip(_COLUMNS, values, strict=True)))
        for params, *values in zip(columns["params"], *(columns[name] for name in _COLUMNS), strict=True)
    )
    return Kept(
        Replay(facts["policy"], facts["seed"], steps, facts["reason"], facts["cno_at_stop"]),
        facts["made"],
    )


def _cut(kept: Kept, setting: Setting) -> Kept:
    """The part of a trace that belongs to a setting; a longer replay may stand for it."""
    replay, steps = kept.replay, kept.replay.steps[: setting.trials]
    if isinstance(setting.until, float):
        reached = replay.reached(setting.until).trials
        steps = steps[: int(reached)] if math.isfinite(reached) else steps
    return kept if len(steps) == len(replay.steps) else replace(kept, replay=replace(replay, steps=steps))


def provenance() -> dict[str, Any]:
    """When, with what and where: kept with every trace."""
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "lynceus": metadata.version("lynceus"),
        "python": platform.python_version(),
        "numpy": metadata.version("numpy"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
