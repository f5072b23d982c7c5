"""Where traces are stored: one small Parquet file per finished cell, written atomically.

Its path depends on what was run and with which code (`<setting>/<code>/<seed>.parquet`, both fingerprints), so an interrupted campaign
continues where it stopped, experiments with equal settings share their traces, and traces of different code never mix.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from lynceus.errors import InputError, MissingExtraError
from lynceus.policy.planners.by_budget import ByBudget
from lynceus.policy.policy_file import compose
from lynceus.replay.run import Replay, Step, target_cno
from lynceus_lab.cell import Cell, Done, Setting
from lynceus_lab.fingerprint import parts

_log = logging.getLogger("lynceus_lab")
_META = b"lynceus"
_MAGIC = b"PAR1"
"""The first and last bytes of a Parquet file."""
_ENOUGH = 0.5
"""Traces of the current code are shown once there are this many, as a fraction of those of other code."""
_COLUMNS = (
    "row",
    "state",
    "charged_usd",
    "spent_usd",
    "cno",
    "decision_s",
    "seconds",
    "target_s",
    "modelled",
    "advised",
)
_COLUMN_OF_0_1 = {"target_s": "told_s"}
"""Columns that version 0.1 wrote under another name."""


@dataclass(frozen=True)
class Kept:
    """A stored replay with its provenance."""

    replay: Replay
    made: Mapping[str, Any]
    """date, lynceus, code, commit, python, numpy, machine, wall_s; for a peer also its libraries."""

    @property
    def code(self) -> str:
        """The fingerprint of the sources and tables behind it."""
        return str(self.made["code"])


class Store:
    """A folder of traces."""

    def __init__(self, folder: Path) -> None:
        try:
            import pyarrow  # noqa: F401
        except ImportError:
            raise MissingExtraError("Traces of the lab", "lab") from None
        self.folder = folder

    def path(self, cell: Cell, code: str | None = None) -> Path:
        """The path of the trace of a cell, from the current code or from other code."""
        code = cell.setting.code if code is None else code
        return self.folder / cell.setting.fingerprint / code / f"{cell.seed}.parquet"

    def find(self, cell: Cell, code: str | None = None) -> Path | None:
        """The trace of a cell, or one of the same replay that ran longer; None when there is none."""
        for setting in _longer(cell.setting):
            path = self.path(Cell(setting, cell.seed), code)
            if path.is_file():
                if _is_complete(path):
                    return path
                _set_aside(path)
        return None

    def codes(self, setting: Setting) -> list[str]:
        """Fingerprints of code with traces, by number of traces; the current code comes first unless it has very few."""
        found: dict[str, int] = {}
        for each in _longer(setting):
            for path in (self.folder / each.fingerprint).glob("*/*.parquet"):
                found[path.parent.name] = found.get(path.parent.name, 0) + 1
        # A campaign that has just been restarted must not hide a complete one.
        begun = found.get(setting.code, 0) >= _ENOUGH * max(found.values(), default=0)
        return sorted(found, key=lambda code: (not (begun and code == setting.code), -found[code], code))

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """The cells without a trace, without duplicates."""
        return [cell for cell in dict.fromkeys(cells) if self.find(cell) is None]

    def keep(self, done: Done) -> None:
        """Store a trace."""
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
            "made": {**done.made, "code": done.cell.setting.code, "wall_s": round(done.wall_s, 3)},
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
        """The traces in order of seeds, all of one code: the current one if it has enough of them, else the one with the most."""
        cells = [Cell(setting, seed) for seed in seeds]
        for each in self.codes(setting) if code is None else [code]:
            found = [kept for cell in cells if (kept := self._one(cell, each)) is not None]
            if found:
                return found
        return []

    def _one(self, cell: Cell, code: str) -> Kept | None:
        path = self.find(cell, code)
        if path is None:
            return None
        try:
            kept = _read(path, code)
        except (OSError, ValueError, KeyError, TypeError):  # errors of Arrow and JSON for corrupt bytes
            _set_aside(path)
            return None
        return kept if path == self.path(cell, code) else _cut(kept, cell.setting)

    def adopt(self, cell: Cell, code: str, checked: Iterable[int]) -> None:
        """Store the trace of other code as one of the current code, after checked seeds gave equal traces."""
        import pyarrow.parquet

        path = self.path(cell, code)
        table = pyarrow.parquet.read_table(path)
        facts = json.loads(table.schema.metadata[_META])
        facts["made"] |= {"code": cell.setting.code, "adopted": {"from": code, "checked": list(checked)}}
        self._write(table.replace_schema_metadata({_META: json.dumps(facts).encode()}), self.path(cell))


@lru_cache(maxsize=4096)
def _longer(setting: Setting) -> tuple[Setting, ...]:
    """The setting, and those whose replays run longer and decide in the same way until it ends."""
    if setting.parallel > 1:
        return (setting,)  # trials that run at the end still settle, so a prefix of a longer trace is a different trace
    untils = dict.fromkeys((setting.until, "optimum" if isinstance(setting.until, float) else setting.until))
    few = setting.trials is not None and setting.trials <= _few(setting.policy)
    trials = dict.fromkeys((setting.trials, setting.trials if few else None))
    return tuple(replace(setting, until=until, trials=most) for most, until in itertools.product(trials, untils))


def _few(policy: str) -> int:
    """The number of trials up to which a policy plans differently; there, the limit on trials changes decisions."""
    if policy.startswith("peer:"):
        return 0
    return max((part.trials for part in parts(compose(json.loads(policy))) if isinstance(part, ByBudget)), default=0)


def _is_complete(path: Path) -> bool:
    """Whether a file is complete; fast, because a campaign checks thousands."""
    with path.open("rb") as file:
        begins = file.read(len(_MAGIC))
        file.seek(0, os.SEEK_END)
        if file.tell() < 2 * len(_MAGIC):
            return False
        file.seek(-len(_MAGIC), os.SEEK_END)
        return begins == file.read() == _MAGIC


def _set_aside(path: Path) -> None:
    """Rename a damaged trace, so that the next campaign runs its cell again."""
    aside = path.with_name(f"{path.name}.damaged")
    _log.warning("%s: the trace is damaged and counts as missing; it was renamed to %s.", path, aside.name)
    with contextlib.suppress(OSError):  # a store may be read-only
        os.replace(path, aside)


def _read(path: Path, code: str) -> Kept:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(path)
    facts = json.loads(table.schema.metadata[_META])
    stored = {name: name if name in table.column_names else _COLUMN_OF_0_1.get(name, name) for name in _COLUMNS}
    # Columns that were added after the trace was written have defaults.
    names = [name for name in _COLUMNS if stored[name] in table.column_names]
    columns = {name: table.column(stored.get(name, name)).to_pylist() for name in (*names, "params")}
    steps = tuple(
        Step(json.loads(params), **dict(zip(names, values, strict=True)))
        for params, *values in zip(columns["params"], *(columns[name] for name in names), strict=True)
    )
    return Kept(
        Replay(facts["policy"], facts["seed"], steps, facts["reason"], facts["cno_at_stop"]),
        {**facts["made"], "code": code},
    )


def _cut(kept: Kept, setting: Setting) -> Kept:
    """The prefix of a longer replay that a setting would have produced, with the recommendation at its end."""
    replay = replace(kept.replay, reason="a prefix of a longer replay")
    steps = replay.steps[: setting.trials]
    reached = replay.reached(target_cno(setting.until)).trials
    if reached <= len(steps):
        return replace(kept, replay=replace(replay, steps=steps[: int(reached)], cno_at_stop=None))
    if len(steps) == len(replay.steps):
        return kept
    return replace(kept, replay=replace(replay, steps=steps, cno_at_stop=_recommended(steps)))


def _recommended(steps: tuple[Step, ...]) -> float:
    """CNO of the recommendation after some steps; infinite while no run has finished."""
    return steps[-1].cno if any(step.state == "COMPLETE" for step in steps) else math.inf
