"""Evaluate policies on families of jobs: run what a file of results lacks, and select what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from lynceus.replay.run import Until
from lynceus_lab.cell import Cell, Done
from lynceus_lab.engines import Crashed, Engine
from lynceus_lab.families_file import Case, Families, policy_hash
from lynceus_lab.family_results import Key, Result, ResultFile, key_of, result_of

Table = Mapping[str, Mapping[Case, Mapping[int, Result]]]
"""Label → case → seed → result."""


@dataclass(frozen=True)
class Ran:
    """The replays of a campaign, counted."""

    asked: int
    found: int
    made: int
    crashed: tuple[Crashed, ...]


@dataclass(frozen=True)
class Evaluated:
    """Results of the policies that were asked for."""

    table: Table
    other_code: int
    """How many of them were made with other code."""


@dataclass(frozen=True)
class _Job:
    label: str
    case: Case
    cell: Cell


@contextmanager
def _silent(total: int) -> Iterator[Callable[[Done | Crashed], None]]:
    yield lambda done: None


def run_missing(
    families: Families,
    seeds: Sequence[int],
    until: Until,
    engine: Engine,
    file: ResultFile,
    *,
    any_code: bool = False,
    watch: Callable[[int], AbstractContextManager[Callable[[Done | Crashed], None]]] = _silent,
) -> Ran:
    """Run the replays without a result, seed by seed, so that an interrupted campaign has the same seeds of all policies.

    With `any_code`, results of other code count, too. `watch` is told how many are missing, and what it returns
    is told each result.
    """
    jobs = _jobs(families, seeds, until)
    there = {_plain(result.key, any_code) for result in file.read()}
    missing: dict[Cell, _Job] = {}
    for job in jobs:
        key = _plain(key_of(job.case, job.cell), any_code)
        if key not in there:
            there.add(key)
            missing[job.cell] = job
    crashed: list[Crashed] = []
    with watch(len(missing)) as report:
        for done in engine(list(missing)):
            job = missing[done.cell]
            if isinstance(done, Done):
                file.append(result_of(job.case, done), job.label)
            else:
                crashed.append(done)
            report(done)
    return Ran(len(jobs), len(jobs) - len(missing), len(missing) - len(crashed), tuple(crashed))


def evaluated(
    families: Families, seeds: Iterable[int], until: Until, results: Iterable[Result], *, any_code: bool = False
) -> Evaluated:
    """The results of the declared policies: those of the current code, with `any_code` also the latest of other code."""
    asked = set(seeds)
    current: dict[tuple[str, Case], str] = {}
    labels: dict[str, list[str]] = {}
    for label, text in families.policies.items():
        labels.setdefault(policy_hash(text), []).append(label)
        for case in families.cases:
            current[policy_hash(text), case] = families.setting(case, label, until).code
    table: dict[str, dict[Case, dict[int, Result]]] = {label: {} for label in families.policies}
    for result in results:
        key = result.key
        code = current.get((key.policy, key.case))
        if code is None or key.until != until or key.seed not in asked or not (any_code or key.code == code):
            continue
        for label in labels[key.policy]:
            by_seed = table[label].setdefault(key.case, {})
            before = by_seed.get(key.seed)
            if before is None or before.key.code != code:
                by_seed[key.seed] = result
    other = sum(
        result.key.code != current[result.key.policy, case]
        for of_label in table.values()
        for case, by_seed in of_label.items()
        for result in by_seed.values()
    )
    return Evaluated(table, other)


def _jobs(families: Families, seeds: Sequence[int], until: Until) -> list[_Job]:
    settings = {
        (label, case): families.setting(case, label, until) for case in families.cases for label in families.policies
    }
    return [_Job(label, case, Cell(setting, seed)) for seed in seeds for (label, case), setting in settings.items()]


def _plain(key: Key, any_code: bool) -> Key:
    """The key, without the code if any code will do."""
    return Key(key.policy, key.case, key.seed, key.until, "") if any_code else key
