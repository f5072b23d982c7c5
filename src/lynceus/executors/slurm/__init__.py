"""Trials as jobs of a Slurm cluster: `sbatch` submits them, `squeue` shows their state, `scancel` cancels them; no accounting is needed.

The supervisor runs on the first node of the allocation and enforces the timeout by its own clock. Run directories are on a disk that all
nodes share. What a supervisor recorded there takes precedence over what the controller says, so finished runs are settled even while the
controller is down.
"""

from lynceus.executors.slurm.executor import PLUGIN, SlurmExecutor
from lynceus.executors.slurm.options import SlurmOptions

__all__ = ["PLUGIN", "SlurmExecutor", "SlurmOptions"]
