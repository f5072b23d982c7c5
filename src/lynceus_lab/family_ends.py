"""Where policies stop by themselves, and what that costs: stopping rules compared on families of jobs.

Regret is the money of the search plus the excess cost of the next hundred runs with its recommendation, in multiples of what one run of
the optimum costs. A case (a job under one deadline) is *found* if the recommendation is within 10 % of the optimum at p90 of the seeds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lynceus.replay.score import TOLERANCE
from lynceus_lab.experiment_file import Statistic
from lynceus_lab.families import Evaluated, Table
from lynceus_lab.families_file import Case, Families
from lynceus_lab.families_table import complete, provenance_lines, with_intervals
from lynceus_lab.family_results import LEVEL, Result
from lynceus_lab.leave_one_out import Numbers, Score, Scores, by_family, mean_of, scores
from lynceus_lab.markdown import header, number, row
from lynceus_lab.statistics import statistic

_STATISTICS: tuple[Statistic, Statistic] = ("mean", "p90")


@dataclass(frozen=True)
class Chosen:
    """A family, and the stopping rule that the other families choose for it."""

    family: str
    variant: str
    found: float
    """Share of the family's cases that are found with it."""
    score: Score
    """Its regret on the family relative to the first variant's: of the mean, and of p90."""


def found_cases(table: Table) -> dict[str, dict[Case, bool]]:
    """Whether the final recommendation is within 10 % of the optimum at p90, by policy and case."""
    return {
        label: {
            case: float(statistic(np.array([one.cno for one in by_seed.values()]), "p90")) <= LEVEL * (1 + TOLERANCE)
            for case, by_seed in of_label.items()
        }
        for label, of_label in table.items()
    }


def regrets(table: Table) -> Numbers:
    """Regret by policy, case and seed."""
    return {
        label: {case: {seed: one.regret for seed, one in by_seed.items()} for case, by_seed in of_label.items()}
        for label, of_label in table.items()
    }


def share(found: Mapping[Case, bool], family: str | None = None) -> float:
    """The share of cases that are found, of all families or of one; NaN without a case."""
    inside = [value for case, value in found.items() if family in (None, case.family)]
    return float(np.mean(inside)) if inside else float("nan")


def choose(
    found: Mapping[str, Mapping[Case, bool]],
    compared: Mapping[str, Scores],
    variants: Sequence[str],
    families: Sequence[str],
) -> list[Chosen]:
    """For each family: of the rules whose regret on the others is no higher than the first's, the one that finds most cases there.

    Of rules that find as many, the one with the lowest regret.
    """
    chosen: list[Chosen] = []
    means = {label: by_family(compared[label]) for label in variants}
    if len(families) < 2 or not variants:
        return chosen
    for family in families:
        rest = [name for name in families if name != family]
        regret = {label: float(np.mean([means[label][name].logs[0] for name in rest])) for label in variants}
        allowed = [label for label in variants if regret[label] <= regret[variants[0]] + TOLERANCE]
        counts = {
            label: sum(value for case, value in found[label].items() if case.family != family) for label in allowed
        }
        best = max(allowed, key=lambda label: (counts[label], -regret[label]))
        chosen.append(Chosen(family, best, share(found[best], family), means[best][family]))
    return chosen


def end_tables(families: Families, evaluated: Evaluated, seeds: int) -> Iterator[str]:
    """Tables of where policies stop."""
    found = found_cases(evaluated.table)
    reference = families.variants[0]
    compared = scores(regrets(evaluated.table), reference, _STATISTICS)
    yield (
        "Replays until the policy stops by itself. Found: cases whose recommendation is within 10 % of the optimum at p90 of the seeds. "
        f"Regret: search plus excess of 100 runs, relative to {reference}; geometric means over cases, then families; 95 % intervals "
        "from a bootstrap over paired seeds."
    )
    yield from provenance_lines(families, evaluated, seeds)
    yield ""
    yield from header(
        ["policy", "cases", "found", "least found in a family", "search, p50", "regret, mean", "regret, p90"]
    )
    for label in families.policies:
        if found[label]:
            by_name = {name: share(found[label], name) for name in families.families}
            least = min(by_name, key=lambda name: (np.isnan(by_name[name]), by_name[name]))
            yield row(
                [
                    *(label, f"{len(found[label])} of {len(families.cases)}", _percent(share(found[label]))),
                    *(f"{_percent(by_name[least])} ({least})", number(_search(evaluated.table[label]))),
                    *with_intervals(mean_of(by_family(compared[label]).values())),
                ]
            )
    yield from ("", "**Leave one family out**", "")
    yield from _left_out(families, evaluated, found, compared, seeds)


def _left_out(
    families: Families,
    evaluated: Evaluated,
    found: Mapping[str, Mapping[Case, bool]],
    compared: Mapping[str, Scores],
    seeds: int,
) -> Iterator[str]:
    variants = complete(families, evaluated, seeds)
    if families.variants[:1] != tuple(variants[:1]) or not (
        chosen := choose(found, compared, variants, families.families)
    ):
        yield "Nothing can be chosen: this needs two families, and results of the first variant on all cases and seeds."
        return
    yield "For each family, the rule that finds most cases on the others with no more regret there than the first variant."
    yield ""
    yield from header(["left out", "chosen by the others", "found", "regret, mean", "regret, p90"])
    for one in chosen:
        yield row([one.family, one.variant, _percent(one.found), *with_intervals(one.score)])
    kept = {case: found[one.variant][case] for one in chosen for case in families.cases if case.family == one.family}
    yield row(["**all**", "", _percent(share(kept)), *with_intervals(mean_of(one.score for one in chosen))])


def _search(of_label: Mapping[Case, Mapping[int, Result]]) -> float:
    """Median money of a search: the geometric mean over families of geometric means over cases."""
    logs: dict[str, list[float]] = {}
    for case, by_seed in of_label.items():
        spent = np.array([one.spent for one in by_seed.values()])
        logs.setdefault(case.family, []).append(float(np.log(statistic(spent, "p50"))))
    return float(np.exp(np.mean([np.mean(of_family) for of_family in logs.values()])))


def _percent(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.0%}"
