"""Check that the current code still gives the stored traces: run some cells again and compare.

If they are equal, the code has changed but its decisions have not, and the other traces of the setting are adopted: hours of campaigns
need not be repeated because a function was renamed. If they are not, the old traces remain traces of old code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lynceus.replay.run import Replay
from lynceus_lab.cell import Cell, Setting, run_cell
from lynceus_lab.experiment import Experiment
from lynceus_lab.trace_store import Kept, Store


@dataclass(frozen=True)
class Verified:
    """The result for the traces of one setting."""

    setting: Setting
    code: str
    """The fingerprint of the code that made them."""
    checked: tuple[int, ...]
    """Seeds that ran again."""
    differing: tuple[int, ...]
    adopted: int


def verify(
    experiments: Sequence[Experiment], store: Store, per: int = 2, progress: Callable[[Verified], None] | None = None
) -> list[Verified]:
    """Run `per` cells again of every setting that has only traces of other code, and adopt the others if all are equal.

    The cell that took longest is always among them; the others are spread over the shorter ones.
    """
    found = []
    for setting, seeds in _settings(experiments).items():
        done = _verified(setting, seeds, store, per)
        if done is not None:
            found.append(done)
            if progress is not None:
                progress(done)
    return found


def _settings(experiments: Sequence[Experiment]) -> dict[Setting, list[int]]:
    found: dict[Setting, list[int]] = {}
    for experiment in experiments:
        for place, setting in experiment.settings.items():
            known = found.setdefault(setting, [])
            known += [seed for seed in experiment.seeds(place.policy) if seed not in known]
    return found


def _verified(setting: Setting, seeds: Sequence[int], store: Store, per: int) -> Verified | None:
    older = [code for code in store.codes(setting) if code != setting.code]
    if not older:
        return None
    code = older[0]
    missing = [
        seed
        for seed in seeds
        if store.path(Cell(setting, seed), code).is_file() and not store.path(Cell(setting, seed)).is_file()
    ]
    if not missing:
        return None
    kept = {seed: one for seed in missing for one in store.read(setting, [seed], code)}
    chosen = _spread(sorted(kept, key=lambda seed: float(kept[seed].made["wall_s"])), per)
    differing = tuple(_differing(setting, {seed: kept[seed] for seed in chosen}, store))
    rest = [] if differing else [seed for seed in kept if seed not in chosen]
    for seed in rest:
        store.adopt(Cell(setting, seed), code, chosen)
    return Verified(setting, code, tuple(chosen), differing, len(rest))


def _spread(seeds: Sequence[int], per: int) -> list[int]:
    """Some of the seeds, spread evenly from the last (longest replay, most decisions) to the first.

    >>> _spread([5, 3, 8, 1], 1), _spread([5, 3, 8, 1], 2), _spread([5, 3, 8, 1], 3)
    ([1], [1, 5], [1, 3, 5])
    """
    last = len(seeds) - 1
    return list(dict.fromkeys(seeds[last - round(last * place / max(per - 1, 1))] for place in range(per)))


def _differing(setting: Setting, kept: dict[int, Kept], store: Store) -> Iterator[int]:
    """Seeds whose trace has changed. The new traces are stored like any other."""
    for seed, before in kept.items():
        done = run_cell(Cell(setting, seed))
        store.keep(done)
        if not same_trials(before.replay, done.replay):
            yield seed


def same_trials(one: Replay, other: Replay) -> bool:
    """Whether two replays ran the same rows with the same results for the same money."""
    if len(one.steps) != len(other.steps):
        return False
    return all(
        (a.row, a.state) == (b.row, b.state)
        and abs(a.charged_usd - b.charged_usd) <= 1e-9 * max(abs(a.charged_usd), 1e-9)
        for a, b in zip(one.steps, other.steps, strict=True)
    )
