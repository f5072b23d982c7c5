"""The table of policies: every row can be made, matches its paper, and refuses settings that it cannot use."""

from typing import Any

import pytest

from lynceus.errors import InputError
from lynceus.models.trees import Trees
from lynceus.policy.designs import Amount, LatinHypercube, QuasiRandom, UniformRows
from lynceus.policy.planners.data_fraction import OnShares
from lynceus.policy.planners.information import InformationPlanner
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.planners.simple import ByPrice, FirstOf, Uniform
from lynceus.policy.policy import Policy
from lynceus.policy.presets import PRESETS, all_presets, preset
from lynceus.policy.stopping import Never, SmallImprovement
from lynceus.policy.timeouts.by_name import TIMEOUTS
from lynceus.policy.timeouts.censoring import Discard, LinearProgress, LowerBound, TruncatedMean, WholeRun
from lynceus.policy.timeouts.rules import FastestTimeout, IncumbentTimeout, NoTimeout
from lynceus.testing.choosers import check_chooser
from lynceus.testing.surrogates import check_surrogate
from strategies import READY, TIMEOUT_NAMES, WITHOUT_MODEL


def parts(policy: Policy) -> tuple[object, Lookahead]:
    chooser = policy.choose.chooser if isinstance(policy.choose, OnShares) else policy.choose
    assert isinstance(chooser, FirstOf)
    planner = next(one for one in chooser.choosers if isinstance(one, Lookahead))
    return chooser.choosers[0], planner


def planners(chooser: object, kind: type = Lookahead) -> list[Any]:
    """Every planner inside a chooser."""
    if isinstance(chooser, kind):
        return [chooser]
    inner = getattr(chooser, "choosers", None) or [
        one for one in [getattr(chooser, "chooser", None)] if one is not None
    ]
    return [planner for one in inner for planner in planners(one, kind)]


def test_the_names() -> None:
    published = [
        "lynceus-2020",
        "lynceus-2018",
        "obol",
        "bo",
        "cherrypick",
        "random",
        "random+timeouts",
    ]
    assert {"lynceus", *published, "sweep"} <= set(PRESETS)
    assert all(PRESETS[name].summary for name in PRESETS)


@pytest.mark.parametrize("name", list(all_presets()))
def test_every_row_is_a_value_of_its_name(name: str) -> None:
    policy = preset(name)
    assert policy.name == name
    assert policy == preset(name)
    assert hash(policy) == hash(preset(name))
    assert isinstance(policy, Policy)


@pytest.mark.parametrize(
    # Arrow fits all pairs of runs again for every imagined outcome: minutes.
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name == "arrow" else name for name in READY],
)
def test_the_choosers_and_surrogates_of_every_row_meet_their_contracts(name: str) -> None:
    policy = preset(name, None if name in WITHOUT_MODEL else 1)
    check_chooser(policy.choose, policy.surrogate)
    if policy.surrogate is not None:
        check_surrogate(policy.surrogate, tolerance=1e-6)


def test_lynceus_2020_is_that_of_the_paper() -> None:
    policy = preset("lynceus-2020")
    design, planner = parts(policy)
    assert design == LatinHypercube(Amount(share=0.03))
    assert (planner.depth, planner.discount, planner.confidence, planner.per, planner.charge) == (
        2,
        0.9,
        0.99,
        "dollar",
        "full",
    )
    assert planner.quadrature.points == 3
    assert policy.surrogate == Trees(trees=10, target="cost")
    assert (policy.timeout.rule, policy.timeout.censored) == (IncumbentTimeout(), TruncatedMean())
    assert policy.stop == Never()


def test_the_thesis_starts_with_one_run_with_timeouts_and_five_without() -> None:
    assert parts(preset("lynceus-2018"))[0] == UniformRows(Amount(count=1))
    assert parts(preset("lynceus-2018", timeout="none"))[0] == UniformRows(Amount(count=5))
    assert isinstance(preset("lynceus-2018").timeout.censored, LinearProgress)
    assert preset("lynceus-2018").timeout.rule == IncumbentTimeout(every_s=30.0)
    assert parts(preset("obol"))[0] == UniformRows(Amount(count=5))
    assert preset("obol").timeout.rule == NoTimeout()


