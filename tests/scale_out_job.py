"""A job whose running times follow a scale-out law."""

import numpy as np

from lynceus.executors.table import Measurements
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.derived import Computed
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space
from lynceus.testing.job import SmallJob


def scaling_job() -> SmallJob:
    """Two machine types, six counts: T = 60 + 4000/m + 5·log m + 2·m on the small type, half as long on the large one."""
    space = Space.build(
        [Categorical("vm", ("small", "large")), Integer("nodes", values=(1, 2, 4, 8, 12, 16))],
        [Computed("usd", "nodes * (0.1 if vm == 'small' else 0.25)")],
        price="usd",
    )
    nodes = np.asarray(space.column("nodes"), dtype=float)
    seconds = 60 + 4000 / nodes + 5 * np.log(nodes) + 2 * nodes
    seconds = np.where(np.asarray(space.column("vm")) == "small", seconds, seconds / 2)
    return SmallJob(
        Problem(space, constraints=(Constraint("time", 1500.0),)), Measurements(seconds), tuple(range(len(space)))
    )
