"""Shortlists: rows for which an expensive computation pays in a large space. Each returns row numbers in ascending order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lynceus.models.seeds import generator
from lynceus.models.state import State
from lynceus.space.column import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class TopRows:
    """The rows with the highest cheap score (acquisition value per dollar without look-ahead)."""

    count: int = 32

    def __call__(self, state: State, score: FloatArray, candidates: BoolArray, seed: int) -> IntArray:
        """At most `count` candidates."""
        rows = np.flatnonzero(candidates)
        if len(rows) <= self.count:
            return rows
        return np.sort(rows[np.argpartition(-score[rows], self.count - 1)[: self.count]])


@dataclass(frozen=True, slots=True)
class TopShare:
    """A fraction of the candidates with the highest cheap score."""

    share: float = 0.1
    least: int = 8
    """At least this many."""

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or self.least < 1:
            raise ValueError(f"share {self.share} must lie in (0, 1] and least {self.least} be 1 or more")

    def __call__(self, state: State, score: FloatArray, candidates: BoolArray, seed: int) -> IntArray:
        """That fraction of the candidates."""
        count = max(self.least, round(self.share * int(candidates.sum())))
        return TopRows(count)(state, score, candidates, seed)


@dataclass(frozen=True, slots=True)
class RandomRows:
    """Rows drawn uniformly; the best by the cheap score is always among them."""

    count: int = 32

    def __call__(self, state: State, score: FloatArray, candidates: BoolArray, seed: int) -> IntArray:
        """At most `count` candidates."""
        rows = np.flatnonzero(candidates)
        if len(rows) <= self.count:
            return rows
        drawn = generator(seed, "shortlist", state.started).permutation(rows)[: self.count]
        best = rows[np.argmax(score[rows])]
        if best not in drawn:
            drawn[-1] = best
        return np.sort(drawn)


@dataclass(frozen=True, slots=True)
class LocalSearch:
    """Rows visited by a local search from a few starts through their neighbours (nearest rows in scaled features)."""

    count: int = 32
    starts: int = 4
    neighbours: int = 8
    """How many nearest rows of a visited row are added."""

    def __call__(self, state: State, score: FloatArray, candidates: BoolArray, seed: int) -> IntArray:
        """At most `count` candidates."""
        rows = np.flatnonzero(candidates)
        if len(rows) <= self.count:
            return rows
        features = state.problem.space.features[rows]
        span = np.ptp(features, axis=0)
        scaled = (features - features.min(axis=0)) / np.where(span > 0, span, 1.0)
        # Half of the starts by score, half at random, so that one sharp peak does not fill the list.
        by_score = np.argsort(-score[rows], kind="stable")[: (self.starts + 1) // 2]
        at_random = generator(seed, "local search", state.started).permutation(len(rows))[: self.starts // 2]
        frontier = list(dict.fromkeys([*by_score.tolist(), *at_random.tolist()]))
        visited = dict.fromkeys(frontier)
        expanded: set[int] = set()
        while len(visited) < self.count:
            waiting = [i for i in visited if i not in expanded]
            if not waiting:
                break
            here = max(waiting, key=lambda i: score[rows[i]])
            expanded.add(here)
            distance = np.abs(scaled - scaled[here]).sum(axis=1)
            nearest = np.argpartition(distance, min(self.neighbours, len(rows) - 1))[: self.neighbours + 1]
            visited.update(dict.fromkeys(nearest.tolist()))
        return np.sort(rows[list(visited)[: self.count]])
