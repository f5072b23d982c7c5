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
        answers = _extra_trees(examples, logs[second], asked, self.trees, self.min_leaf, generator(seed, "pairs"))
        averaged: FloatArray = answers.reshape(self.trees, n, q).mean(axis=1)
        return averaged


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


def _extra_trees(
    examples: FloatArray, target: FloatArray, asked: FloatArray, trees: int, min_leaf: int, luck: np.random.Generator
) -> FloatArray:
    """What each extra-tree answers to every question `[trees, asked]`.

    All trees grow together, level by level, because nodes are many and small: one after the other they took five times as long.
    Questions are routed along, and a node that no question reached is not grown.
    """
    answers = np.empty(trees * len(asked))
    tries = int(np.sqrt(examples.shape[1])) + 1
    # Examples of the open nodes, node by node; each tree's root first holds all.
    members, sizes = np.tile(np.arange(len(examples)), trees), np.full(trees, len(examples))
    questions, reached = np.arange(len(answers)), np.repeat(np.arange(trees), len(asked))
    while True:
        values, starts = target[members], np.cumsum(sizes) - sizes
        feature, threshold = _splits(examples[members], values, starts, sizes, tries, min_leaf, luck)
        settled = feature[reached] < 0
        answers[questions[settled]] = (np.add.reduceat(values, starts) / sizes)[reached[settled]]
        questions, reached = questions[~settled], reached[~settled]
        if not len(questions):
            return answers.reshape(trees, len(asked))
        above = asked[questions % len(asked), feature[reached]] > threshold[reached]
        children, reached = np.unique(2 * reached + above, return_inverse=True)
        node = np.repeat(np.arange(len(sizes)), sizes)
        child = 2 * node + (examples[members, feature[node]] > threshold[node])
        place = np.searchsorted(children, child).clip(max=len(children) - 1)
        kept = children[place] == child
        order = np.argsort(place[kept], kind="stable")
        members, sizes = members[kept][order], np.bincount(place[kept], minlength=len(children))


def _splits(
    examples: FloatArray,
    values: FloatArray,
    starts: IntArray,
    sizes: IntArray,
    tries: int,
    min_leaf: int,
    luck: np.random.Generator,
) -> tuple[IntArray, FloatArray]:
    """Feature and threshold of every node: the best of one random threshold per tried feature; -1 where nothing splits.

    `examples` `[n, features]` and `values` `[n]` lie node by node, the node k from `starts[k]` on, `sizes[k]` of them.
    """
    lowest, highest = np.minimum.reduceat(examples, starts), np.maximum.reduceat(examples, starts)
    keys = np.where(highest > lowest, luck.random(lowest.shape), np.inf)  # features that do not vary are not tried
    tried = np.argsort(keys, axis=1)[:, :tries]
    low, high = (np.take_along_axis(ends, tried, axis=1) for ends in (lowest, highest))
    thresholds = luck.uniform(low, high)
    node = np.repeat(np.arange(len(sizes)), sizes)
    below = np.take_along_axis(examples, tried[node], axis=1) <= thresholds[node]
    count = np.add.reduceat(below, starts, dtype=np.intp)
    rest = sizes[:, None] - count
    part, total = np.add.reduceat(below * values[:, None], starts), np.add.reduceat(values, starts)[:, None]
    allowed = (high > low) & (count >= min_leaf) & (rest >= min_leaf)
    allowed &= (np.maximum.reduceat(values, starts) > np.minimum.reduceat(values, starts))[:, None]
    gain = np.full(tried.shape, -np.inf)
    np.divide(part**2, count, out=gain, where=allowed)
    np.add(gain, np.divide((total - part) ** 2, rest, out=np.zeros_like(gain), where=allowed), out=gain)
    best = np.argmax(gain, axis=1)[:, None]
    feature = np.where(np.take_along_axis(allowed, best, axis=1), np.take_along_axis(tried, best, axis=1), -1)
    return feature[:, 0], np.take_along_axis(thresholds, best, axis=1)[:, 0]
