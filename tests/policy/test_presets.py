"""The table of policies: every row can be made, is what its source says, and refuses what it cannot use."""

import pytest

from lynceus.choose import (
    Amount,
    ByPrice,
    FirstOf,
    LatinHypercube,
    OnShares,
    QuasiRandom,
    Rollout,
    Uniform,
    UniformRows,
)
from lynceus.errors import InputError
from lynceus.policy import PRESETS, TIMEOUTS, Policy, preset
from lynceus.stopping import Never, SmallGain
from lynceus.surrogate.trees import Trees
from lynceus.testing import check_chooser, check_surrogate
from lynceus.timeout import IncumbentCap, LinearProgress, LowerBound, NoCap, Nothing, TruncatedMean, WholeRun
from strategies import READY, TIMEOUT_NAMES, WITHOUT_MODEL


def parts(policy: Policy) -> tuple[object, Rollout]:
    chooser = policy.choose.chooser if isinstance(policy.choose, OnShares) else policy.choose
    assert isinstance(chooser, FirstOf)
    planner = next(one for one in chooser.choosers if isinstance(one, Rollout))
    return chooser.choosers[0], planner


def planners(chooser: object) -> list[Rollout]:
    """Every planner inside a chooser."""
    if isinstance(chooser, Rollout):
        return [chooser]
    inner = getattr(chooser, "choosers", None) or [
        one for one in [getattr(chooser, "chooser", None)] if one is not None
    ]
    return [planner for one in inner for planner in planners(one)]


def test_the_names() -> None:
    published = [
        "lynceus-2020",
        "authors-2020",
        "lynceus-2018",
        "obol",
        "bo",
        "cherrypick",
        "random",
        "random+timeouts",
    ]
    assert {"lynceus", *published, "sweep"} <= set(PRESETS)
    assert all(PRESETS[name].summary for name in PRESETS)


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_row_is_a_value_of_its_name(name: str) -> None:
    policy = preset(name)
    assert policy.name == name
    assert policy == preset(name)
    assert hash(policy) == hash(preset(name))
    assert isinstance(policy, Policy)


@pytest.mark.parametrize(
    # Arrow fits a pair of every two runs anew for every imagined outcome: minutes.
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name == "arrow" else name for name in READY],
)
def test_the_choosers_and_surrogates_of_every_row_keep_their_contracts(name: str) -> None:
    policy = preset(name, None if name in WITHOUT_MODEL else 1)
    check_chooser(policy.choose, policy.surrogate)
    if policy.surrogate is not None:
        check_surrogate(policy.surrogate, tolerance=1e-6)


def test_lynceus_2020_is_the_papers() -> None:
    policy = preset("lynceus-2020")
    design, planner = parts(policy)
    assert design == LatinHypercube(Amount(share=0.03))
    assert (planner.depth, planner.discount, planner.sure, planner.per, planner.charge) == (
        2,
        0.9,
        0.99,
        "dollar",
        "full",
    )
    assert planner.quadrature.points == 3
    assert policy.surrogate == Trees(trees=10, target="cost")
    assert (policy.timeout.cap, policy.timeout.fill) == (IncumbentCap(), TruncatedMean())
    assert policy.stop == Never()


def test_the_program_differs_from_the_paper_where_it_does() -> None:
    _, planner = parts(preset("authors-2020"))
    assert (planner.real_money, planner.quadrature.rule) == (True, "authors")
    surrogate = preset("authors-2020").surrogate
    assert isinstance(surrogate, Trees)
    assert (surrogate.min_gain, surrogate.min_variance, surrogate.same_luck) == (1e-6, 0.001, True)
    assert surrogate.zero_spread == 0.0, "its rule for agreeing trees hardly ever fires there, and would here"


def test_the_thesis_starts_with_one_run_with_timeouts_and_five_without() -> None:
    assert parts(preset("lynceus-2018"))[0] == UniformRows(Amount(count=1))
    assert parts(preset("lynceus-2018", timeout="none"))[0] == UniformRows(Amount(count=5))
    assert isinstance(preset("lynceus-2018").timeout.fill, LinearProgress)
    assert preset("lynceus-2018").timeout.cap == IncumbentCap(every_s=30.0)
    assert parts(preset("obol"))[0] == UniformRows(Amount(count=5))
    assert preset("obol").timeout.cap == NoCap()


def test_the_baselines() -> None:
    design, planner = parts(preset("bo"))
    assert (design, planner.depth, planner.per) == (LatinHypercube(), 0, "run")
    design, planner = parts(preset("cherrypick"))
    assert (design, planner.depth, planner.sure) == (QuasiRandom(Amount(count=3)), 0, 0.0)
    assert preset("cherrypick").stop == SmallGain(0.10, after=6)
    assert preset("random").choose == FirstOf((LatinHypercube(), Uniform()))
    assert preset("random").timeout.cap == NoCap()
    assert preset("random+timeouts").timeout.cap == IncumbentCap(first_runs_too=True)
    assert (preset("sweep").choose, preset("sweep").surrogate) == (ByPrice(), None)
    assert preset("sweep").timeout.cap == IncumbentCap(first_runs_too=True)


def test_the_timeouts() -> None:
    assert set(TIMEOUT_NAMES) <= set(TIMEOUTS)
    assert TIMEOUTS["none"].cap == NoCap()
    assert TIMEOUTS["none"].fill == LowerBound(), "a budget may stop a run even without a cap"
    assert (TIMEOUTS["no-info"].cap, TIMEOUTS["no-info"].fill) == (IncumbentCap(slack=2.0, measure="time"), Nothing())
    assert TIMEOUTS["ideal"].fill == WholeRun()
    assert TIMEOUTS["tg-30s"].cap == IncumbentCap(every_s=30.0)


@pytest.mark.parametrize("name", [name for name in PRESETS if name not in WITHOUT_MODEL])
@pytest.mark.parametrize("depth", [0, 3])
def test_depth_and_timeout_are_taken(name: str, depth: int) -> None:
    policy = preset(name, lookahead=depth, timeout="max-cost")
    assert [planner.depth for planner in planners(policy.choose)] == [depth]
    assert policy.timeout == TIMEOUTS["max-cost"]
    assert preset(name, timeout=TIMEOUTS["ideal"]).timeout == TIMEOUTS["ideal"]


@pytest.mark.parametrize("name", WITHOUT_MODEL)
def test_no_option_is_ignored_in_silence(name: str) -> None:
    with pytest.raises(InputError) as error:
        preset(name, lookahead=2)
    assert str(error.value) in (
        f"lookahead: policy {name!r} has no model to look ahead with; leave lookahead out.",
        f"lookahead: policy {name!r} weighs what one run would teach; leave lookahead out.",
        f"lookahead: policy {name!r} runs what it predicts to be cheapest; leave lookahead out.",
        f"lookahead: policy {name!r} compares pairs of runs that were made; leave lookahead out.",
        f"lookahead: policy {name!r} asks runs of other jobs where to move next; leave lookahead out.",
    )
    assert preset(name, lookahead=0) == preset(name)


def test_mistakes() -> None:
    with pytest.raises(
        InputError, match=r"policy: there is no 'lynx'; choose one of lynceus, .*, or give a policy file\."
    ):
        preset("lynx")
    with pytest.raises(InputError, match="lookahead: -1 came; give 0 or more runs to look ahead"):
        preset("bo", lookahead=-1)
    with pytest.raises(InputError, match="timeout: there is no 'later'; choose one of none, tg, "):
        preset("bo", timeout="later")
