"""Published systems that Lynceus is compared with, as rows of the table of presets."""

from __future__ import annotations

from lynceus.acquisition.functions import ConstrainedImprovement
from lynceus.errors import InputError
from lynceus.models.metric_trees import MetricTrees
from lynceus.models.move_classes import MoveClasses
from lynceus.models.scale_out import ScaleOut
from lynceus.models.trees import Trees
from lynceus.policy.designs import Amount, LatinHypercube, UniformRows
from lynceus.policy.planners.disjoint import Disjoint
from lynceus.policy.planners.ernest import LowestPredicted, OptimalDesign
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.planners.moves import LikeliestMove, UnlikelyMove
from lynceus.policy.planners.simple import ByKnownCost, ByPrice, FirstOf, Uniform
from lynceus.policy.policy import Policy
from lynceus.policy.stopping import FirstFeasible
from lynceus.policy.timeouts.by_name import TIMEOUTS
from lynceus.policy.timeouts.timeout import Timeout

JOB_PARAMETERS = ("learning_rate", "batch_size", "sync", "data_fraction")
"""Parameters of the shipped jobs that do not describe the cluster."""


HARDWARE = (
    *("gpu", "gpu_type", "accelerator", "gpus", "n_gpus", "num_gpus", "vm_type", "instance_type", "nodes", "num_nodes"),
    *(
        "tensor_parallel",
        "tensor_parallel_size",
        "pipeline_parallel",
        "pipeline_parallel_size",
        "data_parallel",
        "tp",
        "pp",
    ),
)
"""Parameters that describe machines and how a model is spread over them, by common names."""


def staged(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """How servers are tuned by hand: machines and parallelism first, with the other settings held; then the others on the best of them."""
    if lookahead:
        raise InputError("lookahead: policy 'staged' has no model to look ahead with; leave lookahead out.")
    return Policy("staged", Disjoint(ByPrice(), HARDWARE), timeout=timeout or TIMEOUTS["capped"])


def known_cost(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Configurations in the order of the known objective, or else of their price; the first that meets every constraint wins."""
    if lookahead:
        raise InputError("lookahead: policy 'known-cost' has no model to look ahead with; leave lookahead out.")
    return Policy("known-cost", ByKnownCost(), timeout=timeout or TIMEOUTS["none"], stop=FirstFeasible())


def disjoint(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Job parameters on a random reference cluster first, then the cluster; EIc per dollar in both steps."""
    inner = Lookahead(ConstrainedImprovement(), depth=lookahead or 0)
    return Policy("disjoint", Disjoint(inner, JOB_PARAMETERS), Trees(), timeout or TIMEOUTS["none"])


def arrow(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Plain Bayesian optimization on extra-trees over pairs of runs, with reported metrics as features (Arrow)."""
    if lookahead:
        # All pairs of runs would be fitted again for every imagined outcome, minutes per decision, and the paper does not look ahead.
        raise InputError("lookahead: policy 'arrow' compares pairs of finished runs; leave lookahead out.")
    planner = Lookahead(ConstrainedImprovement(), per="run", confidence=0.0)
    return Policy("arrow", FirstOf((LatinHypercube(), planner)), MetricTrees(), timeout or TIMEOUTS["none"])


def ernest(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Two runs of every machine type, a scale-out model each, then the lowest predictions one after the other."""
    if lookahead:
        raise InputError("lookahead: policy 'ernest' runs the lowest prediction; leave lookahead out.")
    return Policy(
        "ernest", FirstOf((OptimalDesign(), LowestPredicted(), Uniform())), ScaleOut(), timeout or TIMEOUTS["none"]
    )


def scout(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """One random run, then the move that most probably improves, by classes of moves in other jobs; stops when none is likely."""
    if lookahead:
        raise InputError("lookahead: policy 'scout' learns the next move from runs of other jobs; leave lookahead out.")
    choose = FirstOf((UniformRows(Amount(count=1)), LikeliestMove(), Uniform()))  # at random while every run has failed
    return Policy("scout", choose, MoveClasses(), timeout or TIMEOUTS["none"], UnlikelyMove())
