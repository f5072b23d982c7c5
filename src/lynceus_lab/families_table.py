"""Families, variants and what leaving one family out chooses, as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from lynceus_lab.families import Evaluated
from lynceus_lab.families_file import Case, Families
from lynceus_lab.leave_one_out import (
    LeftOut,
    Numbers,
    Score,
    Scores,
    Worst,
    by_family,
    leave_one_out,
    mean_of,
    scores,
    worst_case,
    worst_family,
    worst_to_best,
)
from lynceus_lab.markdown import header, interval, number, row


def tables(families: Families, found: Evaluated, seeds: int) -> Iterator[str]:
    """All tables of the money until a run within 10 % of the optimum."""
    numbers: Numbers = {
        label: {
            case: {seed: result.money for seed, result in by_seed.items()}
            for case, by_seed in found.table[label].items()
        }
        for label in families.policies
    }
    compared = scores(numbers, families.baseline)
    others = [label for label in families.policies if label != families.baseline]
    yield (
        f"Money until a run within 10 % of the optimum, relative to {families.baseline}: p50 / p90 of the seeds, geometric means "
        "over cases (a job under one deadline), then over families; 95 % intervals from a bootstrap over paired seeds."
    )
    yield from provenance_lines(families, found, seeds)
    yield ""
    yield from _summary(families, numbers, compared, others)
    for label in others:
        if compared[label]:
            yield from ("", f"**{label}**", "")
            yield from _of_policy(families, compared[label])
    yield from ("", "**Leave one family out**", "")
    yield from _left_out(families, found, compared, seeds)


def provenance_lines(families: Families, found: Evaluated, seeds: int) -> Iterator[str]:
    """How many results stand behind the numbers, and where they were made."""
    results = [one for of_label in found.table.values() for by_seed in of_label.values() for one in by_seed.values()]
    asked = len(families.policies) * len(families.cases) * seeds
    machines = sorted({str(one.made.get("machine", "unknown")) for one in results})
    commits = sorted({str(one.made.get("commit", "unknown")) for one in results})
    line = (
        f"{len(families.families)} families, {len(families.cases)} cases, {len(families.policies)} policies, seeds 0 to {seeds - 1}: "
        f"{len(results):,} of {asked:,} results; machine: {'; '.join(machines) or '–'}; commit: {', '.join(commits) or '–'}."
    )
    yield line + (f" {found.other_code:,} of them are of other code." if found.other_code else "")


def _summary(
    families: Families, numbers: Numbers, compared: Mapping[str, Scores], labels: Sequence[str]
) -> Iterator[str]:
    rivals = [families.baseline, *families.rivals]
    worst_of = (
        "worst family, p50",
        "worst family, p90",
        "worst case, p90",
        "worst case to the best of the others, p90",
    )
    yield from header(["policy", "families", "cases", "p50", "p90", *worst_of])
    for label in labels:
        of_policy = compared[label]
        means = by_family(of_policy)
        whole = mean_of(means.values())
        worst = worst_to_best(numbers, label, [rival for rival in rivals if rival != label])
        yield row(
            [
                *(label, str(len(means)), f"{len(of_policy)} of {len(families.cases)}"),
                *with_intervals(whole),
                *(_worst(one) for one in (*worst_family(of_policy), worst_case(of_policy), worst)),
            ]
        )


def _of_policy(families: Families, of_policy: Scores) -> Iterator[str]:
    yield from header(["family", "cases", "fewest seeds", "p50", "p90", "worst case, p90"])
    means = by_family(of_policy)
    for family in families.families:
        inside = {case: score for case, score in of_policy.items() if case.family == family}
        asked = sum(case.family == family for case in families.cases)
        counts = f"{len(inside)} of {asked}" if len(inside) < asked else str(asked)
        if family in means:
            score = means[family]
            yield row([family, counts, str(score.seeds), *with_intervals(score), _worst(worst_case(inside))])
        else:
            yield row([family, counts, "–", "–", "–", "–"])


def _left_out(families: Families, found: Evaluated, compared: Mapping[str, Scores], seeds: int) -> Iterator[str]:
    whole = complete(families, found, seeds)
    unfinished = [label for label in families.variants if label not in whole]
    if unfinished:
        yield f"Not every case and seed was run, so these cannot be chosen: {', '.join(unfinished)}."
        yield ""
    chosen = leave_one_out({label: by_family(compared[label]) for label in whole}, families.families)
    if not chosen:
        yield "Nothing can be chosen: this needs two families, and results of the baseline and of a variant on all cases and seeds."
        return
    yield (
        f"For each family, the best of {len(whole)} variants on the other families (mean of ln p50 and ln p90) and its score on "
        "this one. The intervals do not include the choice."
    )
    yield ""
    yield from header(["left out", "chosen by the others", "there", "p50", "p90", "worst case, p90"])
    scored: dict[Case, Score] = {}
    for one in chosen:
        inside = {case: score for case, score in compared[one.variant].items() if case.family == one.family}
        scored |= inside
        yield row(
            [one.family, one.variant, number(_there(one)), *with_intervals(one.score), _worst(worst_case(inside))]
        )
    yield row(["**all**", "", "", *with_intervals(mean_of(one.score for one in chosen)), _worst(worst_case(scored))])
    yield ""
    first, second = worst_family(scored)
    yield f"Worst family at any deadline: {_worst(first)} at p50, {_worst(second)} at p90."


def complete(families: Families, found: Evaluated, seeds: int) -> list[str]:
    """The variants of which every case and seed was run."""
    return [
        label
        for label in families.variants
        if all(len(found.table[label].get(case, {})) == seeds for case in families.cases)
    ]


def _there(one: LeftOut) -> float:
    """The criterion on the other families as a ratio."""
    return math.exp(one.criterion)


def with_intervals(score: Score | None) -> list[str]:
    """Both ratios with their intervals."""
    if score is None:
        return ["–", "–"]
    return [interval([ratio, *ends]) for ratio, ends in zip(score.ratios, score.intervals, strict=True)]


def _worst(worst: Worst | None) -> str:
    return "–" if worst is None else f"{number(worst.ratio)} ({worst.where})"
