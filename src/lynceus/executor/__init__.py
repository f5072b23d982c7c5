"""Where runs happen: measured tables, and real machines."""

from lynceus.executor.executor import Clock, Executor, Request, WallClock
from lynceus.executor.table import Measurements, PretendedClock, TableExecutor

__all__ = ["Clock", "Executor", "Measurements", "PretendedClock", "Request", "TableExecutor", "WallClock"]
