"""Where traces are kept: one small Parquet file per finished cell, written whole or not at all.

A file's place follows from what was run and with which code (`<setting>/<code>/<seed>.parquet`, both fingerprints), so a campaign that
was interrupted goes on where it stopped, two experiments that share a setting share its traces, and traces of different code never mix.
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
from lynceus.lab.code import UNKNOWN, commit
from lynceus.replay import Replay, Step

_META = b"lynceus"
_ENOUGH = 0.5
"""Traces of the code of now, as a share of those of other code, from which on they are shown in their place."""
_COLUMNS = ("row", "state", "charged_usd", "spent_usd", "cno", "decision_s", "seconds", "told_s", "modelled", "advised")


@dataclass(frozen=True)
class Kept:
    """A replay as it was kept, with where and when it was made."""

    replay: Replay
    made: Mapping[str, Any]
    """date, lynceus, code, commit, python, machine, wall_s."""

    @property
    def code(self) -> str:
        """The fingerprint of the sources and tables that it was made with."""
        return str(self.made.get("code", UNKNOWN))


class Store:
    """A folder of traces."""

    def __init__(self, folder: Path) -> None:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MissingExtraError("Traces of the lab", "lab") from None
        self.folder = folder

    def path(self, cell: Cell, code: str | None = None) -> Path:
        """Where the trace of a cell lies, or will lie, made with the code as it is now or with other code."""
        code = cell.setting.code if code is None else code
        folder = self.folder / cell.setting.fingerprint
        return (folder if code == UNKNOWN else folder / code) / f"{cell.seed}.parquet"

    def find(self, cell: Cell, code: str | None = None) -> Path | None:
        """The trace of a cell, or one of the same replay that went on for longer: decisions do not depend on where it ends."""
        for setting in _longer(cell.setting):
            if (path := self.path(Cell(setting, cell.seed), code)).is_file():
                return path
        return None

    def codes(self, setting: Setting) -> list[str]:
        """The fingerprints of code of which there are traces, by number of traces; that of now first unless it has very few."""
        found: dict[str, int] = {}
        for each in _longer(setting):
            folder = self.folder / each.fingerprint
            for path in folder.glob("**/*.parquet"):
                code = UNKNOWN if path.parent == folder else path.parent.name
                found[code] = found.get(code, 0) + 1
        # A campaign that was only just begun anew must not hide one that is complete.
        begun = found.get(setting.code, 0) >= _ENOUGH * max(found.values(), default=0)
        return sorted(found, key=lambda code: (not (begun and code == setting.code), -found[code], code))

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells that have not been run, each once."""
        return [cell for cell in dict.fromkeys(cells) if self.find(cell) is None]

    def keep(self, done: Done) -> None:
        """Write a trace."""
        import pyarrow

        steps, replay = done.replay.steps, done.replay
        columns = {name: [getattr(step, name) for step in steps] for name in _COLUMNS}
        columns["params"] = [json.dumps(dict(step.params), default=str) for step in steps]
        facts = {
            "policy": replay.policy,
            "seed": replay.seed,
            "reason": replay.reason,
            "cno_at_stop": replay.cno_at_stop,
            "setting": done.cell.setting.written(),
            "made": provenance() | {"code": done.cell.setting.code, "wall_s": round(done.wall_s, 3)},
        }
        table = pyarrow.table(columns).replace_schema_metadata({_META: json.dumps(facts).encode()})
        self._write(table, self.path(done.cell))

    def _write(self, table: Any, target: Path) -> None:
        import pyarrow.parquet

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

    def read(self, setting: Setting, seeds: Iterable[int], code: str | None = None) -> list[Kept]:
        """The traces that there are, in order of seeds, all of one code: that of now if it has enough of them, else that of the most."""
        cells = [Cell(setting, seed) for seed in seeds]
        for each in self.codes(setting) if code is None else [code]:
            paths = [path for cell in cells if (path := self.find(cell, each)) is not None]
            if paths:
                return [_cut(_read(path, each), setting) for path in paths]
        return []

    def adopt(self, cell: Cell, code: str, checked: Iterable[int]) -> None:
        """Let the trace of other code stand for one of the code as it is now, because equal seeds were seen to give equal traces."""
        import pyarrow.parquet

        path = self.path(cell, code)
        table = pyarrow.parquet.read_table(path)
        facts = json.loads(table.schema.metadata[_META])
        facts["made"] |= {"code": cell.setting.code, "adopted": {"from": code, "checked": list(checked)}}
        self._write(table.replace_schema_metadata({_META: json.dumps(facts).encode()}), self.path(cell))


def _longer(setting: Setting) -> tuple[Setting, ...]:
    """The setting, and those whose replays go on for longer."""
    longer = (replace(setting, trials=None), replace(setting, until="optimum", trials=None))
    return tuple(dict.fromkeys((setting, *(longer if isinstance(setting.until, float) else longer[:1]))))


def _read(path: Path, code: str) -> Kept:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    facts = json.loads(table.schema.metadata[_META])
    # A column that a trace does not have yet was added later; its default stands for it.
    names = [name for name in _COLUMNS if name in table.column_names]
    columns = {name: table.column(name).to_pylist() for name in (*names, "params")}
    steps = tuple(
        Step(json.loads(params), **dict(zip(names, values, strict=True)))
        for params, *values in zip(columns["params"], *(columns[name] for name in names), strict=True)
    )
    return Kept(
        Replay(facts["policy"], facts["seed"], steps, facts["reason"], facts["cno_at_stop"]),
        {**facts["made"], "code": code},
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
        "commit": commit(),
        "python": platform.python_version(),
        "numpy": metadata.version("numpy"),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }
