"""Which parts fit where: the interfaces of a policy, and every class that policy files can name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from lynceus.acquisition.entropy_search import (
    ConstrainedEntropySearch,
    ConstrainedIncumbent,
    EntropySearch,
    FeasibleConfiguration,
)
from lynceus.acquisition.functions import ConstrainedImprovement, Feasibility, Improvement, PandoraIndex
from lynceus.models.fabolas import Fabolas
from lynceus.models.foretold import Foretold
from lynceus.models.gaussian_process import GaussianProcess
from lynceus.models.interfaces import AcquisitionFunction, Surrogate, Utility
from lynceus.models.joint_trees import JointTrees
from lynceus.models.log_metrics import LogMetrics
from lynceus.models.metric_trees import MetricTrees
from lynceus.models.mixture import Mixture
from lynceus.models.move_classes import MoveClasses
from lynceus.models.past_pairs import PastPairs
from lynceus.models.past_systems import FingerprintForest, MatrixFactors, NearestPast, RankedEnsemble
from lynceus.models.price_trend import PriceTrend
from lynceus.models.scale_out import ScaleOut
from lynceus.models.sized_scale_out import SizedScaleOut
from lynceus.models.subset_of_data import SubsetOfData
from lynceus.models.trees import Trees
from lynceus.policy.answer import BestBelieved, BestPredicted, BestSeen
from lynceus.policy.checked_answer import BestChecked
from lynceus.policy.confirmation import RepeatBest
from lynceus.policy.designs import CheapFirst, LatinHypercube, QuasiRandom, UniformRows
from lynceus.policy.informed import FromHistory
from lynceus.policy.interfaces import Answer, CensoredValue, Chooser, Confirm, Quadrature, Shortlist, Stop, TimeoutRule
from lynceus.policy.past_systems import ByPastCost, LowestObjective, OverSizes, ReferenceRows
from lynceus.policy.planners.by_budget import ByBudget
from lynceus.policy.planners.data_fraction import AtEveryShare, CheckAnswer, OnShares
from lynceus.policy.planners.disjoint import Disjoint
from lynceus.policy.planners.ernest import LowestPredicted, OptimalDesign
from lynceus.policy.planners.floor import NotFarBehind
from lynceus.policy.planners.halving import SuccessiveHalving
from lynceus.policy.planners.information import InformationPlanner
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.planners.moves import LikeliestMove, UnlikelyMove
from lynceus.policy.planners.outcomes import GaussHermite
from lynceus.policy.planners.promising import Promising
from lynceus.policy.planners.shortlist import LocalSearch, RandomRows, TopRows, TopShare
from lynceus.policy.planners.simple import ByKnownCost, ByPrice, FirstOf, Uniform, Within
from lynceus.policy.plugins import policy_plugins
from lynceus.policy.stopping import (
    AllOf,
    AnyOf,
    FirstFeasible,
    FutureUses,
    GittinsStop,
    Iterations,
    MaxTrials,
    Never,
    ProteusStop,
    SmallImprovement,
    TotalBudget,
)
from lynceus.policy.timeouts.adaptive import AdaptiveTimeout
from lynceus.policy.timeouts.at_most import AtMost
from lynceus.policy.timeouts.censoring import Discard, HighestCost, LinearProgress, LowerBound, TruncatedMean, WholeRun
from lynceus.policy.timeouts.rules import FastestTimeout, IncumbentTimeout, NoTimeout

PARTS: Mapping[Any, tuple[type, ...]] = MappingProxyType(
    {
        Surrogate: (
            Trees,
            GaussianProcess,
            Mixture,
            Foretold,
            PriceTrend,
            SubsetOfData,
            LogMetrics,
            Fabolas,
            JointTrees,
            ScaleOut,
            SizedScaleOut,
            MetricTrees,
            PastPairs,
            FingerprintForest,
            MatrixFactors,
            NearestPast,
            RankedEnsemble,
            MoveClasses,
        ),
        Chooser: (
            LatinHypercube,
            UniformRows,
            QuasiRandom,
            CheapFirst,
            Lookahead,
            Uniform,
            ByPrice,
            ByKnownCost,
            Within,
            FirstOf,
            FromHistory,
            ReferenceRows,
            LowestObjective,
            ByPastCost,
            OverSizes,
            AtEveryShare,
            OnShares,
            CheckAnswer,
            SuccessiveHalving,
            Promising,
            ByBudget,
            NotFarBehind,
            InformationPlanner,
            Disjoint,
            OptimalDesign,
            LowestPredicted,
            LikeliestMove,
        ),
        AcquisitionFunction: (ConstrainedImprovement, Improvement, Feasibility, PandoraIndex),
        Shortlist: (TopRows, TopShare, RandomRows, LocalSearch),
        Quadrature: (GaussHermite,),
        Utility: (EntropySearch, ConstrainedEntropySearch, ConstrainedIncumbent, FeasibleConfiguration),
        TimeoutRule: (NoTimeout, IncumbentTimeout, AdaptiveTimeout, FastestTimeout, AtMost),
        CensoredValue: (LowerBound, TruncatedMean, LinearProgress, HighestCost, Discard, WholeRun),
        Stop: (
            Never,
            FirstFeasible,
            SmallImprovement,
            ProteusStop,
            FutureUses,
            TotalBudget,
            MaxTrials,
            Iterations,
            GittinsStop,
            UnlikelyMove,
            AnyOf,
            AllOf,
        ),
        Answer: (BestSeen, BestBelieved, BestPredicted, BestChecked),
        Confirm: (RepeatBest,),
    }
)
"""Interface → the built-in classes that implement it."""

LISTS: Mapping[Any, type] = MappingProxyType({Chooser: FirstOf, Stop: AnyOf})
"""Interface → the class that a plain list of parts means."""

IMPLIED: Mapping[Any, type] = MappingProxyType({Quadrature: GaussHermite})
"""Interface → the class whose fields may be written directly in the part that holds it."""


def kind_of(part: type) -> str:
    """The name of a part in policy files.

    >>> kind_of(LatinHypercube)
    'latin-hypercube'
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", part.__name__).lower()


def kinds(interface: Any) -> dict[str, type]:
    """The built-in parts of an interface by kind."""
    return {kind_of(cls): cls for cls in PARTS[interface]}


def all_kinds(interface: Any) -> dict[str, type]:
    """Every part of an interface by kind: the built-in ones first, then those of plugins."""
    found = kinds(interface)
    for plugin in policy_plugins():
        for cls in plugin.parts.get(interface, ()):
            found.setdefault(kind_of(cls), cls)
    return found
