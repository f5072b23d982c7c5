"""Policies as plain data: there and back again, and mistakes in one sentence."""

from __future__ import annotations

import dataclasses
import inspect
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lynceus.acquisition.gains
import lynceus.choose
import lynceus.stopping
import lynceus.timeout
from lynceus.choose import Amount, LatinHypercube, Quadrature, Rollout
from lynceus.document import Document
from lynceus.errors import InputError
from lynceus.parts import Answer, Cap, Chooser, Fill, Gain, Shortlist, Stop, Surrogate, Worth
from lynceus.policy import PRESETS, TIMEOUTS, BestPredicted, Policy, preset
from lynceus.policy.compose import PARTS, compose, describe, kind_of
from lynceus.stopping import AllOf, AnyOf, MaxTrials, SmallGain
from lynceus.surrogate.trees import Trees
from lynceus.timeout import IncumbentCap, Timeout, TruncatedMean

EXAMPLE = {
    "name": "mine",
    "surrogate": {"kind": "trees", "trees": 30, "target": "log time"},
    "choose": [
        {"kind": "latin-hypercube", "share": 0.03},
        {"kind": "rollout", "gain": {"kind": "constrained-improvement", "exact": True}, "depth": 1, "points": 5},
    ],
    "timeout": {"cap": {"kind": "incumbent-cap", "every_s": 30}, "fill": "truncated-mean"},
    "stop": [
        {"kind": "small-gain", "fraction": 0.1},
        {"kind": "all-of", "rules": [{"kind": "max-trials", "count": 9}]},
    ],
    "answer": {"kind": "best-predicted", "sure": 0.9},
}


def test_an_example_says_what_it_means():
    policy = compose(EXAMPLE)
    design, planner = policy.choose.choosers
    assert policy.surrogate == Trees(trees=30, target="log time")
    assert design == LatinHypercube(Amount(share=0.03))
    assert (planner.depth, planner.quadrature, planner.gain.exact) == (1, Quadrature(points=5), True)
    assert policy.timeout == Timeout(IncumbentCap(every_s=30.0), TruncatedMean())
    assert policy.stop == AnyOf((SmallGain(0.1), AllOf((MaxTrials(9),))))
    assert policy.answer == BestPredicted(0.9)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize("timeout", [None, *TIMEOUTS])
def test_every_preset_comes_back(name, timeout):
    policy = preset(name, timeout=timeout)
    data = describe(policy)
    assert compose(data) == policy
    assert compose(json.loads(json.dumps(data))) == policy


def test_the_table_of_parts_is_complete():
    """A part that a room offers and that compose does not know would be out of reach of documents."""
    listed = {cls for classes in PARTS.values() for cls in classes} | {Amount, Quadrature, Timeout}
    for room in (lynceus.choose, lynceus.stopping, lynceus.timeout):
        offered = {getattr(room, name) for name in room.__all__ if inspect.isclass(getattr(room, name))}
        assert {cls for cls in offered if dataclasses.is_dataclass(cls)} <= listed
    gains = {
        cls
        for cls in vars(lynceus.acquisition.gains).values()
        if inspect.isclass(cls) and cls.__module__ == "lynceus.acquisition.gains" and dataclasses.is_dataclass(cls)
    }
    assert gains <= listed
    assert len({kind_of(cls) for cls in listed}) == len(listed)


