"""Verdicts on claims."""

import math

import pytest

from lynceus.errors import InputError
from lynceus.jobfile.yaml.document import Document
from lynceus_lab.claims import GOAL, Verdict, condition, in_setup, judge, verdict
from lynceus_lab.experiment import shipped_experiments
from lynceus_lab.experiment_file import ClaimSpec, ExperimentSpec, MeasureSpec
from lynceus_lab.statistics import Estimate


@pytest.mark.parametrize(
    ("numbers", "holds", "direction", "expected"),
    [
        ((6, 5, 7), ">= 5", "> 1", Verdict.HOLDS),
        ((6, 3, 7), ">= 5", "> 1", Verdict.UNCLEAR),
        ((3, 2, 4), ">= 5", "> 1", Verdict.DIRECTION),
        ((1.2, 0.8, 2), ">= 5", "> 1", Verdict.REFUTED),
        ((0.9, 0.8, 0.95), ">= 5", "> 1", Verdict.FAILS),
        ((3, 2, 4), ">= 5", None, Verdict.FAILS),
        ((4, 2, 6), ">= 5", None, Verdict.UNCLEAR),
        ((1, 1, 1), "> 1", None, Verdict.FAILS),
        ((0.4, 0.35, 0.45), "0.3..0.5", None, Verdict.HOLDS),
        ((0.4, 0.1, 0.9), "0.3..0.5", None, Verdict.UNCLEAR),
        ((0.6, 0.1, 0.9), "0.3..0.5", None, Verdict.UNCLEAR),
        ((0.6, 0.55, 0.9), "0.3..0.5", None, Verdict.FAILS),
        ((-0.2, -0.3, -0.1), "0.3..0.5", "> 0", Verdict.FAILS),
        ((0.1, -0.1, 0.2), "0.3..0.5", "> 0", Verdict.REFUTED),
        ((0.1, 0.05, 0.2), "0.3..0.5", "> 0", Verdict.DIRECTION),
        ((0.7, 0.6, 0.8), "0.3..0.5", "> 0", Verdict.BEYOND),
        ((0.7, 0.4, 0.8), "0.3..0.5", "> 0", Verdict.UNCLEAR),
        ((0.1, 0.05, 0.2), "0.3..0.5", "< 1", Verdict.BEYOND),
        ((0.7, 0.6, 0.8), "0.3..0.5", "< 1", Verdict.DIRECTION),
        ((208, 208, 208), "208..208", None, Verdict.HOLDS),
        ((6, math.nan, math.nan), ">= 5", None, Verdict.UNCLEAR),
        ((2, math.nan, math.nan), ">= 5", None, Verdict.UNCLEAR),
        ((math.inf, math.inf, math.inf), ">= 5", None, Verdict.HOLDS),
        ((math.inf, 9, math.inf), "4..6", "> 1", Verdict.BEYOND),
    ],
)
def test_the_verdict_depends_on_the_whole_interval(numbers, holds, direction, expected):
    assert verdict(Estimate(*numbers, seeds=50), holds, direction) is expected


@pytest.mark.parametrize(
    ("found", "published", "differs", "expected"),
    [
        (Verdict.FAILS, "2×", [], Verdict.FAILS),
        (Verdict.FAILS, "2×", ["price"], Verdict.ELSEWHERE),
        (Verdict.ELSEWHERE, "2×", [], Verdict.FAILS),  # stored when the set-up was another
        (Verdict.FAILS, GOAL, ["price"], Verdict.FAILS),
        (Verdict.HOLDS, "2×", ["price"], Verdict.HOLDS),
        (Verdict.REFUTED, "2×", ["price"], Verdict.REFUTED),
    ],
)
def test_a_claim_is_refuted_in_its_own_set_up_alone(found, published, differs, expected):
    assert in_setup(found, published, differs) == expected


@pytest.mark.parametrize("text", ["about 5", "5", ">> 3", "1..", "", ">= 1e", "1e..2", "> -"])
def test_an_invalid_condition_is_refused(text):
    with pytest.raises(InputError, match="cannot parse the condition"):
        condition(text)


def claim(**measure):
    return ClaimSpec(id="x", says="x", published="2×", measure=MeasureSpec(**measure), holds="> 1")


VALUES = {("a", "slow"): {0: 4.0, 1: 6.0}, ("a", "fast"): {0: 2.0, 1: 3.0}, ("b", "slow"): {0: 1.0}, ("b", "fast"): {}}


def values(job, policy, variant, measure):
    return VALUES[job, policy]


def test_a_claim_about_cells_that_did_not_run_is_not_measured():
    judged = judge(claim(kind="ratio", of="slow", to="fast"), ["a", "b"], values, lambda name: None)
    assert (judged.found, judged.verdict) == (None, Verdict.UNMEASURED)


def test_a_saving_is_one_minus_the_ratio():
    judged = judge(claim(kind="saving", of="fast", to="slow", statistic="p50"), ["a"], values, lambda name: None)
    assert judged.found is not None
    assert judged.found.value == pytest.approx(0.5)
    assert judged.found.low <= judged.found.value <= judged.found.high


def test_pooled_jobs_are_one_sample():
    """Job by job the ratios are 2 and 1; pooled, the expensive job decides the 90th percentile."""
    pooled = {
        ("a", "slow"): {0: 2.0, 1: 2.0},
        ("a", "fast"): {0: 1.0, 1: 1.0},
        ("b", "slow"): {0: 50.0, 1: 50.0},
        ("b", "fast"): {0: 50.0, 1: 50.0},
    }

    def found(*, together):
        spec = claim(kind="ratio", of="slow", to="fast", statistic="p90", pooled=together)
        judged = judge(spec, ["a", "b"], lambda job, policy, variant, measure: pooled[job, policy], lambda name: None)
        assert judged.found is not None
        return judged.found.value

    assert found(together=False) == pytest.approx(2**0.5)
    assert found(together=True) == pytest.approx(1.0)


def test_each_side_may_have_a_level_of_its_own():
    asked = []

    def by_level(job, policy, variant, measure):
        asked.append((policy, measure.level))
        return {0: measure.level, 1: measure.level}

    judged = judge(
        claim(kind="ratio", of="slow", to="fast", level=4.0, to_level=2.0), ["a"], by_level, lambda name: None
    )
    assert asked[:2] == [("slow", 4.0), ("fast", 2.0)]
    assert judged.found is not None
    assert judged.found.value == pytest.approx(2.0)


def test_a_distance_shows_how_papers_print_it():
    seen = {0: 0.0, 1: 1.0, 2: math.inf, 3: 0.5}
    spec = claim(kind="value", of="slow", quantity="dfo", statistic="found")
    judged = judge(spec, ["a"], lambda job, policy, variant, measure: seen, lambda name: None)
    assert judged.distances is not None
    assert (judged.distances.found, judged.distances.seeds) == (3, 4)
    assert judged.distances.mean_of_found == pytest.approx(0.5)
    assert judged.distances.median == pytest.approx(0.75)


@pytest.mark.parametrize("path", shipped_experiments().values(), ids=lambda path: path.stem)
def test_the_conditions_of_shipped_claims_are_valid(path):
    for one in Document.read(path).check(ExperimentSpec).claims:
        size = condition(one.holds)
        assert size.low <= size.high
        if one.direction is not None:
            weaker = condition(one.direction)
            assert not weaker.is_range
            assert weaker.covers(Estimate(math.nan, size.low, size.high, 0)), "the direction is the weaker condition"
