"""Trials as jobs of a Slurm cluster: submitted by `sbatch`, watched by `squeue`, ended by `scancel`; no accounting is needed.

The supervisor runs on the first node of the allocation and enforces the cap by its own clock; run directories lie on a disk that all nodes
see. What a run left in its directory counts more than what the controller says: a finished run is settled while the controller is away.
"""

from lynceus.executor.slurm.executor import PLUGIN, SlurmExecutor
from lynceus.executor.slurm.options import SlurmOptions

__all__ = ["PLUGIN", "SlurmExecutor", "SlurmOptions"]