def test_the_baselines() -> None:
    design, planner = parts(preset("bo"))
    assert (design, planner.depth, planner.per) == (LatinHypercube(), 0, "run")
    design, planner = parts(preset("cherrypick"))
    assert (design, planner.depth, planner.confidence) == (QuasiRandom(Amount(count=3)), 0, 0.0)
    assert preset("cherrypick").stop == SmallImprovement(0.10, after=6)
    assert preset("random").choose == FirstOf((LatinHypercube(), Uniform()))
    assert preset("random").timeout.rule == NoTimeout()
    assert preset("random+timeouts").timeout.rule == IncumbentTimeout(first_runs_too=True)
    assert (preset("sweep").choose, preset("sweep").surrogate) == (ByPrice(), None)
    assert preset("sweep").timeout.rule == IncumbentTimeout(first_runs_too=True)


def test_the_timeouts() -> None:
    assert set(TIMEOUT_NAMES) <= set(TIMEOUTS)
    assert TIMEOUTS["none"].rule == NoTimeout()
    assert TIMEOUTS["none"].censored == LowerBound(), "the budget may stop a run even without a timeout"
    assert (TIMEOUTS["no-info"].rule, TIMEOUTS["no-info"].censored) == (
        IncumbentTimeout(slack=2.0),
        Discard(),
    )
    assert TIMEOUTS["ituned"].rule == FastestTimeout(2.0)
    assert TIMEOUTS["ideal"].censored == WholeRun()
    assert TIMEOUTS["tg-30s"].rule == IncumbentTimeout(every_s=30.0)


@pytest.mark.parametrize("name", [name for name in all_presets() if name not in WITHOUT_MODEL])
@pytest.mark.parametrize("depth", [0, 3])
def test_depth_and_timeout_are_taken(name: str, depth: int) -> None:
    if name == "fabulinus":
        depth = min(depth, 1)
    policy = preset(name, lookahead=depth, timeout="max-cost")
    if name == "fabulinus":
        assert [planner.ahead for planner in planners(policy.choose, InformationPlanner)] == [4 * depth]
    else:
        assert [planner.depth for planner in planners(policy.choose)] == [depth]
    assert policy.timeout == TIMEOUTS["max-cost"]
    assert preset(name, timeout=TIMEOUTS["ideal"]).timeout == TIMEOUTS["ideal"]


@pytest.mark.parametrize("name", WITHOUT_MODEL)
def test_no_option_is_ignored_silently(name: str) -> None:
    with pytest.raises(InputError) as error:
        preset(name, lookahead=2)
    assert str(error.value) in (
        f"lookahead: policy {name!r} has no model to look ahead with; leave lookahead out.",
        f"lookahead: policy {name!r} plans one run at a time; leave lookahead out.",
        f"lookahead: policy {name!r} runs the lowest prediction; leave lookahead out.",
        f"lookahead: policy {name!r} compares pairs of finished runs; leave lookahead out.",
        f"lookahead: policy {name!r} learns the next move from runs of other jobs; leave lookahead out.",
    )
    assert preset(name, lookahead=0) == preset(name)


def test_unknown_names_and_negative_depths_are_errors() -> None:
    with pytest.raises(
        InputError, match=r"policy: there is no 'lynx'\. .*List them with: lynceus policies; or give a policy file\."
    ):
        preset("lynx")
    with pytest.raises(InputError, match="lookahead: got -1; give the number of runs to look ahead, 0 or more"):
        preset("bo", lookahead=-1)
    with pytest.raises(InputError, match="timeout: there is no 'later'; choose one of none, tg, "):
        preset("bo", timeout="later")
