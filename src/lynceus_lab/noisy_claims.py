"""How honest answers are when runs are noisy: what a study claims against what is true, which only a simulation knows.

The truth is a table of times t(x), noise-free. A run takes t(x) · F with a random factor F whose law is known. So the true cost of a
configuration is the mean cost of its runs, E[cost(t(x) · F)], and the true chance to keep a limit is P(t(x) · F <= limit): both are
computed from the law, not sampled. The factors depend on seed, configuration and repetition only, so that two versions of the program
that run the same configuration see the same time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import ndtr

from lynceus.models.distribution import LogNormal
from lynceus.models.seeds import generator
from lynceus.policy.policy import Policy
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.replay.job import load_job, quantile_of
from lynceus.space.column import FloatArray
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.study.study import Study
from lynceus.trial.trial import Trial, TrialState

_DEADLINE = 0.5
"""The limit on time is this quantile of the true times."""
_MOST_TRIALS = 200
"""No study of these sizes needs more; a study that would is an error."""
_POINTS = 41
"""Of the quadrature over the factors; billing may have steps."""


PROBLEMS = (
    "made/valley",
    "scout/terasort_bigdata_hadoop",
    "scout/lr_huge_spark",
    "scout/wordcount-large_huge_hadoop",
    "cherrypick/tpch",
    "cherrypick/spark",
    "tensorflow/cnn",
    "tensorflow/rnn",
)
"""What the table is about. The constants of `lynceus.models.run_noise` were chosen on made/steps, scout/join_bigdata_spark,
scout/pagerank_huge_spark and cherrypick/kmeans."""


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """The factor between a run's time and the true time: log-normal with mean 1, and now and then several times slower."""

    spread: float
    """Standard deviation of the factor's logarithm."""
    outliers: float = 0.0
    """Share of runs that are slower still."""
    slower: float = 3.0
    """By this factor."""

    def draw(self, seed: int, row: int, repetition: int) -> float:
        """The factor of one run."""
        random = generator(seed, "noisy claims", row, repetition)
        factor = math.exp(self.spread * random.normal() - self.spread**2 / 2)
        return factor * (self.slower if random.random() < self.outliers else 1.0)

    def chance(self, most: float) -> float:
        """P(the factor is at most `most`)."""
        return (1 - self.outliers) * self._below(most) + self.outliers * self._below(most / self.slower)

    def mean_cost(self, problem: Problem, row: int, seconds: float) -> float:
        """E[cost] of a production run whose true time is `seconds`."""
        factors, weights = LogNormal(-(self.spread**2) / 2, self.spread).nodes(_POINTS)

        def mean(scale: float) -> float:
            return float(sum(w * problem.cost(row, seconds * scale * f) for f, w in zip(factors, weights, strict=True)))

        return (1 - self.outliers) * mean(1.0) + (self.outliers * mean(self.slower) if self.outliers else 0.0)

    def _below(self, most: float) -> float:
        if self.spread == 0:
            return float(most >= 1)
        return float(ndtr((math.log(most) + self.spread**2 / 2) / self.spread))


