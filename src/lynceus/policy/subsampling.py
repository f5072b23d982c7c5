"""Policies that know of the data fraction, and the baselines they are measured against: rows of the table of presets."""

from __future__ import annotations

from lynceus.acquisition.gains import ConstrainedImprovement, Improvement
from lynceus.acquisition.information import ConstrainedIncumbent, KnowingTheBest
from lynceus.choose import Amount, FirstOf, LatinHypercube, Promising, Rollout, Uniform
from lynceus.choose.foresee import Foresee
from lynceus.choose.shares import AtEveryShare, OnShares
from lynceus.choose.shortlist import TopShare
from lynceus.errors import InputError
from lynceus.parts import Chooser, Surrogate, Worth
from lynceus.policy.answer import BestPredicted
from lynceus.policy.policy import Policy
from lynceus.surrogate.fabolas import Fabolas
from lynceus.surrogate.foresighted_trees import ForesightedTrees
from lynceus.surrogate.trees import Trees
from lynceus.timeout import LowerBound, NoCap, Timeout

_NONE = Timeout(NoCap(), LowerBound())
PUBLISHED_START = AtEveryShare()
"""3 % of the configurations, each on every sample: on the published tables this alone costs more than a search on all data."""
CHEAP_START = AtEveryShare(Amount(count=4), shares=2)
"""Four configurations on the two smallest samples; what else is worth its money, the planner knows better."""


def nephele(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Mendes 2019, §IV: two ensembles of 5 trees, a start that spends a tenth of the budget, EIc per dollar, else at random.

    Their initial budgets ($5, $2 and $1) belong to their jobs; `{kind: latin-hypercube, usd: 5}` says the same in a document.
    """
    planner = Rollout(ConstrainedImprovement(), depth=lookahead or 0)
    start = LatinHypercube(Amount(budget_share=0.1))
    return Policy("nephele", FirstOf((start, Promising(planner), Uniform())), Trees(trees=5), timeout or _NONE)


def fabulinus(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Mendes 2019, §V: constrained entropy search on samples, the answer predicted for all data and 99 % sure."""
    return _foreseeing("fabulinus", (KnowingTheBest(), ConstrainedIncumbent()), lookahead, timeout)


def fabolas(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Klein et al. 2017: the same without regard to limits."""
    return _foreseeing("fabolas", (KnowingTheBest(),), lookahead, timeout, answer=BestPredicted(sure=0.0))


def trimtuner(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Mendes et al. 2020: trees, and entropy only for the tenth of the runs that look best themselves."""
    worths = (KnowingTheBest(), ConstrainedIncumbent())
    return _foreseeing("trimtuner", worths, lookahead, timeout, trim=True, surrogate=ForesightedTrees())


def trimtuner_gp(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """The same with Gaussian processes."""
    return _foreseeing("trimtuner-gp", (KnowingTheBest(), ConstrainedIncumbent()), lookahead, timeout, trim=True)


def eic_full(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Bayesian optimisation on all data with EIc."""
    planner = Rollout(ConstrainedImprovement(), depth=lookahead or 0, per="run")
    return _on_all_data("eic-full", planner, timeout)


def ei_full(lookahead: int | None = None, timeout: Timeout | None = None) -> Policy:
    """Bayesian optimisation on all data with EI, limits not regarded."""
    return _on_all_data("ei-full", Rollout(Improvement(), depth=lookahead or 0, per="run"), timeout)


def _on_all_data(name: str, planner: Chooser, timeout: Timeout | None) -> Policy:
    choose = OnShares("full", FirstOf((LatinHypercube(), planner)))
    return Policy(name, choose, Fabolas(), timeout or _NONE)


def _foreseeing(
    name: str,
    worths: tuple[Worth, ...],
    lookahead: int | None,
    timeout: Timeout | None,
    *,
    trim: bool = False,
    surrogate: Surrogate | None = None,
    answer: BestPredicted | None = None,
) -> Policy:
    if lookahead:
        raise InputError(f"lookahead: policy {name!r} weighs what one run would teach; leave lookahead out.")
    planner = Foresee(worths, shortlist=TopShare(0.1) if trim else None)
    choose = OnShares("samples", FirstOf((CHEAP_START, planner)))
    return Policy(name, choose, surrogate or Fabolas(), timeout or _NONE, answer=answer or BestPredicted())
