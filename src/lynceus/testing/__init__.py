"""Checks that every part must pass, for parts of your own as well: a new surrogate is done when `check_surrogate` is silent."""

from lynceus.testing.choosers import check_chooser
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.testing.executor_outages import outage_checks
from lynceus.testing.executors import check_executor, executor_checks
from lynceus.testing.job import SmallJob, small_job
from lynceus.testing.serving import serving_checks
from lynceus.testing.surrogates import check_surrogate
from lynceus.testing.timeouts import check_timeout

__all__ = [
    "ExecutorHarness",
    "SmallJob",
    "check_chooser",
    "check_executor",
    "check_surrogate",
    "check_timeout",
    "executor_checks",
    "outage_checks",
    "serving_checks",
    "small_job",
]
