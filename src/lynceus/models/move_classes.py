"""Scout's relaxed model (Hsu et al. 2018): not how long a configuration takes, but whether it is better, fair or worse than another.

Every pair of runs (i, j) of a past job is an example: how much more of each resource j had, and what i reported. If j were priced at
1/ρ of i, it would cost T_j / (ρ T_i) of it: at most 0.9 (better), more than 1.1 (worse), or something between (fair). With
x = Δ (1, metrics_i), Δ the differences of ln resources, an ordered logistic model is fitted to these classes alone, for ratios ρ as
they occur between times of the past; it gives the chance of any ratio,

    P(T_j ≤ r T_i) = 1 / (1 + exp(x · b - ln r / s)).

The prices of this job are known, so "costs less than" is "takes at most U_i/U_j times as long as".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import expit

from lynceus.models.past_pairs import MetricScale, PastPairs, PastRuns, pair_examples, reported_metrics, runs_of_history
from lynceus.models.seeds import generator
from lynceus.models.state import State
from lynceus.space.column import FloatArray

EDGES = (0.9, 1.1)
"""Where better ends and worse begins, in costs of the run that a move starts from."""
_RIDGE = 1e-4
"""The ridge of the regression in units of the likelihood: classes are separable in small pasts, and coefficients then large."""
_STEPS = 30
"""Newton steps at most."""
_SMALLEST = 1e-300


@dataclass(frozen=True, slots=True)
class MoveClasses(PastPairs):
    """The chance that a move to another configuration is an improvement, by classes of moves in other jobs.

    Where a time is needed, it is predicted as by `PastPairs`.
    """

    pairs: int = 40
    """Pairs of every past job that are learnt from, at random: a past of thousands of runs has a hundred thousand."""

    def chance(self, state: State, start: int, ratio: FloatArray) -> FloatArray:
        """P(each row takes at most `ratio [q]` times as long as the run of row `start`) `[q]`."""
        if self.past is None and (known := runs_of_history(state.problem)) is not None:
            return replace(self, past=known).chance(state, start, ratio)
        cut = np.log(np.maximum(ratio, _SMALLEST))
        if self.past is None:
            return np.asarray(expit(cut))
        learnt = _learn(self.past, self.members, self.pull, self.pairs)
        reported = reported_metrics(state, self.past, np.array([start]))
        gaps = self.past.here - self.past.here[start]
        examples = pair_examples(gaps[np.newaxis], MetricScale.of(self.past).scaled(reported))[0]
        found = expit(np.outer(cut, learnt[:, 0]) - examples @ learnt[:, 1:].T).mean(axis=1)
        # The row itself takes as long as it took.
        found[start] = float(ratio[start] >= 1.0)
        return np.asarray(found)


@lru_cache(maxsize=32)
def _learn(past: PastRuns, members: int, pull: float, pairs: int) -> FloatArray:
    """(1/s, b) of every member, each fitted to past jobs drawn with replacement `[h, 1 + f]`; cached, because the past does not change."""
    names, scale = np.unique(past.job), MetricScale.of(past)
    random = generator(0, "move classes")
    jobs = [_examples(past, past.job == name, scale, pairs, random) for name in names]
    every = np.concatenate([logs for _, logs in jobs])
    priced = [(x, logs, random.choice(every, len(logs))) for x, logs in jobs]
    drawn = (random.integers(0, len(names), len(names)) for _ in range(members))
    return np.array([_fit([priced[place] for place in places], _RIDGE * pull / len(names)) for places in drawn])


def _examples(
    past: PastRuns,
    mine: np.ndarray[tuple[int], np.dtype[np.bool_]],
    scale: MetricScale,
    pairs: int,
    random: np.random.Generator,
) -> tuple[FloatArray, FloatArray]:
    """Pairs of different runs of one job `[n, f]`, and their ln time ratios `[n]`."""
    resources, logs = past.resources[mine], np.log(past.seconds[mine])
    first, second = np.nonzero(~np.eye(len(logs), dtype=bool))
    if len(first) > pairs:
        chosen = random.choice(len(first), pairs, replace=False)
        first, second = first[chosen], second[chosen]
    metrics = scale.scaled(past.metrics[mine])[first]
    gaps = (resources[second] - resources[first])[:, np.newaxis]
    return pair_examples(gaps, metrics)[:, 0], logs[second] - logs[first]


def _fit(jobs: list[tuple[FloatArray, FloatArray, FloatArray]], ridge: float) -> FloatArray:
    """Newton's method for the logistic likelihood of both edges `[1 + f]`; every job weighs the same, with a ridge.

    A job is given by its pairs `[n, f]`, their ln time ratios and the ln of their price ratios ρ.
    """
    cuts = [(x, logs, rho + np.log(edge)) for x, logs, rho in jobs for edge in EDGES]
    rows = [np.column_stack([cut, -x]) for x, _, cut in cuts]
    labels = [np.asarray(logs <= cut, dtype=float) for _, logs, cut in cuts]
    weight = np.concatenate([np.full(len(one), 1.0 / (len(one) * len(labels))) for one in labels if len(one)])
    x, y = np.vstack(rows), np.concatenate(labels)
    penalty = np.full(x.shape[1], ridge)
    theta = np.zeros(x.shape[1])
    theta[0] = 1.0
    for _ in range(_STEPS):
        chance = expit(x @ theta)
        gradient = x.T @ (weight * (chance - y)) + penalty * theta
        bend = weight * np.maximum(chance * (1.0 - chance), 1e-6)
        step = np.linalg.solve((x * bend[:, np.newaxis]).T @ x + np.diag(penalty), gradient)
        largest = float(np.abs(step).max())
        theta = theta - step * min(1.0, 5.0 / max(largest, 1e-12))
        if largest < 1e-8:
            break
    theta[0] = max(theta[0], 1e-3)
    return theta
