"""An experiment in a few kilobytes of JSON: tables, comparisons, figure data and verdicts.

Pages and figures are made from summaries alone, so they can be made again without the traces.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from lynceus.replay.job import ReplayJob
from lynceus_lab.cell import limited, loaded
from lynceus_lab.claims import Judged, judge
from lynceus_lab.experiment import Experiment, Place, joined, merged
from lynceus_lab.experiment_file import ClaimSpec, ExperimentSpec, MeasureSpec, Quantity
from lynceus_lab.figure_data import panels_of
from lynceus_lab.measures import MEANS, by_seed
from lynceus_lab.statistics import (
    BySeed,
    Estimate,
    across_jobs,
    clusters,
    estimate,
    holm,
    outcome_of,
    ratio,
    signed_rank,
    written,
)
from lynceus_lab.trace_store import Kept, Store

Pairs = dict[str, tuple[BySeed, BySeed]]
"""Money by seed of two policies, by job."""


@dataclass(frozen=True)
class Evidence:
    """An experiment and its stored traces."""

    experiment: Experiment
    store: Store
    _cache: dict[Place, list[Kept]] = field(default_factory=dict, compare=False, repr=False)

    def kept(self, place: Place) -> list[Kept]:
        """The traces at a place, read once; empty where the experiment has no such place."""
        if place not in self.experiment.settings:
            return []
        if place not in self._cache:
            seeds = self.experiment.seeds(place.policy)
            self._cache[place] = self.store.read(self.experiment.settings[place], seeds)
        return self._cache[place]

    def job(self, place: Place) -> ReplayJob:
        """The job with the options of a place."""
        setting = self.experiment.settings[place]
        return limited(loaded(setting.job, setting.options), setting.trials)

    def values(self, place: Place, quantity: Quantity, level: float = 1.1) -> BySeed:
        """One number per seed that was run."""
        if not self.kept(place):
            return {}
        return by_seed(self.job(place), [kept.replay for kept in self.kept(place)], quantity, level)

    def plain_job(self, name: str, reading: str = "") -> ReplayJob:
        """A job with the experiment's own options, for properties of its table."""
        spec = self.experiment.spec
        return loaded(name, merged(spec.options, spec.readings[reading]) if reading else spec.options)

    @cached_property
    def jobs(self) -> list[str]:
        """Jobs with at least one trace."""
        if not self.experiment.settings:
            return self.experiment.jobs
        return list(dict.fromkeys(place.job for place in self.experiment.settings if self.kept(place)))


def summarise(experiment: Experiment, store: Store) -> dict[str, Any]:
    """The whole summary, with empty tables when there are no traces."""
    evidence = Evidence(experiment, store)
    spec = experiment.spec
    return {
        "name": experiment.name,
        "title": spec.title,
        "source": spec.source,
        "made": _made(kept for place in experiment.settings for kept in evidence.kept(place)),
        "jobs": evidence.jobs,
        "asked": len(experiment.jobs),
        "policies": experiment.policies,
        "variants": experiment.variants,
        "baseline": spec.baseline or next(iter(experiment.policies), None),
        "also": list(spec.also),
        "levels": spec.levels,
        "table": [_row(evidence, place) for place in experiment.settings if evidence.kept(place)],
        "across": _across(evidence),
        "degraded": _degraded(evidence),
        "setup": _setup(spec),
        "claims": [_claim(readings, experiment) for readings in _judged(evidence)],
        "curves": [
            {"title": figure.title, "kind": figure.kind, "log": figure.log, "panels": panels_of(evidence, figure)}
            for figure in spec.figures
        ],
    }


def _row(evidence: Evidence, place: Place) -> dict[str, Any]:
    """One row of the table: a policy on a job in a variant, compared with the baseline by seed."""
    experiment = evidence.experiment
    base = Place(place.job, experiment.spec.baseline or experiment.policies[0], place.variant)
    row: dict[str, Any] = {
        "job": place.job,
        "policy": place.policy,
        "variant": place.variant,
        "seeds": len(evidence.kept(place)),
        "adopted": sum("adopted" in kept.made for kept in evidence.kept(place)),
        "code": evidence.kept(place)[0].code,
        "current": evidence.kept(place)[0].code == experiment.settings[place].code,
        "levels": [],
    }
    for level in experiment.spec.levels:
        own, other = evidence.values(place, "money", level), evidence.values(base, "money", level)
        entry: dict[str, Any] = {
            "cno": level,
            "p50": _numbers(estimate([own], "p50")),
            "p90": _numbers(estimate([own], "p90")),
            "unreached": sum(math.isinf(value) for value in own.values()),
        }
        if place != base and other:
            entry["ratio_p50"] = _numbers(ratio([own], [other], "p50"))
            entry["ratio_p90"] = _numbers(ratio([own], [other], "p90"))
            entry["p"] = written(signed_rank(own, other))
        row["levels"].append(entry)
    for quantity in MEANS:
        values = evidence.values(place, quantity)
        if values:
            row[quantity] = _numbers(estimate([values], "mean"))
    return row


