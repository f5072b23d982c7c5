"""Arrow's idea (Hsu et al., ICDCS 2018): how a run used processors, memory and disks predicts the time of other configurations.

Every pair of runs (i, j) is an example: features of i, low-level metrics of i, features of j → ln time of j. A new configuration is
predicted once from every run, and the predictions are averaged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lynceus.models.features import Inputs, model_inputs
from lynceus.models.prediction import Prediction
from lynceus.models.seeds import generator
from lynceus.models.state import State
from lynceus.space.column import FloatArray, IntArray

_SHORTEST_S = 1e-3


@dataclass(frozen=True, slots=True)
class MetricTrees:
    """Extra-trees over pairs of runs. Jobs without reported metrics are predicted from features alone."""

    trees: int = 20
    min_leaf: int = 2
    inputs: Inputs = "features"

    def __call__(self, state: State, seed: int) -> Prediction:
        """ln seconds of every row in every state; metrics are predicted as their average so far."""
        if not len(state.rows):
            raise ValueError("metric trees need at least one observation; put an initial design before the planner")
        features, _ = model_inputs(state.problem.space, self.inputs)
        moments = [self._moments(state, i, features, seed) for i in range(len(state))]
        mean, std = (np.stack(parts) for parts in zip(*moments, strict=True))
        return Prediction("log time", mean, std)

    def _moments(self, state: State, i: int, features: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
        """Mean and std `[q, m]` in one state, its imagined runs included."""
        rows = np.concatenate([state.rows, state.imagined_rows[i]])
        logs = np.concatenate([np.log(np.maximum(state.seconds, _SHORTEST_S)), state.imagined_targets[i, :, 0]])
        target = np.vstack([state.metrics, state.imagined_targets[i, :, 1:]])
        metrics = reported(state, rows)
        predictions = self._tree_predictions(features, rows, metrics, logs, seed + state.started)
        mean = np.empty((len(features), 1 + target.shape[1]))
        std = np.empty_like(mean)
        mean[:, 0], std[:, 0] = predictions.mean(axis=0), predictions.std(axis=0, ddof=1 if self.trees > 1 else 0)
        for metric in range(target.shape[1]):
            known = target[np.isfinite(target[:, metric]), metric]
            mean[:, 1 + metric] = known.mean() if len(known) else 0.0
            std[:, 1 + metric] = max(float(known.std()), 1e-6) if len(known) else 1.0
        return mean, std

    def _tree_predictions(
        self, features: FloatArray, rows: IntArray, metrics: FloatArray, logs: FloatArray, seed: int
    ) -> FloatArray:
        """The prediction of each tree for every row, averaged over the runs that it starts from `[trees, q]`."""
        n, q = len(rows), len(features)
        left = np.hstack([features[rows], metrics])
        first, second = (places.ravel() for places in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
        examples = np.hstack([left[first], features[rows[second]]])
        queries = np.hstack([np.repeat(left, q, axis=0), np.tile(features, (n, 1))])
        outputs = _extra_trees(examples, logs[second], queries, self.trees, self.min_leaf, generator(seed, "pairs"))
        averaged: FloatArray = outputs.reshape(self.trees, n, q).mean(axis=1)
        return averaged


def reported(state: State, rows: IntArray) -> FloatArray:
    """Metrics that the run of each row reported, scaled to mean 0 and std 1 `[n, metrics]`; 0 for missing ones."""
    seen = {one.row: one.outcome.metrics for one in state.observations if one.outcome.metrics}
    names = sorted({name for metrics in seen.values() for name in metrics})
    table = np.array([[seen.get(int(row), {}).get(name, np.nan) for name in names] for row in rows], dtype=float)
    table = table.reshape(len(rows), len(names))
    known = np.isfinite(table)
    count = np.maximum(known.sum(axis=0), 1)
    middle = np.where(known, table, 0.0).sum(axis=0) / count
    spread = np.sqrt(np.where(known, (table - middle) ** 2, 0.0).sum(axis=0) / count)
    return np.where(known, (table - middle) / np.where(spread > 0, spread, 1.0), 0.0)


def _extra_trees(
    examples: FloatArray,
    target: FloatArray,
    queries: FloatArray,
    trees: int,
    min_leaf: int,
    random: np.random.Generator,
) -> FloatArray:
    """The prediction of each extra-tree for every query `[trees, queries]`.

    All trees grow together, level by level, because nodes are many and small: one after the other took five times as long.
    Queries are routed along, and a node that no query reached is not grown.
    """
    outputs = np.empty(trees * len(queries))
    tries = int(np.sqrt(examples.shape[1])) + 1
    # Examples of the open nodes, node by node; each tree's root first holds all.
    members, sizes = np.tile(np.arange(len(examples)), trees), np.full(trees, len(examples))
    query_ids, reached = np.arange(len(outputs)), np.repeat(np.arange(trees), len(queries))
    while True:
        values, starts = target[members], np.cumsum(sizes) - sizes
        feature, threshold = _splits(examples[members], values, starts, sizes, tries, min_leaf, random)
        settled = feature[reached] < 0
        outputs[query_ids[settled]] = (np.add.reduceat(values, starts) / sizes)[reached[settled]]
        query_ids, reached = query_ids[~settled], reached[~settled]
        if not len(query_ids):
            return outputs.reshape(trees, len(queries))
        above = queries[query_ids % len(queries), feature[reached]] > threshold[reached]
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
    random: np.random.Generator,
) -> tuple[IntArray, FloatArray]:
    """Feature and threshold of every node: the best of one random threshold per tried feature; -1 where no split is possible.

    `examples` `[n, features]` and `values` `[n]` lie node by node, the node k from `starts[k]` on, `sizes[k]` of them.
    """
    lowest, highest = np.minimum.reduceat(examples, starts), np.maximum.reduceat(examples, starts)
    keys = np.where(highest > lowest, random.random(lowest.shape), np.inf)  # features that do not vary are not tried
    tried = np.argsort(keys, axis=1)[:, :tries]
    low, high = (np.take_along_axis(ends, tried, axis=1) for ends in (lowest, highest))
    thresholds = random.uniform(low, high)
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
