"""Where runs happen: measured tables, and real machines."""

from lynceus.executor.executor import Clock, Executor, LostRunError, Request, WallClock
from lynceus.executor.table import Measurements, PretendedClock, TableExecutor

__all__ = [
    "Clock",
    "Executor",
    "LostRunError",
    "Measurements",
    "PretendedClock",
    "Request",
    "TableExecutor",
    "WallClock",
]
