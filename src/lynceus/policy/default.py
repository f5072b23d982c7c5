"""The default policy: what to do when nothing is known of a job but its prices. docs/policy.md explains and measures it."""

from __future__ import annotations

from lynceus.acquisition.gains import ConstrainedImprovement
from lynceus.choose import Amount, ByBudget, CheapFirst, FirstOf, Rollout, TopRows
from lynceus.parts import Chooser
from lynceus.policy.policy import Policy
from lynceus.stopping import GittinsStop
from lynceus.surrogate.gaussian import Settings
from lynceus.surrogate.gaussian_process import GaussianProcess
from lynceus.surrogate.scaling import AlongPrice
from lynceus.timeout import IncumbentCap, Timeout, TruncatedMean

MODEL = AlongPrice(
    GaussianProcess(
        inputs="sizes and price",
        settings=Settings(smooth=False, log_length=(0.5, 1.0), constant=0.25, log_signal=(0.0, 1.0)),
        centre="deadline",
        slope=0.45,
    ),
    slope=-0.5,
)
"""A Gaussian process of log time, averaged over its hyper-parameters. It is a rough one, because measured times have cliffs: memory
that no longer suffices, waves of tasks, learning rates that do not converge. Before the first run, time is thought to lie about the
deadline at an average price, give or take a factor of e^0.5, and to fall with the price to the power of −0.5 ± 0.45, between no scaling
(0) and perfect scaling (−1)."""

CAPPED = Timeout(IncumbentCap(first_runs_too=True), TruncatedMean())
"""Every run, the first included, is stopped at the deadline or at the incumbent's cost. The process treats it as a lower bound."""

WORTHWHILE = GittinsStop(future_runs=100.0, patience=3)
"""Stop when, three times in a row, a dollar of search was expected to save less than a dollar over the next hundred runs of the job."""


AHEAD = TopRows(16)
"""From where a path is planned when runs are few."""


def default(lookahead: int | None, timeout: Timeout | None) -> Policy:
    """One run of the cheapest configuration, then the largest expected improvement per dollar that can really be charged.

    Where the budget is only for a few runs, the path of two runs that together promise most. A depth that is asked for
    (`lookahead`) is that of the gain per dollar, whatever the budget.
    """
    gain = ConstrainedImprovement(exact=True, guess="ceiling")
    planner: Chooser = Rollout(gain, depth=lookahead or 0, charge="capped", sure=0.0)
    if lookahead is None:
        path = Rollout(gain, depth=1, per="run", charge="capped", sure=0.0, shortlist=AHEAD, allowance_s=1.0)
        planner = ByBudget(path, planner)
    start = CheapFirst(Amount(count=1), pool=None)
    return Policy("lynceus", FirstOf((start, planner)), MODEL, timeout or CAPPED, WORTHWHILE)
