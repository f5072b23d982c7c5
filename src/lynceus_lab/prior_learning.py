"""Learn the prior of the default's time model from families of measured jobs (empirical Bayes).

For the whole table of each job, the posterior of the hyper-parameters of a Gaussian process of ln time is found under a wide prior, as
the policy does it during a search (`lynceus.models.gaussian.prior`). Means and variances over jobs, then over families, are the prior of
a job that nobody has seen. With C the covariance of the observations y, with noise, and prior variances c² of the constant and s² of the
slope along the trend t, their posterior means are

    E[constant | y] = c² 1ᵀ C⁻¹ y,   E[slope | y] = s² tᵀ C⁻¹ y      (Rasmussen and Williams 2006, sect. 2.7)

and their posterior variances c² − c⁴ 1ᵀ C⁻¹ 1 and s² − s⁴ tᵀ C⁻¹ t.

Targets are not standardised: early in a search, when the prior matters, the policy's unit is one of ln time, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lynceus.jobfile.yaml.document import Document
from lynceus.models.blas import one_thread
from lynceus.models.features import log_price, model_inputs
from lynceus.models.gaussian.kernel import Hyper, Inputs, inverse_lower, lower_factor
from lynceus.models.gaussian.prior import Settings, prior, weighted_draws
from lynceus.models.seeds import generator
from lynceus.policy.learned_prior import LearnedPrior, Normal
from lynceus.replay.job import ReplayJob, job_path
from lynceus.replay.job_file import ReplaySpec
from lynceus.replay.tables import find_table
from lynceus_lab.cell import loaded
from lynceus_lab.families_file import Case, Families
from lynceus_lab.statistics import FloatArray

ROWS = 160
"""Rows of a table that are used, chosen at random."""
WIDE = Settings(
    log_length=(0.5, 1.5),
    log_unlikeness=(-1.0, 1.5),
    log_signal=(-0.5, 2.0),
    log_noise=(-4.0, 2.0),
    constant=25.0,
    smooth=False,
    slope=2.0,
    draws=96,
    rounds=5,
    kept=48,
)
"""Much wider than what is learned, so that the tables decide."""
NAMES = ("slope", "offset", "log_length", "log_unlikeness", "log_signal", "log_noise")
_DIGITS = 4


@dataclass(frozen=True)
class Spread:
    """A number over several jobs, or over the features of one."""

    mean: float
    variance: float
    """Between them."""
    posterior: float
    """Mean of their posterior variances."""


Learned = Mapping[str, Spread]
"""Name of a number → its spread; names without a value (a job without categories, say) are missing."""


def learn_job(job: ReplayJob, deadlines_s: Sequence[float], seed: int, rows: int = ROWS) -> Learned:
    """The hyper-parameters of one job's table."""
    space = job.problem.space
    features, kinds = model_inputs(space, "sizes and price")
    trend = log_price(space)
    inputs = Inputs.of(features, kinds, trend)
    random = generator(seed, "learned prior")
    chosen = np.sort(random.permutation(len(space))[:rows])
    y = np.log(np.maximum(job.measurements.seconds[chosen], 1e-3))
    centre = float(y.mean())
    numeric = inputs.numeric.shape[1]
    gaps = inputs.gaps(chosen[:, np.newaxis], chosen)

    def factors(theta: FloatArray) -> tuple[Hyper, FloatArray]:
        hyper = Hyper.of_logs(theta, numeric, WIDE.constant, WIDE.slope**2, smooth=WIDE.smooth)
        return hyper, inverse_lower(
            lower_factor(hyper.covariance(gaps) + hyper.noise[:, np.newaxis, np.newaxis] * np.eye(len(y)))
        )

    def log_likelihood(theta: FloatArray) -> FloatArray:
        """Up to a constant, `[h]`."""
        inverse = factors(theta)[1]
        size = np.log(np.diagonal(inverse, axis1=1, axis2=2)).sum(axis=1)
        return np.asarray(size - 0.5 * np.square(inverse @ (y - centre)).sum(axis=1))

    with one_thread():
        before = prior(WIDE, numeric, inputs.categorical.shape[1])
        theta, weights = weighted_draws(before, log_likelihood, WIDE, random)
        inverse = factors(theta)[1]
    solved = np.einsum("hji,hj->hi", inverse, inverse @ (y - centre))  # C⁻¹ (y − centre)
    found = _of_logs(theta, weights, numeric)
    if np.ptp(trend) > 0:
        slope, variance = _coefficient(inverse, solved, trend[chosen], WIDE.slope**2)
        found["slope"] = _moments(slope[:, np.newaxis], weights, variance)
    if deadlines_s:
        constant, variance = _coefficient(inverse, solved, np.ones(len(y)), WIDE.constant)
        offsets = centre + constant[:, np.newaxis] - np.log(np.array(deadlines_s))
        found["offset"] = _moments(offsets, weights, variance)
    return found


