"""Shortlists: which rows are worth an expensive look when a space is large. Each gives row numbers in ascending order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lynceus.randomness import generator
from lynceus.situation import BoolArray, FloatArray, IntArray, Situation


@dataclass(frozen=True, slots=True)
class TopRows:
    """The rows with the highest cheap score (gain per dollar without look-ahead)."""

    count: int = 32

    def __call__(self, situation: Situation, score: FloatArray, candidates: BoolArray, seed: int) -> IntArray:
        """At most `count` candidates."""
        rows = np.flatnonzero(candidates)
        if len(rows) <= self.count:
            return rows
        return np.sort(rows[np.argpartition(-score[rows], self.count - 1)[: self.count]])


@dataclass(frozen=True, slots=True)
class TopShare:
    """The best tenth, say, of the candidates by the cheap score."""

    share: float = 0.1
    least: int = 8
    """Never fewer than this many."""

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1 or self.least < 1:
            raise ValueError(f"share {self.share} must lie in (0, 1] and least {self.least} be 1 or more")

    def __call__(self, situation: Situation, score: FloatArray, candidates: BoolArray, seed: int) -> IntArray:
        """That share of the candidates."""
        count = max(self.least, round(self.share * int(candidates.sum())))
        return TopRows(count)(situation, score, candidates, seed)


@dataclass(frozen=True, slots=True)
class RandomRows:
    """Rows drawn uniformly; the best by the cheap score is always among them."""

    count: int = 32

    def __call__(self, situation: Situation, score: FloatArray, candidates: BoolArray, seed: int) -> IntArray:
        """At most `count` candidates."""
        rows = np.flatnonzero(candidates)
        if len(rows) <= self.count:
            return rows
        drawn = generator(seed, "shortlist", situation.started).permutation(rows)[: self.count]
        best = rows[np.argmax(score[rows])]
        if best not in drawn:
            drawn[-1] = best
        return np.sort(drawn)


@dataclass(frozen=True, slots=True)
class LocalSearch:
    """Rows visited by climbing from the best few to better neighbours (nearest rows in scaled features)."""

    count: int = 32
    starts: int = 4
    neighbours: int = 8
    """How many nearest rows of a visited row are looked at."""

    def __call__(self, situation: Situation, score: FloatArray, candidates: BoolArray, seed: int) -> IntArray:
        """At most `count` candidates."""
        rows = np.flatnonzero(candidates)
        if len(rows) <= self.count:
            return rows
        features = situation.problem.space.features[rows]
        span = np.ptp(features, axis=0)
        scaled = (features - features.min(axis=0)) / np.where(span > 0, span, 1.0)
        # Half of the starts by score, half by chance, so that one sharp peak does not own the list.
        by_score = np.argsort(-score[rows], kind="stable")[: (self.starts + 1) // 2]
        by_chance = generator(seed, "local search", situation.started).permutation(len(rows))[: self.starts // 2]
        frontier = list(dict.fromkeys([*by_score.tolist(), *by_chance.tolist()]))
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
