"""Where runs happen: measured tables, and real machines."""

from lynceus.executor.executor import Belonging, Clock, Executor, LostRunError, Request, Sweeps, WallClock
from lynceus.executor.shape import Shape
from lynceus.executor.table import Measurements, PretendedClock, TableExecutor

__all__ = [
    "Belonging",
    "Clock",
    "Executor",
    "LostRunError",
    "Measurements",
    "PretendedClock",
    "Request",
    "Shape",
    "Sweeps",
    "TableExecutor",
    "WallClock",
]