def _coefficient(
    inverse: FloatArray, solved: FloatArray, along: FloatArray, variance: float
) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and variance `[h]` of the coefficient of a linear term `along [n]` with a prior variance."""
    left = variance - variance**2 * np.square(inverse @ along).sum(axis=1)
    return variance * (solved @ along), np.maximum(left, 0.0)


def _of_logs(theta: FloatArray, weights: FloatArray, numeric: int) -> dict[str, Spread]:
    """From vectors (ln ℓ…, ln w…, ln signal, ln noise) `[h, d + 2]`."""
    columns = {
        "log_length": theta[:, :numeric] - 0.5 * np.log(max(numeric, 1)),
        "log_unlikeness": theta[:, numeric:-2],
        "log_signal": theta[:, -2:-1],
        "log_noise": theta[:, -1:],
    }
    return {name: _moments(values, weights) for name, values in columns.items() if values.shape[1]}


def _moments(values: FloatArray, weights: FloatArray, within: FloatArray | None = None) -> Spread:
    """Over columns `[h, k]` of which each has weighted draws; `within [h]` is the variance of a draw itself, if it is a mean."""
    means = weights @ values
    posterior = float((weights @ np.square(values - means)).mean()) + (
        0.0 if within is None else float(weights @ within)
    )
    return Spread(float(means.mean()), float(means.var()), posterior)


def combined(parts: Iterable[Learned]) -> Learned:
    """Jobs → a family, or families → all: each part counts once. Variances between and within parts add up."""
    parts = list(parts)
    found: dict[str, Spread] = {}
    for name in NAMES:
        known = [part[name] for part in parts if name in part]
        if known:
            means = np.array([one.mean for one in known])
            between = float(means.var(ddof=1)) if len(means) > 1 else 0.0
            within = float(np.mean([one.variance for one in known]))
            posterior = float(np.mean([one.posterior for one in known]))
            found[name] = Spread(float(means.mean()), between + within, posterior)
    return found


def learn(families: Families, seed: int, report: Callable[[str], None] = lambda line: None) -> dict[str, list[Learned]]:
    """What every table of every family says; a table that several job files read counts once."""
    found: dict[str, list[Learned]] = {name: [] for name in families.families}
    for family, cases in _by_table(families).items():
        for several in cases:
            jobs = [loaded(families.cases[case].job, families.cases[case].options) for case in several]
            deadlines = [job.problem.deadline_s for job in jobs if 0 < job.problem.deadline_s < np.inf]
            found[family].append(learn_job(jobs[0], deadlines, seed))
        report(f"{family}: {len(cases)} tables")
    return found


def document(found: Mapping[str, Sequence[Learned]], seed: int) -> dict[str, Any]:
    """The data file: over all families, without each of them, and of each alone."""
    families = {name: combined(jobs) for name, jobs in found.items()}
    return {
        "seed": seed,
        "rows": ROWS,
        "tables": {name: len(jobs) for name, jobs in found.items()},
        "all": _plain(combined(families.values())),
        "without": {
            name: _plain(combined(one for other, one in families.items() if other != name))
            for name in (families if len(families) > 1 else ())
        },
        "family": {name: _numbers(one) for name, one in families.items()},
    }


def text(data: Mapping[str, Any]) -> str:
    """The data file as YAML."""
    import yaml

    head = "# Written by `lynceus lab prior`. The prior of ln time over families of measured jobs; lynceus.policy.learned_prior reads it.\n"
    return head + yaml.safe_dump(dict(data), sort_keys=False, default_flow_style=None, width=130)


def _plain(learned: Learned) -> dict[str, dict[str, float]]:
    """The prior in plain data; a number of which no family has a value keeps that of `WIDE`."""
    wide = {name: Normal(*getattr(WIDE, name)) for name in NAMES if name.startswith("log_")}
    missing = {"slope": Normal(0.0, WIDE.slope), "offset": Normal(0.0, WIDE.constant**0.5), **wide}
    numbers = {name: Normal(**one) for name, one in _numbers(learned).items()}
    return asdict(LearnedPrior(**{name: numbers.get(name, missing[name]) for name in NAMES}))


def _numbers(learned: Learned) -> dict[str, dict[str, float]]:
    return {
        name: {
            "mean": round(one.mean, _DIGITS),
            "std": round(one.variance**0.5, _DIGITS),
            "uncertainty": round(one.posterior**0.5, _DIGITS),
        }
        for name, one in learned.items()
    }


def _by_table(families: Families) -> dict[str, list[list[Case]]]:
    """Family → groups of cases that read the same table."""
    groups: dict[str, dict[Path, list[Case]]] = {}
    for case, source in families.cases.items():
        path = job_path(source.job)
        declared = Document.read(path)
        table = find_table(declared, path, declared.check(ReplaySpec).table).resolve()
        groups.setdefault(case.family, {}).setdefault(table, []).append(case)
    return {family: list(by_table.values()) for family, by_table in groups.items()}
