"""Policies as plain data: they round-trip, files of version 0.1 are read, and errors are one sentence."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import math
import pkgutil
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import lynceus.policy.planners
import lynceus.policy.stopping
import lynceus.policy.timeouts
from lynceus.acquisition import functions as acquisition_functions
from lynceus.acquisition.entropy_search import ConstrainedIncumbent, EntropySearch
from lynceus.errors import InputError
from lynceus.jobfile.yaml.document import Document
from lynceus.models.interfaces import AcquisitionFunction, Surrogate, Utility
from lynceus.models.past_pairs import PastPairs
from lynceus.models.trees import Trees
from lynceus.policy import designs as initial_designs
from lynceus.policy.answer import BestPredicted, BestSeen
from lynceus.policy.default import TIME
from lynceus.policy.designs import Amount, LatinHypercube
from lynceus.policy.interfaces import Answer, CensoredValue, Chooser, Confirm, Quadrature, Shortlist, Stop, TimeoutRule
from lynceus.policy.multi_fidelity import CHEAP_START
from lynceus.policy.part_table import PARTS, all_kinds, kind_of
from lynceus.policy.planners import data_fraction, information, promising, shortlist, simple
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.planners.outcomes import GaussHermite
from lynceus.policy.policy import Policy
from lynceus.policy.policy_file import compose, describe
from lynceus.policy.presets import all_presets, preset
from lynceus.policy.stopping import AllOf, AnyOf, MaxTrials, Never, SmallImprovement
from lynceus.policy.timeouts.by_name import all_timeouts
from lynceus.policy.timeouts.censoring import Discard, LinearProgress, TruncatedMean
from lynceus.policy.timeouts.rules import FastestTimeout, IncumbentTimeout, NoTimeout
from lynceus.policy.timeouts.timeout import Timeout
from lynceus_lab.published_program import PublishedQuadrature

EXAMPLE = {
    "name": "mine",
    "surrogate": {"kind": "trees", "trees": 30, "target": "log time"},
    "choose": [
        {"kind": "latin-hypercube", "share": 0.03},
        {
            "kind": "lookahead",
            "acquisition": {"kind": "constrained-improvement", "exact": True},
            "depth": 1,
            "points": 5,
        },
    ],
    "timeout": {"rule": {"kind": "incumbent-timeout", "every_s": 30}, "censored": "truncated-mean"},
    "stop": [
        {"kind": "small-improvement", "fraction": 0.1},
        {"kind": "all-of", "rules": [{"kind": "max-trials", "count": 9}]},
    ],
    "answer": {"kind": "best-predicted", "confidence": 0.9},
}


def test_an_example():
    policy = compose(EXAMPLE)
    design, planner = policy.choose.choosers
    assert policy.surrogate == Trees(trees=30, target="log time")
    assert design == LatinHypercube(Amount(share=0.03))
    assert (planner.depth, planner.quadrature, planner.acquisition.exact) == (1, GaussHermite(points=5), True)
    assert policy.timeout == Timeout(IncumbentTimeout(every_s=30.0), TruncatedMean())
    assert policy.stop == AnyOf((SmallImprovement(0.1), AllOf((MaxTrials(9),))))
    assert policy.answer == BestPredicted(0.9)


@pytest.mark.parametrize("name", all_presets())
@pytest.mark.parametrize("timeout", [None, *all_timeouts()])
def test_every_preset_round_trips(name, timeout):
    policy = preset(name, timeout=timeout)
    data = describe(policy)
    assert compose(data) == policy
    assert compose(json.loads(json.dumps(data))) == policy


PART_MODULES = [
    acquisition_functions,
    initial_designs,
    lynceus.policy.stopping,
    *(
        importlib.import_module(f"{package.__name__}.{found.name}")
        for package in (lynceus.policy.planners, lynceus.policy.timeouts)
        for found in pkgutil.iter_modules(package.__path__)
    ),
]


def test_the_table_of_parts_is_complete():
    """Users must be able to name every part in a policy file."""
    listed = {cls for classes in PARTS.values() for cls in classes} | {Amount, Timeout}
    for module in PART_MODULES:
        parts = {
            cls
            for cls in vars(module).values()
            if inspect.isclass(cls)
            and cls.__module__ == module.__name__
            and dataclasses.is_dataclass(cls)
            and "__call__" in vars(cls)
        }
        assert parts <= listed, module.__name__
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
    shared_randomness=flags,
)
acquisitions = st.sampled_from(PARTS[AcquisitionFunction]).flatmap(lambda cls: st.builds(cls))
shortlists = st.one_of(
    st.none(),
    st.sampled_from(PARTS[Shortlist]).flatmap(
        lambda cls: st.builds(cls, share=numbers) if cls is shortlist.TopShare else st.builds(cls, count=counts)
    ),
)
utilities = st.lists(st.sampled_from(PARTS[Utility]).flatmap(lambda cls: st.builds(cls)), min_size=1, max_size=2).map(
    tuple
)
lookaheads = st.builds(
    Lookahead,
    acquisition=acquisitions,
    depth=st.integers(0, 3),
    quadrature=st.builds(GaussHermite, points=st.integers(1, 7)) | st.just(PublishedQuadrature()),
    per=st.sampled_from(["run", "dollar"]),
    charge=st.sampled_from(["full", "capped"]),
    confidence=numbers,
    shortlist=shortlists,
)
designs = st.sampled_from(
    [
        initial_designs.LatinHypercube,
        initial_designs.UniformRows,
        initial_designs.QuasiRandom,
        initial_designs.CheapFirst,
        data_fraction.AtEveryShare,
    ]
).flatmap(lambda cls: st.builds(cls, amount=amounts, stoppable=flags))
plain = st.sampled_from([simple.Uniform(), simple.ByPrice()])
choosers = st.recursive(
    designs
    | lookaheads
    | plain
    | st.builds(information.InformationPlanner, utilities, overhead=numbers, shortlist=shortlists),
    lambda inner: (
        st.builds(simple.FirstOf, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(simple.Within, st.just("nodes > 2"), inner)
        | st.builds(promising.Promising, inner)
        | st.builds(data_fraction.OnShares, st.sampled_from(["samples", "full"]), inner)
    ),
    max_leaves=4,
)
rules = st.recursive(
    st.one_of(
        st.just(lynceus.policy.stopping.Never()),
        st.builds(SmallImprovement, numbers, counts),
        st.builds(MaxTrials, counts),
        st.builds(lynceus.policy.stopping.TotalBudget, numbers, counts),
        st.builds(lynceus.policy.stopping.GittinsStop, numbers, counts),
    ),
    lambda inner: (
        st.builds(AnyOf, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(AllOf, st.lists(inner, min_size=1, max_size=3).map(tuple))
    ),
    max_leaves=4,
)
timeouts = st.builds(
    Timeout,
    st.just(NoTimeout()) | st.builds(IncumbentTimeout, flags, numbers, numbers) | st.builds(FastestTimeout, numbers),
    st.sampled_from([Discard(), TruncatedMean()]) | st.builds(LinearProgress, numbers),
)
policies = st.builds(
    Policy,
    st.text("abc-+0", min_size=1),
    choosers,
    st.none() | surrogates,
    timeouts,
    rules,
    st.just(BestSeen()) | st.builds(BestPredicted, numbers),
)


@given(policies)
def test_any_combination_round_trips(policy):
    assert compose(json.loads(json.dumps(describe(policy)))) == policy


CHOOSERS = ", ".join(all_kinds(Chooser))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"chose": []}, "policy.chose: there is no field 'chose'; did you mean 'choose'?"),
        ({"choose": None}, f"policy.choose: got no value; expected a part with a kind ({CHOOSERS})."),
        ({"choose": "lokahead"}, "policy.choose.kind: got 'lokahead'; did you mean 'lookahead'?"),
        ({"choose": ["by-price", {"kind": "lookahead"}]}, "policy.choose.1.acquisition: the field 'acquisition' is missing; add it."),
        ({"choose": {"count": 3}}, f"policy.choose: the part has no kind; add one of {CHOOSERS}."),
        ({"choose": {"kind": "uniform", "n": 3}}, "policy.choose.n: there is no field 'n'."),
        ({"choose": {"kind": "latin-hypercube", "count": 3, "amount": {"count": 4}}},
         "policy.choose.amount: 'count' belongs to 'amount', which is given too; write it there."),
        ({"choose": {"kind": "latin-hypercube", "count": -3}}, None),
        ({"choose": {"kind": "lookahead", "acquisition": "feasibility", "depth": -1}}, "policy.choose: look-ahead depth -1 is negative."),
        ({"choose": {"kind": "lookahead", "acquisition": "feasibility", "depth": 1.5}},
         "policy.choose.depth: got 1.5; expected a whole number."),
        ({"choose": {"kind": "lookahead", "acquisition": "feasibility", "per": "euro"}},
         "policy.choose.per: got 'euro'; known are run, dollar."),
        ({"surrogate": {"kind": "trees", "trees": "many"}}, "policy.surrogate.trees: got 'many'; expected a whole number."),
        ({"surrogate": {"kind": "trees", "shared_randomness": 1}}, "policy.surrogate.shared_randomness: got 1; expected true or false."),
        ({"timeout": "liner"}, "policy.timeout: got 'liner'; did you mean 'linear'?"),
        ({"timeout": 3}, "policy.timeout: got 3; expected a mapping with rule, censored."),
        ({"stop": {"kind": "any-of", "rules": "never"}}, "policy.stop.rules: got 'never'; expected a list."),
        ({"name": 3}, "policy.name: got 3; expected a string."),
    ],
)  # fmt: skip
def test_errors_are_one_sentence(changed, message):
    with pytest.raises(InputError) as caught:
        compose({**EXAMPLE, **changed})
    if message is not None:
        assert str(caught.value) == message
    assert str(caught.value).startswith("policy.")


def test_a_document_adds_its_file_and_line():
    document = Document.parse("choose:\n  - by-price\n  - kind: lookahead\n    aquisition: feasibility\n", "mine.yaml")
    with pytest.raises(InputError) as caught:
        compose(document.tree.value, at=document.at)
    assert (
        str(caught.value)
        == "mine.yaml:4: choose.1.aquisition: there is no field 'aquisition'; did you mean 'acquisition'?"
    )


def test_every_interface_has_parts():
    assert set(PARTS) == {
        Surrogate,
        Chooser,
        AcquisitionFunction,
        Shortlist,
        Quadrature,
        Utility,
        TimeoutRule,
        CensoredValue,
        Stop,
        Answer,
        Confirm,
    }


# Version 0.1 ---------------------------------------------------------------------------------------------------------------

STORED = sorted((Path(__file__).parents[1] / "fixtures" / "v0.1" / "policies").glob("*.yaml"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_policies_of_version_0_1_are_read(path):
    current = preset(path.stem)
    # Version 0.1 took every run at its word, learnt from all runs, knew no floor, modelled metrics as they are, stopped the first run at
    # the deadline and never gave up; a stored policy decides as it did.
    former = current
    if current.confirm is not None:
        stop = dataclasses.replace(current.stop, gives_up=False)
        rule = dataclasses.replace(current.timeout.rule, overtime=1.0, overtime_share=math.inf)
        timeout = dataclasses.replace(current.timeout, rule=rule)
        start, planner = current.choose.choosers
        choose = simple.FirstOf((start, dataclasses.replace(planner, ample=planner.ample.chooser)))
        former = dataclasses.replace(
            current, choose=choose, surrogate=TIME, timeout=timeout, answer=BestSeen(), confirm=None, stop=stop
        )
    if path.stem == "fabulinus":
        # Its planner and its answer were mended, and it got a number of iterations; a stored policy keeps the old ones.
        planner = information.InformationPlanner((EntropySearch(), ConstrainedIncumbent()))
        former = dataclasses.replace(
            current,
            choose=data_fraction.OnShares("samples", simple.FirstOf((CHEAP_START, planner))),
            answer=BestPredicted(),
            stop=Never(),
        )
    if path.stem == "scout":
        # It predicted times and maximised EIc; now it classifies moves.
        planner = Lookahead(acquisition_functions.ConstrainedImprovement(), per="run", confidence=0.0)
        former = dataclasses.replace(
            current,
            choose=simple.FirstOf((current.choose.choosers[0], planner)),
            surrogate=PastPairs(),
            stop=SmallImprovement(0.10, after=3),
        )
    assert compose(yaml.safe_load(path.read_text())) == former


def test_every_preset_of_version_0_1_has_a_fixture():
    newer = {"fabulinus-2019", "lynceus-2020+stop", "staged", "known-cost"}
    newer |= {"paris", "quasar", "ottertune", "karasu", "flora", "ernest-sizes"}
    assert {path.stem for path in STORED} == set(all_presets()) - newer


@pytest.mark.parametrize(
    ("former", "current"),
    [
        ({"kind": "rollout", "gain": "feasibility", "real_money": False}, {"kind": "lookahead", "acquisition": "feasibility"}),
        ({"kind": "rollout", "gain": "feasibility", "rule": "gauss-hermite", "points": 5},
         {"kind": "lookahead", "acquisition": "feasibility", "points": 5}),
        ({"kind": "rollout", "gain": "feasibility", "quadrature": {"points": 5, "rule": "gauss-hermite"}},
         {"kind": "lookahead", "acquisition": "feasibility", "quadrature": {"kind": "gauss-hermite", "points": 5}}),
        ({"kind": "rollout", "gain": "feasibility", "quadrature": {"rule": "authors"}},
         {"kind": "lookahead", "acquisition": "feasibility", "quadrature": "published-quadrature"}),
        ({"kind": "rollout", "gain": "feasibility", "sure": 0.5, "real_money": True},
         {"kind": "published-lookahead", "acquisition": "feasibility", "confidence": 0.5}),
        ({"kind": "rollout", "gain": {"kind": "constrained-improvement", "exact": True, "guess": "root sigma"}},
         {"kind": "lookahead", "acquisition": {"kind": "published-improvement", "exact": True}}),
        ({"kind": "foresee", "worths": [{"kind": "knowing-the-best", "within_limits": True}, "knowing-the-best-allowed"]},
         {"kind": "information-planner", "utilities": [{"kind": "entropy-search", "constrained": True}, "constrained-entropy-search"]}),
    ],
)  # fmt: skip
def test_former_names_and_fields(former, current):
    assert compose({"choose": former}) == compose({"choose": current})


def test_an_error_beside_a_former_field_is_reported():
    with pytest.raises(InputError, match=r"policy\.choose\.depth: got 'deep'; expected a whole number"):
        compose({"choose": {"kind": "rollout", "gain": "feasibility", "real_money": True, "depth": "deep"}})


def test_a_stored_timeout_by_time_is_ituneds_rule():
    stored = {
        "choose": "uniform",
        "timeout": {"rule": {"kind": "incumbent-timeout", "slack": 2.0, "measure": "time"}, "censored": "discard"},
    }
    assert compose(stored).timeout == Timeout(FastestTimeout(2.0), Discard())
