"""The default policy, for jobs of which only the prices are known. docs/policy.md explains and measures it."""

from __future__ import annotations

from lynceus.acquisition.functions import ConstrainedImprovement
from lynceus.models.gaussian.prior import Settings
from lynceus.models.gaussian_process import GaussianProcess
from lynceus.models.log_metrics import LogMetrics
from lynceus.models.mixture import Mixture
from lynceus.models.price_trend import PriceTrend
from lynceus.models.subset_of_data import SubsetOfData
from lynceus.policy.answer import BestBelieved
from lynceus.policy.confirmation import RepeatBest
from lynceus.policy.designs import Amount, CheapFirst
from lynceus.policy.interfaces import Chooser
from lynceus.policy.planners.by_budget import ByBudget
from lynceus.policy.planners.floor import NotFarBehind
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.planners.shortlist import TopRows
from lynceus.policy.planners.simple import FirstOf
from lynceus.policy.policy import Policy
from lynceus.policy.stopping import GittinsStop
from lynceus.policy.timeouts.censoring import TruncatedMean
from lynceus.policy.timeouts.rules import IncumbentTimeout
from lynceus.policy.timeouts.timeout import Timeout

TIME = PriceTrend(
    GaussianProcess(
        inputs="sizes and price",
        settings=Settings(smooth=False, log_length=(0.5, 1.0), constant=0.25, log_signal=(0.0, 1.0)),
        centre="deadline",
        slope=0.45,
    ),
    slope=-0.5,
)
"""A Gaussian process of log time whose functions have cliffs: memory that no longer suffices, waves of tasks, learning rates that do not
converge. The prior mean of the time is the deadline at an average price, within a factor of e^0.5; time falls with the price to the power
of −0.5 ± 0.45, between no scaling (0) and perfect scaling (−1)."""

MODEL = SubsetOfData(LogMetrics(TIME))
"""The same process for every reported metric, of its logarithm where all values were positive. Of more than 128 runs it learns from those
that matter for the next decision."""

SMOOTH = PriceTrend(
    GaussianProcess(
        inputs="sizes and price",
        settings=Settings(smooth=True, log_length=(0.8, 1.0), constant=0.25, log_signal=(-0.7, 1.0)),
        centre="deadline",
        slope=0.45,
    ),
    slope=-0.5,
)
"""The same with smooth functions, longer length scales and less variance beside the trend."""

AVERAGE = SubsetOfData(LogMetrics(Mixture((TIME, SMOOTH))))
"""Both processes; where they disagree, the average is uncertain. Forecasts of jobs in production are calibrated with it. A search is better
off without the smooth one, which takes what lies between two runs for known (docs/policy.md)."""

CAPPED = Timeout(IncumbentTimeout(first_runs_too=True, overtime=2.0, overtime_share=0.35), TruncatedMean())
"""Every run, the first included, is stopped at the deadline or at the incumbent's cost. The process treats its time as a lower bound.
Only the first run, of the cheapest configuration, may take up to twice the deadline where that is cheap: it matters whether the cheapest
machines miss the deadline by a little or by far."""

WORTHWHILE = GittinsStop(future_runs=100.0, patience=3, gives_up=True)
"""Stop when, three times in a row, one more dollar of search was expected to save less than a dollar over the next hundred runs; or, while
no run has met the constraints, to find one that does with a chance that is worth less than a dollar."""

AHEAD = TopRows(16)
"""The rows from which a path is planned when runs are few."""


def default(lookahead: int | None, timeout: Timeout | None) -> Policy:
    """One run of the cheapest configuration, then the largest expected improvement per dollar charged until the timeout.

    The money for it stays in proportion to what going from cheap to expensive would have spent (`NotFarBehind`). If the budget allows
    only a few runs: the path of two runs with the largest expected improvement. An explicit depth
    (`lookahead`) applies to the improvement per dollar, whatever the budget.
    """
    acquisition = ConstrainedImprovement(exact=True, guess="ceiling")
    search = Lookahead(acquisition, depth=lookahead or 0, charge="capped", confidence=0.0)
    planner: Chooser = NotFarBehind(search, grant=64.0)
    if lookahead is None:
        path = Lookahead(
            acquisition, depth=1, per="run", charge="capped", confidence=0.0, shortlist=AHEAD, allowance_s=1.0
        )
        planner = ByBudget(path, planner)
    start = CheapFirst(Amount(count=1), pool=None)
    return Policy(
        "lynceus", FirstOf((start, planner)), MODEL, timeout or CAPPED, WORTHWHILE, BestBelieved(), RepeatBest()
    )
