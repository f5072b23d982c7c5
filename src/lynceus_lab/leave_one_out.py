"""Leave one family out: what a policy scores on a family when it was chosen without it.

Every variant is evaluated once on all families. For each family the variant that is best on the others is taken, and only its score on
that family counts. So no family judges a constant that was chosen on it, and no family needs a campaign of its own.

A score is a pair of ratios to the baseline, at p50 and p90 of the seeds: the geometric mean over families of geometric means over cases
(a job under one deadline). The criterion of the choice is the mean of both logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lynceus_lab.experiment_file import Statistic
from lynceus_lab.families_file import Case
from lynceus_lab.statistics import BySeed, FloatArray, interval, log_ratio, mean_of_known

Numbers = Mapping[str, Mapping[Case, BySeed]]
"""Label → case → one number per seed, such as money until a run within 10 % of the optimum."""
STATISTICS: tuple[Statistic, Statistic] = ("p50", "p90")


@dataclass(frozen=True, eq=False)
class Score:
    """A pair of ratios to the baseline, over one case or many."""

    logs: FloatArray
    """Natural logarithms of both ratios, `[2]`; NaN when neither policy reached the level."""
    draws: FloatArray
    """The same for every bootstrap sample of the seeds, `[2, draws]`."""
    seeds: int
    """Number of seeds; over several cases, the smallest."""
    cases: int = 1

    @property
    def ratios(self) -> tuple[float, float]:
        """Both ratios."""
        first, second = np.exp(self.logs).tolist()
        return first, second

    @property
    def intervals(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The 95 % interval of each ratio over seeds; NaN for a single seed."""
        first, second = (interval(np.exp(draws), self.seeds) for draws in self.draws)
        return first, second

    @property
    def criterion(self) -> float:
        """Mean of the logarithms; smaller is better."""
        return float(self.logs.mean())


Scores = Mapping[Case, Score]


def scores(numbers: Numbers, baseline: str, statistics: tuple[Statistic, Statistic] = STATISTICS) -> dict[str, Scores]:
    """Every policy relative to the baseline, on the cases and seeds that both have run.

    The bootstrap draws the same seeds of a case for all policies that have run them.
    """
    below = numbers[baseline]
    places = {case: place for place, case in enumerate(sorted(below))}
    found: dict[str, Scores] = {}
    for label, of_policy in numbers.items():
        by_case: dict[Case, Score] = {}
        for case, values in of_policy.items():
            if case in places:
                ours, theirs = _comparable(case, values, below[case])
                pair = [log_ratio(ours, theirs, name, place=places[case]) for name in statistics]
                known = [one for one in pair if one is not None]
                if len(known) == len(pair):
                    logs, draws = np.array([one.log for one in known]), np.stack([one.draws for one in known])
                    by_case[case] = Score(logs, draws, min(one.seeds for one in known))
        found[label] = by_case
    return found


def _comparable(case: Case, values: BySeed, baseline: BySeed) -> tuple[BySeed, BySeed]:
    """Numbers whose quantiles over seeds are compared. Where each seed has rows of its own, it is a job of its own: its ratio counts, and
    is 1 where neither reached the level."""
    if case.rows == 1.0:
        return values, baseline
    both = values.keys() & baseline.keys()
    undecided = {seed for seed in both if np.isinf(values[seed]) and np.isinf(baseline[seed])}
    ratios = {seed: 1.0 if seed in undecided else values[seed] / baseline[seed] for seed in both}
    return ratios, dict.fromkeys(both, 1.0)


def mean_of(parts: Iterable[Score]) -> Score | None:
    """The geometric mean; a part without a value (neither policy reached the level) is left out. None when nothing is left."""
    known = [part for part in parts if not np.isnan(part.logs).any()]
    if not known:
        return None
    with np.errstate(invalid="ignore"):  # 0 and infinity together have no mean
        logs = np.mean([part.logs for part in known], axis=0)
    draws = np.stack([mean_of_known(np.stack([part.draws[i] for part in known])) for i in range(2)])
    return Score(logs, draws, min(part.seeds for part in known), sum(part.cases for part in known))


def by_family(of_policy: Scores) -> dict[str, Score]:
    """The score on every family that has one."""
    families = dict.fromkeys(case.family for case in of_policy)
    found = {name: mean_of(score for case, score in of_policy.items() if case.family == name) for name in families}
    return {name: score for name, score in found.items() if score is not None}


@dataclass(frozen=True)
class LeftOut:
    """A family, and the variant that the other families choose for it."""

    family: str
    variant: str
    score: Score
    """Of that variant on the family."""
    criterion: float
    """Of that variant on the other families."""


def leave_one_out(found: Mapping[str, Mapping[str, Score]], families: Sequence[str]) -> list[LeftOut]:
    """For each family the variant that is best on all others, with its score there.

    `found` has the score of each variant by family. Only variants with a score on every family can be chosen; of equal ones, the first is.
    """
    complete = {label: of_one for label, of_one in found.items() if all(name in of_one for name in families)}
    chosen: list[LeftOut] = []
    if len(families) < 2 or not complete:
        return chosen
    for family in families:
        criteria = {
            label: float(np.mean([of_one[name].criterion for name in families if name != family]))
            for label, of_one in complete.items()
        }
        best = min(criteria, key=lambda label: _sortable(criteria[label]))
        chosen.append(LeftOut(family, best, complete[best][family], criteria[best]))
    return chosen


@dataclass(frozen=True)
class Worst:
    """The largest ratio of a kind, and where it is."""

    ratio: float
    where: str


def worst_case(of_policy: Scores) -> Worst | None:
    """The case with the largest ratio at p90."""
    return _largest((float(np.exp(score.logs[1])), named(case)) for case, score in of_policy.items())


def worst_family(of_policy: Scores) -> tuple[Worst | None, Worst | None]:
    """The family with the largest ratio at any deadline: at p50, and at p90."""
    groups: dict[tuple[str, str], list[Score]] = {}
    for case, score in of_policy.items():
        groups.setdefault((case.family, case.deadline), []).append(score)
    means = {f"{family} at {deadline}": mean_of(parts) for (family, deadline), parts in groups.items()}
    known = {name: score.ratios for name, score in means.items() if score is not None}
    first, second = (_largest((ratios[i], name) for name, ratios in known.items()) for i in range(2))
    return first, second


def worst_to_best(numbers: Numbers, label: str, rivals: Sequence[str]) -> Worst | None:
    """The case with the largest p90 relative to the best of some policies, where they were evaluated on the same seeds."""
    found = []
    for case, values in numbers[label].items():
        against = []
        for rival in rivals:
            pair = log_ratio(values, numbers.get(rival, {}).get(case, {}), "p90")
            if pair is not None and not math.isnan(pair.log):
                against.append((math.exp(pair.log), f"{named(case)}, to {rival}"))
        if against:
            found.append(max(against))
    return _largest(found)


def named(case: Case) -> str:
    """A case in words."""
    return f"{case.job} at {case.deadline}"


def _largest(found: Iterable[tuple[float, str]]) -> Worst | None:
    known = [Worst(ratio, where) for ratio, where in found if not math.isnan(ratio)]
    return max(known, key=lambda worst: worst.ratio, default=None)


def _sortable(criterion: float) -> float:
    return math.inf if math.isnan(criterion) else criterion
