"""Results of `lynceus lab families`: a file with one JSON line per policy, job, deadline and seed.

Lines are only appended, so an interrupted campaign continues, and several campaigns may write to one file. A line is found by what was run:
a hash of the policy, the case, the seed, when the replay may end, and the fingerprint of the code and the table.
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lynceus.errors import InputError
from lynceus.replay.run import Until
from lynceus_lab.cell import Cell, Done, job_of
from lynceus_lab.families_file import Case, policy_hash
from lynceus_lab.measures import FUTURE_RUNS, final_cno

_log = logging.getLogger("lynceus_lab")
LEVEL = 1.1
"""The CNO that counts as found: within 10 % of the optimum."""


@dataclass(frozen=True, order=True)
class Key:
    """What was run."""

    policy: str
    """Hash of the policy (`policy_hash`)."""
    case: Case
    seed: int
    until: Until
    code: str
    """Fingerprint of the sources and the table."""


@dataclass(frozen=True)
class Result:
    """The numbers of one replay. Money is in multiples of what one run of the optimum costs."""

    key: Key
    money: float
    """Spent until a run within 10 % of the optimum; infinite: there was none."""
    trials: int
    """Trials of the whole replay."""
    spent: float
    """Money of the whole replay."""
    cno: float
    """CNO of the recommendation at the end."""
    reason: str = ""
    """Why the replay ended."""
    wall_s: float = 0.0
    made: Mapping[str, Any] = field(default_factory=dict)
    """Date, versions, machine."""

    @property
    def regret(self) -> float:
        """Money of the search plus the excess cost of the next hundred runs with its recommendation."""
        return self.spent + FUTURE_RUNS * (self.cno - 1.0)


def key_of(case: Case, cell: Cell) -> Key:
    """The key of a cell's result with the current code."""
    setting = cell.setting
    return Key(policy_hash(setting.policy), case, cell.seed, setting.until, setting.code)


def result_of(case: Case, done: Done) -> Result:
    """The numbers of a replay that has run."""
    replay = done.replay
    unit = job_of(done.cell).optimum.cost_usd
    return Result(
        key_of(case, done.cell),
        replay.reached(LEVEL).usd / unit,
        len(replay.steps),
        (replay.steps[-1].spent_usd if replay.steps else 0.0) / unit,
        final_cno(replay),
        replay.reason,
        round(done.wall_s, 3),
        done.made,
    )


class ResultFile:
    """A file of results."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, result: Result, label: str) -> None:
        """Write one line, in one system call: a process that is killed leaves whole lines, or one that is cut and skipped."""
        key = result.key
        line = {"label": label, **asdict(key.case), "seed": key.seed, "until": key.until, "policy": key.policy}
        line |= {"code": key.code, "money": _written(result.money), "trials": result.trials}
        line |= {"spent": _written(result.spent), "cno": _written(result.cno), "reason": result.reason}
        line |= {"wall_s": result.wall_s, "made": dict(result.made)}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            start = b"\n" if self._is_cut() else b""
            with self.path.open("ab", buffering=0) as file:
                file.write(start + json.dumps(line).encode() + b"\n")
        except OSError as error:
            raise InputError(
                f"--store: {self.path} cannot be written: {error.strerror}; choose another file."
            ) from None

    def read(self) -> list[Result]:
        """All results in the order in which they were written."""
        try:
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(f"--store: {self.path} cannot be read: {error.strerror}; choose another file.") from None
        return list(self._parsed(text.splitlines()))

    def _parsed(self, lines: Iterable[str]) -> Iterator[Result]:
        for number, line in enumerate(lines, start=1):
            if line:
                try:
                    yield _result(json.loads(line))
                except (ValueError, KeyError, TypeError):
                    _log.warning("%s:%d: the line is damaged and counts as missing.", self.path, number)

    def _is_cut(self) -> bool:
        """Whether the last line has no end, because a process was killed while it wrote."""
        try:
            with self.path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                return file.read() != b"\n"
        except OSError:  # no file, or an empty one
            return False


def _result(line: Mapping[str, Any]) -> Result:
    case = Case(line["family"], line["job"], line["deadline"], line.get("rows", 1.0))
    return Result(
        Key(line["policy"], case, line["seed"], line["until"], line["code"]),
        float(line["money"]),
        line["trials"],
        float(line["spent"]),
        float(line["cno"]),
        line["reason"],
        line["wall_s"],
        line["made"],
    )


def _written(value: float) -> float | str:
    """A number for JSON, which has no infinity; `float` parses it again."""
    return value if math.isfinite(value) else str(value)