@dataclass(frozen=True, slots=True)
class NoisyCase:
    """One study of the experiment, without its seed."""

    problem: str
    """A shipped replay job, or `made/steps` and `made/valley`: surfaces made up for this purpose."""
    law: NoiseLaw
    confidence: float | None = None
    """Of the limit on time; None for a plain limit."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """What one study claimed, and what was true."""

    problem: str
    spread: float
    outliers: float
    confidence: float | None
    seed: int
    spent_usd: float
    trials: int
    repeats: int
    """Runs of configurations that had run before."""
    claimed_usd: float
    """Cost of a run, as recommended; NaN without a recommendation, as in the fields below."""
    true_usd: float
    low_usd: float
    """Ends of the claimed 80 % interval; NaN when none is claimed."""
    high_usd: float
    stated: float
    """Stated chance that a run keeps the limit."""
    kept: float
    """The true chance."""
    regret: float
    """True cost of the recommended configuration over that of the best one that keeps the limit often enough."""

    def written(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)


def cases(
    problems: Sequence[str], noise: Sequence[float], outliers: Sequence[float], confidences: Sequence[float]
) -> list[NoisyCase]:
    """All combinations; a confidence of 0 means a plain limit."""
    return [
        NoisyCase(problem, NoiseLaw(spread, share), confidence or None)
        for share, spread, confidence, problem in itertools.product(outliers, noise, confidences, problems)
    ]


@lru_cache(maxsize=64)
def true_times(name: str) -> tuple[Problem, FloatArray]:
    """A problem under a plain limit on time, and its true times `[q]`."""
    if not name.startswith("made/"):
        job = load_job(name, deadline_quantile=_DEADLINE)
        return job.problem, job.measurements.seconds
    nodes, size = Integer("nodes", 1, 12), Integer("size", 1, 8)
    space = Space.build([nodes, size], price="0.1 * nodes * size ** 1.1")
    n, s = (np.array(space.column(column), dtype=float) for column in ("nodes", "size"))
    seconds = 3600 * (0.08 + 1 / (n * s) ** 0.8 + 0.012 * n)
    if name == "made/steps":  # memory that no longer suffices
        seconds = seconds * np.where(n * s < 10, 2.5, 1.0) * np.where(s == 5, 0.7, 1.0)
    limit = Constraint("time", quantile_of(seconds, _DEADLINE))
    return Problem(space, constraints=(limit,)), seconds


def run_case(case: NoisyCase, policy: Policy, seed: int) -> Claimed:
    """Ask and tell until the study ends, then compare its recommendation with the truth."""
    problem, seconds = true_times(case.problem)
    problem = problem.with_constraints(replace(limit, confidence=case.confidence) for limit in problem.constraints)
    study = Study(problem, policy, seed=seed)
    ran: dict[int, int] = {}
    while len(study.observations) < _MOST_TRIALS and (trial := study.ask()) is not None:
        row = study.pending[0].row
        factor = case.law.draw(seed, row, ran.get(row, 0))
        ran[row] = ran.get(row, 0) + 1
        _tell(study, trial, float(seconds[row]) * factor)
    return _claimed(case, study, seconds, sum(ran.values()) - len(ran))


def _tell(study: Study, trial: Trial, seconds: float) -> None:
    if trial.timeout is not None and seconds > trial.timeout:
        study.tell(trial, runtime=trial.timeout, state=TrialState.TIMEOUT)
    else:
        study.tell(trial, runtime=seconds)


def _claimed(case: NoisyCase, study: Study, seconds: FloatArray, repeats: int) -> Claimed:
    problem, law = study.problem, case.law
    found = study.recommend()
    claimed = low = high = stated = true_usd = kept = regret = math.nan
    if found is not None:
        claimed, stated = found.cost_usd, found.probability
        low, high = found.cost_interval_usd or (math.nan, math.nan)
        true_usd = law.mean_cost(problem, found.row, float(seconds[found.row]))
        kept = law.chance(problem.deadline_s / float(seconds[found.row]))
        regret = true_usd / _least_usd(case, problem, seconds)
    return Claimed(
        case.problem, law.spread, law.outliers, case.confidence, study.seed, study.spent_usd, len(study.observations), repeats,
        claimed, true_usd, low, high, stated, kept, regret,
    )  # fmt: skip


def _least_usd(case: NoisyCase, problem: Problem, seconds: FloatArray) -> float:
    """The lowest true cost of a configuration that keeps the limit with its confidence; plain limits: in half of its runs."""
    law, needed = case.law, case.confidence or 0.5
    often = [row for row, time_s in enumerate(seconds) if law.chance(problem.deadline_s / float(time_s)) >= needed]
    return min((law.mean_cost(problem, row, float(seconds[row])) for row in often), default=math.nan)
