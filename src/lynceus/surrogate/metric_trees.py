"""Arrow's idea (Hsu et al., ICDCS 2018): what a run did to processors, memory and disks tells how other configurations would fare.

Every pair of runs (i, j) is an example: features of i, low-level metrics of i, features of j → ln time of j. A new configuration is
predicted once from every run, and the predictions are averaged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lynceus.randomness import generator
from lynceus.situation import Belief, FloatArray, IntArray, Situation
from lynceus.surrogate.inputs import Inputs, model_inputs

_SHORTEST_S = 1e-3


@dataclass(frozen=True, slots=True)
class MetricTrees:
    """Extra-trees over pairs of runs. Jobs that report nothing are predicted from features alone."""

    trees: int = 20
    min_leaf: int = 2
    inputs: Inputs = "features"

    def __call__(self, situation: Situation, seed: int) -> Belief:
        """ln seconds of every row in every situation; goal and limit metrics are believed to be what they were on average."""
        if not len(situation.rows):
            raise ValueError("trees over pairs need at least one observation; put an initial design before the planner")
        features, _ = model_inputs(situation.problem.space, self.inputs)
        moments = [self._moments(situation, i, features, seed) for i in range(len(situation))]
        mean, std = (np.stack(parts) for parts in zip(*moments, strict=True))
        return Belief("log time", mean, std)

    def _moments(self, situation: Situation, i: int, features: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
        """Mean and std `[q, m]` in one situation, its imagined runs included."""
        rows = np.concatenate([situation.rows, situation.imagined_rows[i]])
        logs = np.concatenate([np.log(np.maximum(situation.seconds, _SHORTEST_S)), situation.imagined_told[i, :, 0]])
        told = np.vstack([situation.metrics, situation.imagined_told[i, :, 1:]])
        metrics = reported(situation, rows)
        guesses = self._guesses(features, rows, metrics, logs, seed + situation.started)
        mean = np.empty((len(features), 1 + told.shape[1]))
        std = np.empty_like(mean)
        mean[:, 0], std[:, 0] = guesses.mean(axis=0), guesses.std(axis=0, ddof=1 if self.trees > 1 else 0)
        for metric in range(told.shape[1]):
            known = told[np.isfinite(told[:, metric]), metric]
            mean[:, 1 + metric] = known.mean() if len(known) else 0.0
            std[:, 1 + metric] = max(float(known.std()), 1e-6) if len(known) else 1.0
        return mean, std

    def _guesses(
        self, features: FloatArray, rows: IntArray, metrics: FloatArray, logs: FloatArray, seed: int
    ) -> FloatArray:
        """What each tree thinks of every row, averaged over the runs that it is predicted from `[trees, q]`."""
        n, q = len(rows), len(features)
        left = np.hstack([features[rows], metrics])
        first, second = (places.ravel() for places in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
        examples = np.hstack([left[first], features[rows[second]]])
        asked = np.hstack([np.repeat(left, q, axis=0), np.tile(features, (n, 1))])
        found = np.empty((self.trees, q))
        for tree in range(self.trees):
            answer = np.empty(len(asked))
            luck = generator(seed, "pairs", tree)
            _grow(
                examples,
                logs[second],
                asked,
                answer,
                (np.arange(len(examples)), np.arange(len(asked))),
                self.min_leaf,
                luck,
            )
            found[tree] = answer.reshape(n, q).mean(axis=0)
        return found


def reported(situation: Situation, rows: IntArray) -> FloatArray:
    """Metrics that the run of each row reported, scaled to mean 0 and spread 1 `[n, metrics]`; 0 where a run reported none."""
    seen = {one.row: one.outcome.metrics for one in situation.history if one.outcome.metrics}
    names = sorted({name for metrics in seen.values() for name in metrics})
    table = np.array([[seen.get(int(row), {}).get(name, np.nan) for name in names] for row in rows], dtype=float)
    table = table.reshape(len(rows), len(names))
    known = np.isfinite(table)
    count = np.maximum(known.sum(axis=0), 1)
    middle = np.where(known, table, 0.0).sum(axis=0) / count
    spread = np.sqrt(np.where(known, (table - middle) ** 2, 0.0).sum(axis=0) / count)
    return np.where(known, (table - middle) / np.where(spread > 0, spread, 1.0), 0.0)


def _grow(
    examples: FloatArray,
    target: FloatArray,
    asked: FloatArray,
    answer: FloatArray,
    here: tuple[IntArray, IntArray],
    min_leaf: int,
    luck: np.random.Generator,
) -> None:
    """One extra-tree: at every node the best of one random threshold per tried feature; what is asked is routed along."""
    waiting = [here]
    tries = int(np.sqrt(examples.shape[1])) + 1
    while waiting:
        inside, wanted = waiting.pop()
        if not len(wanted):
            continue
        values = target[inside]
        split = _split(examples[inside], values, tries, min_leaf, luck) if np.ptp(values) > 0 else None
        if split is None:
            answer[wanted] = values.mean()
            continue
        feature, threshold = split
        low, ask_low = examples[inside, feature] <= threshold, asked[wanted, feature] <= threshold
        waiting += [(inside[low], wanted[ask_low]), (inside[~low], wanted[~ask_low])]


def _split(
    examples: FloatArray, values: FloatArray, tries: int, min_leaf: int, luck: np.random.Generator
) -> tuple[int, float] | None:
    low, high = examples.min(axis=0), examples.max(axis=0)
    varied = np.flatnonzero(high > low)
    if not len(varied) or len(values) < 2 * min_leaf:
        return None
    tried = luck.permutation(varied)[:tries]
    thresholds = luck.uniform(low[tried], high[tried])
    below = examples[:, tried] <= thresholds
    count = below.sum(axis=0)
    total = values.sum()
    part = values @ below
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = part**2 / count + (total - part) ** 2 / (len(values) - count)
    gain[(count < min_leaf) | (len(values) - count < min_leaf)] = -np.inf
    best = int(np.argmax(gain))
    return (int(tried[best]), float(thresholds[best])) if np.isfinite(gain[best]) else None
