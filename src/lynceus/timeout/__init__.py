"""When to stop a run, and what the model hears about a run that was stopped.

A timeout is a pair: a *cap* (seconds after which the run is stopped) and a *fill* (what is told instead of the unknown rest).
"""

from lynceus.timeout.at_most import AtMost
from lynceus.timeout.cap import IncumbentCap, NoCap
from lynceus.timeout.fill import (
    HighestCost,
    LinearProgress,
    LowerBound,
    Nothing,
    PublishedProgram,
    TruncatedMean,
    WholeRun,
)
from lynceus.timeout.timeout import Timeout

__all__ = [
    "AtMost",
    "HighestCost",
    "IncumbentCap",
    "LinearProgress",
    "LowerBound",
    "NoCap",
    "Nothing",
    "PublishedProgram",
    "Timeout",
    "TruncatedMean",
    "WholeRun",
]