def _across(evidence: Evidence) -> list[dict[str, Any]]:
    """Every policy against every baseline over all jobs, for each variant and level."""
    spec, policies, variants = evidence.experiment.spec, evidence.experiment.policies, evidence.experiment.variants
    bases = list(dict.fromkeys([spec.baseline or policies[0], *spec.also])) if policies else []
    found: list[dict[str, Any]] = []
    for base in bases:
        for variant in variants:
            for level in spec.levels:
                rows = [
                    _compared(pairs, {"base": base, "policy": policy, "variant": variant, "cno": level})
                    for policy in policies
                    if policy != base and (pairs := _pairs(evidence, (policy, variant), (base, variant), level))
                ]
                corrected = holm([row["p_jobs"] for row in rows])
                found += [row | {"p_jobs": written(p)} for row, p in zip(rows, corrected, strict=True)]
    return sorted(
        found,
        key=lambda row: (bases.index(row["base"]), variants.index(row["variant"]), policies.index(row["policy"])),
    )


def _compared(pairs: Pairs, where: dict[str, Any]) -> dict[str, Any]:
    """Geometric means of ratios, wins and losses; signed-rank tests over seeds (with Holm's correction) and over jobs."""
    each = {job: (ratio([one], [other], "p50"), ratio([one], [other], "p90")) for job, (one, other) in pairs.items()}
    outcomes = [outcome_of(p90) for _, p90 in each.values()]
    ratios = {job: p90.value for job, (_, p90) in each.items()}
    corrected = holm([signed_rank(one, other) for one, other in pairs.values()])
    return {
        **where,
        **_joined(pairs),
        "wins": outcomes.count("win"),
        "ties": outcomes.count("tie"),
        "losses": outcomes.count("loss"),
        "significant": sum(p < 0.05 for p in corrected),
        "p_jobs": across_jobs(ratios),
        "clusters": clusters(ratios),
        "by_job": {
            job: {"p50": written(p50.value), "p90": written(p90.value), "outcome": outcome_of(p90)}
            for job, (p50, p90) in each.items()
        },
    }


def _degraded(evidence: Evidence) -> list[dict[str, Any]]:
    """The cost of harder worlds: the money of every policy in each of them, relative to the first, paired by seed."""
    experiment, levels = evidence.experiment, evidence.experiment.spec.levels
    if not levels or not _in_worlds(experiment.spec):
        return []
    calm, *harder = experiment.variants
    level = min(levels)
    return [
        {
            "policy": policy,
            "variant": variant,
            "over": calm,
            "cno": level,
            "unreached": [sum(map(math.isinf, own.values())) for own, _ in pairs.values()],
            **_joined(pairs),
        }
        for policy in experiment.policies
        for variant in harder
        if (pairs := _pairs(evidence, (policy, variant), (policy, calm), level))
    ]


def _in_worlds(spec: ExperimentSpec) -> bool:
    """Whether variants differ only in their world or in their billing, and not in the problem."""
    asked = {variant.model_copy(update={"billing": None}).model_dump_json() for variant in spec.variants.values()}
    return len(asked) <= 1


def _joined(pairs: Pairs) -> dict[str, Any]:
    """Ratios combined over all jobs."""
    above, below = ([pair[side] for pair in pairs.values()] for side in (0, 1))
    p50, p90 = ratio(above, below, "p50"), ratio(above, below, "p90")
    return {
        "jobs": len(pairs),
        "seeds": min(len(own.keys() & other.keys()) for own, other in pairs.values()),
        "p50": _numbers(p50),
        "p90": _numbers(p90),
        "undecided": [p50.undecided, p90.undecided],
    }


def _pairs(evidence: Evidence, own: tuple[str, str], other: tuple[str, str], level: float) -> Pairs:
    """Money by seed of two policies, each in its variant, for every job that both have run."""
    places = {job: (Place(job, *own), Place(job, *other)) for job in evidence.jobs}
    return {
        job: (evidence.values(one, "money", level), evidence.values(two, "money", level))
        for job, (one, two) in places.items()
        if evidence.kept(one) and evidence.kept(two)
    }