numbers = st.floats(0.01, 0.9)
counts = st.integers(1, 50)
flags = st.booleans()
amounts = st.one_of(
    st.builds(Amount, count=counts),
    st.builds(Amount, share=numbers),
    st.builds(Amount, usd=st.floats(0.1, 99)),
    st.builds(Amount, budget_share=numbers),
)
surrogates = st.builds(
    Trees,
    trees=counts,
    target=st.sampled_from(["cost", "log time"]),
    attributes=st.none() | counts,
    bag=st.sampled_from(["bootstrap", "poisson", "whole"]),
    min_gain=numbers,
    same_luck=flags,
)
gains = st.sampled_from(PARTS[Gain]).flatmap(lambda cls: st.builds(cls))
shortlists = st.one_of(
    st.none(),
    st.sampled_from(PARTS[Shortlist]).flatmap(
        lambda cls: st.builds(cls, share=numbers) if cls is lynceus.choose.TopShare else st.builds(cls, count=counts)
    ),
)
worths = st.lists(st.sampled_from(PARTS[Worth]).flatmap(lambda cls: st.builds(cls)), min_size=1, max_size=2).map(tuple)
rollouts = st.builds(
    Rollout,
    gain=gains,
    depth=st.integers(0, 3),
    quadrature=st.builds(Quadrature, points=st.integers(1, 7)),
    per=st.sampled_from(["run", "dollar"]),
    charge=st.sampled_from(["full", "capped"]),
    sure=numbers,
    shortlist=shortlists,
    real_money=flags,
)
designs = st.sampled_from(
    [
        lynceus.choose.LatinHypercube,
        lynceus.choose.UniformRows,
        lynceus.choose.QuasiRandom,
        lynceus.choose.CheapFirst,
        lynceus.choose.AtEveryShare,
    ]
).flatmap(lambda cls: st.builds(cls, amount=amounts, stoppable=flags))
plain = st.sampled_from([lynceus.choose.Uniform(), lynceus.choose.ByPrice()])
choosers = st.recursive(
    designs | rollouts | plain | st.builds(lynceus.choose.Foresee, worths, overhead=numbers, shortlist=shortlists),
    lambda inner: (
        st.builds(lynceus.choose.FirstOf, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(lynceus.choose.Within, st.just("nodes > 2"), inner)
        | st.builds(lynceus.choose.Promising, inner)
        | st.builds(lynceus.choose.OnShares, st.sampled_from(["samples", "full"]), inner)
    ),
    max_leaves=4,
)
rules = st.recursive(
    st.one_of(
        st.just(lynceus.stopping.Never()),
        st.builds(SmallGain, numbers, counts),
        st.builds(MaxTrials, counts),
        st.builds(lynceus.stopping.TotalBudget, numbers, counts),
        st.builds(lynceus.stopping.GittinsStop, numbers, counts),
    ),
    lambda inner: (
        st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(AllOf, st.lists(inner, min_size=1, max_size=3).map(tuple))
    ),
    max_leaves=4,
)
timeouts = st.builds(
    Timeout,
    st.just(lynceus.timeout.NoCap())
    | st.builds(IncumbentCap, flags, numbers, numbers, st.sampled_from(["cost", "time"])),
    st.sampled_from([lynceus.timeout.Nothing(), TruncatedMean()]) | st.builds(lynceus.timeout.LinearProgress, numbers),
)
policies = st.builds(
    Policy,
    st.text("abc-+0", min_size=1),
    choosers,
    st.none() | surrogates,
    timeouts,
    rules,
    st.just(lynceus.policy.BestSeen()) | st.builds(BestPredicted, numbers),
)


@given(policies)
def test_any_combination_comes_back(policy):
    assert compose(json.loads(json.dumps(describe(policy)))) == policy


CHOOSERS = ", ".join(kind_of(cls) for cls in PARTS[Chooser])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"chose": []}, "policy.chose: there is no field 'chose'; did you mean 'choose'?"),
        ({"choose": None}, f"policy.choose: nothing came, but a part with a kind ({CHOOSERS}) is needed."),
        ({"choose": "rolout"}, "policy.choose.kind: 'rolout' is not known; did you mean 'rollout'?"),
        ({"choose": ["by-price", {"kind": "rollout"}]}, "policy.choose.1.gain: the field 'gain' is missing; add it."),
        ({"choose": {"count": 3}}, f"policy.choose: the part has no kind; add one of {CHOOSERS}."),
        ({"choose": {"kind": "uniform", "n": 3}}, "policy.choose.n: there is no field 'n'; it has no fields."),
        ({"choose": {"kind": "latin-hypercube", "count": 3, "amount": {"count": 4}}},
         "policy.choose.amount: 'count' belongs to 'amount', which is given too; write it there."),
        ({"choose": {"kind": "latin-hypercube", "count": -3}}, None),
        ({"choose": {"kind": "rollout", "gain": "feasibility", "depth": -1}}, "policy.choose: look-ahead depth -1 is negative."),
        ({"choose": {"kind": "rollout", "gain": "feasibility", "depth": 1.5}},
         "policy.choose.depth: 1.5 came, but a whole number is needed."),
        ({"choose": {"kind": "rollout", "gain": "feasibility", "per": "euro"}},
         "policy.choose.per: 'euro' is not known; known are run, dollar."),
        ({"surrogate": {"kind": "trees", "trees": "many"}}, "policy.surrogate.trees: 'many' came, but a whole number is needed."),
        ({"surrogate": {"kind": "trees", "same_luck": 1}}, "policy.surrogate.same_luck: 1 came, but true or false is needed."),
        ({"timeout": "liner"}, "policy.timeout: 'liner' is not known; did you mean 'linear'?"),
        ({"timeout": 3}, "policy.timeout: 3 came, but a mapping with cap, fill is needed."),
        ({"stop": {"kind": "any-of", "rules": "never"}}, "policy.stop.rules: 'never' came, but a list is needed."),
        ({"name": 3}, "policy.name: 3 came, but a text is needed."),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence(changed, message):
    with pytest.raises(InputError) as caught:
        compose({**EXAMPLE, **changed})
    if message is not None:
        assert str(caught.value) == message
    assert str(caught.value).startswith("policy.")


def test_a_document_adds_its_file_and_line():
    document = Document.parse("choose:\n  - by-price\n  - kind: rollout\n    gian: feasibility\n", "mine.yaml")
    with pytest.raises(InputError) as caught:
        compose(document.tree.value, at=document.at)
    assert str(caught.value) == "mine.yaml:4: choose.1.gian: there is no field 'gian'; did you mean 'gain'?"


def test_every_slot_has_parts():
    assert set(PARTS) == {Surrogate, Chooser, Gain, Shortlist, Worth, Cap, Fill, Stop, Answer}
