"""Policies that run jobs on fractions of their data, and the baselines they are compared with, as rows of the table of presets."""

from __future__ import annotations

from dataclasses import replace

from lynceus.acquisition.entropy_search import ConstrainedEntropySearch, ConstrainedIncumbent, EntropySearch
from lynceus.acquisition.functions import ConstrainedImprovement, Improvement
from lynceus.errors import InputError
from lynceus.models.fabolas import Fabolas
from lynceus.models.interfaces import Surrogate, Utility
from lynceus.models.joint_trees import JointTrees
from lynceus.models.trees import Trees
from lynceus.policy.answer import BestPredicted
from lynceus.policy.checked_answer import BestChecked
from lynceus.policy.designs import Amount, LatinHypercube
from lynceus.policy.interfaces import Chooser, Shortlist
from lynceus.policy.planners.data_fraction import AtEveryShare, CheckAnswer, OnShares
from lynceus.policy.planners.information import InformationPlanner
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.planners.promising import Promising
from lynceus.policy.planners.shortlist import TopShare
from lynceus.policy.planners.simple import FirstOf, Uniform
from lynceus.policy.policy import Policy
from lynceus.policy.stopping import Iterations
from lynceus.policy.timeouts.by_name import TIMEOUTS
from lynceus.policy.timeouts.timeout import Timeout

PUBLISHED_START = AtEveryShare()
"""3 % of the configurations, each on every sample: on the published tables this design alone costs more than a search on all data."""
CHEAP_START = AtEveryShare(Amount(count=4), shares=2)
"""Four configurations on the two smallest samples; the planner chooses everything else."""
OVERHEAD = 0.02
"""C_overhead of Eq. 8, in mean costs of a run on all data. Without it, runs on the smallest sample are nearly free, and a planner that
counts information per dollar makes hardly any other."""
CHECK_EVERY = 5
"""Runs on samples between two runs of the recommendation on all data."""
AHEAD = 4
"""Rows from which a look-ahead imagines outcomes."""


def nephele(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Mendes 2019, §IV: two ensembles of 5 trees, a start that spends a tenth of the budget, EIc per dollar, else at random.

    The paper's initial budgets ($5, $2 and $1) depend on the job; write `{kind: latin-hypercube, usd: 5}` in a policy file for them.
    """
    planner = Lookahead(ConstrainedImprovement(), depth=lookahead or 0)
    start = LatinHypercube(Amount(budget_share=0.1))
    return Policy(
        "nephele", FirstOf((start, Promising(planner), Uniform())), Trees(trees=5), timeout or TIMEOUTS["none"]
    )


def fabulinus(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Fabulinus, mended: what a run on samples tells about the best *feasible* configuration, its time included, with an overhead per
    run; what would be recommended is run on all data first.

    The published form buys nearly free runs that hardly tell the time on all data, and so seldom settles under a tight limit on cost;
    and no sample shows a configuration that becomes slow only on all data (docs/subsampling.md).
    """
    if lookahead is not None and lookahead > 1:
        raise InputError(f"lookahead: got {lookahead}; policy 'fabulinus' looks at most 1 run ahead.")
    planner = InformationPlanner((ConstrainedEntropySearch(),), overhead=OVERHEAD, ahead=AHEAD if lookahead else 0)
    choose = FirstOf((OnShares("samples", CHEAP_START), CheckAnswer(CHECK_EVERY), OnShares("samples", planner)))
    stop = Iterations(100)
    return Policy("fabulinus", choose, Fabolas(), timeout or TIMEOUTS["none"], answer=BestChecked(), stop=stop)


def fabulinus_2019(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Mendes 2019, §V: entropy search × CEA on samples; the recommendation is predicted for all data with 99 % confidence."""
    planner = InformationPlanner((EntropySearch(), ConstrainedIncumbent()))
    return replace(_on_samples("fabulinus-2019", PUBLISHED_START, planner, lookahead, timeout), stop=Iterations(100))


def fabolas(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Klein et al. 2017: the same without constraints."""
    return _informed("fabolas", (EntropySearch(),), lookahead, timeout, answer=BestPredicted(confidence=0.0))


def trimtuner(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Mendes et al. 2020: trees, and entropy search only for the tenth of the rows with the best own prediction."""
    utilities = (EntropySearch(), ConstrainedIncumbent())
    return _informed("trimtuner", utilities, lookahead, timeout, shortlist=TopShare(0.1), surrogate=JointTrees())


def trimtuner_gp(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """The same with Gaussian processes."""
    return _informed(
        "trimtuner-gp", (EntropySearch(), ConstrainedIncumbent()), lookahead, timeout, shortlist=TopShare(0.1)
    )


def eic_full(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Bayesian optimization on all data with EIc."""
    planner = Lookahead(ConstrainedImprovement(), depth=lookahead or 0, per="run")
    return _on_all_data("eic-full", planner, timeout)


def ei_full(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Bayesian optimization on all data with EI, without constraints."""
    return _on_all_data("ei-full", Lookahead(Improvement(), depth=lookahead or 0, per="run"), timeout)


def _on_all_data(name: str, planner: Chooser, timeout: Timeout | None) -> Policy:
    choose = OnShares("full", FirstOf((LatinHypercube(), planner)))
    return Policy(name, choose, Fabolas(), timeout or TIMEOUTS["none"])


def _informed(
    name: str,
    utilities: tuple[Utility, ...],
    lookahead: int | None,
    timeout: Timeout | None,
    *,
    shortlist: Shortlist | None = None,
    surrogate: Surrogate | None = None,
    answer: BestPredicted | None = None,
) -> Policy:
    planner = InformationPlanner(utilities, shortlist=shortlist)
    policy = _on_samples(name, CHEAP_START, planner, lookahead, timeout)
    return replace(policy, surrogate=surrogate or policy.surrogate, answer=answer or policy.answer)


def _on_samples(
    name: str, start: Chooser, planner: InformationPlanner, lookahead: int | None, timeout: Timeout | None
) -> Policy:
    if lookahead:
        raise InputError(f"lookahead: policy {name!r} plans one run at a time; leave lookahead out.")
    choose = OnShares("samples", FirstOf((start, planner)))
    return Policy(name, choose, Fabolas(), timeout or TIMEOUTS["none"], answer=BestPredicted())