def _judged(evidence: Evidence) -> Iterable[dict[str, Judged]]:
    """Every claim under every reading."""
    experiment = evidence.experiment
    first = next(iter(experiment.variants_under(experiment.readings[0])), "")
    variant = first.removesuffix(experiment.readings[0]).rstrip(", ")

    def judged(claim: ClaimSpec, reading: str) -> Judged:
        def values(job: str, policy: str, named: str, measure: MeasureSpec) -> BySeed:
            """A claim without a variant is about the first one."""
            return evidence.values(
                Place(job, policy, joined(named or variant, reading)), measure.quantity, measure.level
            )

        return judge(claim, experiment.jobs, values, lambda job: evidence.plain_job(job, reading))

    for claim in experiment.spec.claims:
        yield {reading: judged(claim, reading) for reading in experiment.readings}


def _claim(readings: dict[str, Judged], experiment: Experiment) -> dict[str, Any]:
    judged = next(iter(readings.values()))
    claim, found = judged.claim, judged.found
    return {
        "id": claim.id,
        "says": claim.says,
        "published": claim.published,
        **_found(judged),
        "seeds": _seeds(judged),
        "jobs": 0 if found is None else found.jobs,
        "undecided": 0 if found is None else found.undecided,
        "measured": claim.measure.kind,
        "setting": _setting(claim, experiment),
        "note": claim.note,
        "differs": _differing(claim, experiment.spec),
        "readings": {name: _found(one) | {"seeds": _seeds(one)} for name, one in readings.items()}
        if len(readings) > 1
        else {},
    }


def _seeds(judged: Judged) -> int:
    return 0 if judged.found is None else judged.found.seeds


def _setup(spec: ExperimentSpec) -> list[list[str]]:
    """Aspect, the paper's and ours."""
    return [
        [aspect, *((text, text) if isinstance(text, str) else (text.paper, text.here))]
        for aspect, text in spec.setup.items()
    ]


def _differing(claim: ClaimSpec, spec: ExperimentSpec) -> list[str]:
    """Aspects in which a claim's set-up differs from the paper's; the number of seeds has a column of its own."""
    return [
        aspect
        for aspect, text in spec.setup.items()
        if not isinstance(text, str) and aspect != "seeds" and (claim.differs is None or aspect in claim.differs)
    ]


def _setting(claim: ClaimSpec, experiment: Experiment) -> str:
    """A short hash of what a claim measures, and of the settings of the policies that it names."""
    named = {claim.measure.of, claim.measure.to}
    places = {place: one.fingerprint for place, one in experiment.settings.items() if place.policy in named}
    text = [claim.measure.model_dump_json(), *sorted(f"{place.job} {one}" for place, one in places.items())]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:12]


def _found(judged: Judged) -> dict[str, Any]:
    """Our number, the verdict, and what tells more about either."""
    found, distances = judged.found, judged.distances
    parts = None if found is None else _hidden_parts(found)
    return {
        "ours": None if found is None else _numbers(found),
        "verdict": str(judged.verdict),
        **({"parts": [written(part) for part in parts]} if parts else {}),
        **(
            {
                "found": distances.found,
                "of": distances.seeds,
                "mean_of_found": written(distances.mean_of_found),
                "median": written(distances.median),
            }
            if distances
            else {}
        ),
    }


def _hidden_parts(found: Estimate) -> tuple[float, float] | None:
    """The parts of a ratio that does not tell them: one is infinite, or the denominator is zero."""
    if found.parts is None or all(map(math.isfinite, (*found.parts, found.value))):
        return None
    return found.parts


def _made(kept: Iterable[Kept]) -> dict[str, list[str]]:
    """Dates, versions and machines of the traces, without duplicates."""
    found: dict[str, set[str]] = {}
    for one in kept:
        for name in ("date", "lynceus", "commit", "python", "numpy", "machine"):
            if value := one.made.get(name):
                found.setdefault(name, set()).add(str(value))
    return {name: sorted(values) for name, values in found.items()}


def _numbers(found: Estimate) -> list[float | str]:
    return [written(found.value), written(found.low), written(found.high)]


def worth_showing(summaries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Summaries with tables, figures or claims."""
    return [one for one in summaries if one["table"] or one["curves"] or one["claims"]]
