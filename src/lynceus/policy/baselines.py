"""Systems that others built, as rows of the table of presets: what Lynceus is measured against."""

from __future__ import annotations

from lynceus.acquisition.gains import ConstrainedImprovement
from lynceus.choose import Amount, FirstOf, LatinHypercube, Rollout, Uniform, UniformRows
from lynceus.choose.disjoint import Disjoint
from lynceus.choose.scale_out import LowestPredicted, OptimalDesign
from lynceus.errors import InputError
from lynceus.policy.policy import Policy
from lynceus.stopping import SmallGain
from lynceus.surrogate.metric_trees import MetricTrees
from lynceus.surrogate.past_pairs import PastPairs
from lynceus.surrogate.scale_out import ScaleOut
from lynceus.surrogate.trees import Trees
from lynceus.timeout import LowerBound, NoCap, Timeout

_NONE = Timeout(NoCap(), LowerBound())
JOB_PARAMETERS = ("learning_rate", "batch_size", "sync", "data_fraction")
"""What is not the cluster, in the jobs that ship."""


def disjoint(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Parameters on a random reference cluster first, then the cluster; EIc per dollar inside both."""
    inner = Rollout(ConstrainedImprovement(), depth=lookahead or 0)
    return Policy("disjoint", Disjoint(inner, JOB_PARAMETERS), Trees(), timeout or _NONE)


def arrow(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Plain Bayesian optimisation on extra-trees over pairs of runs, which also read what runs reported (Arrow)."""
    if lookahead:
        # A pair of every two runs is fitted anew for every imagined outcome: minutes per decision for nothing the paper asks for.
        raise InputError("lookahead: policy 'arrow' compares pairs of runs that were made; leave lookahead out.")
    planner = Rollout(ConstrainedImprovement(), per="run", sure=0.0)
    return Policy("arrow", FirstOf((LatinHypercube(), planner)), MetricTrees(), timeout or _NONE)


def ernest(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Two runs of every machine type, a scale-out model each, then the lowest predictions one after the other."""
    if lookahead:
        raise InputError("lookahead: policy 'ernest' runs what it predicts to be cheapest; leave lookahead out.")
    return Policy("ernest", FirstOf((OptimalDesign(), LowestPredicted(), Uniform())), ScaleOut(), timeout or _NONE)


def scout(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """One random run, then wherever runs of other jobs say that it gets better; stops when they promise less than 10 %."""
    if lookahead:
        raise InputError("lookahead: policy 'scout' asks runs of other jobs where to move next; leave lookahead out.")
    planner = Rollout(ConstrainedImprovement(), per="run", sure=0.0)
    choose = FirstOf((UniformRows(Amount(count=1)), planner))
    return Policy("scout", choose, PastPairs(), timeout or _NONE, SmallGain(0.10, after=3))
