"""Many lives under all policies, kept in a file as they end, and the tables that sum them up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from lynceus_lab.life_results import FIRST_RUNS, POLICIES, LifeResult, results
from lynceus_lab.lives import QUIET, RUNS
from lynceus_lab.markdown import header, row

_REFERENCES = ("oracle", "best fixed")


def run_lives(
    tables: Iterable[str],
    kinds: Sequence[str],
    seeds: Sequence[int],
    file: Path,
    runs: int = RUNS,
    progress: Callable[[str], None] = lambda line: None,
) -> list[LifeResult]:
    """All results; lives that the file has already are not lived again."""
    tables = list(tables)
    found = {(one.table, one.kind, one.seed): one for one in read_results(file)}
    file.parent.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        for table in tables:
            for kind in kinds:
                if (table, kind, seed) in found:
                    continue
                made = results(table, kind, seed, POLICIES, runs)
                with file.open("a", encoding="utf-8") as lines:
                    lines.write("".join(json.dumps(one.record()) + "\n" for one in made))
                progress(made[0].life)
    return list(read_results(file))


def read_results(file: Path) -> Iterator[LifeResult]:
    """The results in a file."""
    if file.is_file():
        for line in file.read_text(encoding="utf-8").splitlines():
            yield LifeResult.of_record(json.loads(line))


def money_table(found: Sequence[LifeResult]) -> str:
    """Money after the first runs, relative to the oracle: mean over lives with its standard error, by what happens in them."""
    kinds, rows = _kinds(found), []
    for kind in (*kinds, "all that change", "all that do not"):
        if not (lives := _lives(found, kind)):
            continue
        cells = [kind, str(len(lives))]
        for policy in (*POLICIES, "best fixed"):
            ratios = np.array([_usd(one[policy]) / _usd(one["oracle"]) for one in lives])
            cells.append(f"{ratios.mean():.3f} ± {ratios.std() / max(len(ratios) - 1, 1) ** 0.5:.3f}")
        rows.append(cells)
    return "\n".join([*header(["life", "lives", *POLICIES, "best fixed"]), *map(row, rows)])


def late_table(found: Sequence[LifeResult]) -> str:
    """Late runs beyond those of the best fixed configuration, as a share of all runs, and what was changed."""
    rows = []
    for kind in (*_kinds(found), "all that change", "all that do not"):
        if not (lives := _lives(found, kind)):
            continue
        cells = [kind]
        for policy in POLICIES:
            late = [np.mean(one[policy].late) - np.mean(one["best fixed"].late) for one in lives]
            cells.append(f"{100 * float(np.mean(late)):.2f} %")
        ours = [one["lynceus"] for one in lives]
        cells += [f"{np.mean([one.changes for one in ours]):.2f}", f"{np.mean([one.canaries for one in ours]):.1f}"]
        rows.append(cells)
    return "\n".join([*header(["life", *POLICIES, "changes", "canaries"]), *map(row, rows)])


def _usd(result: LifeResult) -> float:
    return float(sum(result.usd[FIRST_RUNS:]))


def _kinds(found: Sequence[LifeResult]) -> list[str]:
    return list(dict.fromkeys(one.kind for one in found))


def _lives(found: Sequence[LifeResult], kind: str) -> list[dict[str, LifeResult]]:
    """The results of every life of a kind by policy."""
    lives: dict[str, dict[str, LifeResult]] = {}
    for one in found:
        quiet = one.kind in QUIET
        if one.kind == kind or (kind == "all that change" and not quiet) or (kind == "all that do not" and quiet):
            lives.setdefault(one.life, {})[one.policy] = one
    return [one for one in lives.values() if set(one) >= {*POLICIES, *_REFERENCES}]
