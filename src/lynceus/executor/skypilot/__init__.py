"""Runs on clouds, Kubernetes and Slurm through SkyPilot, which lives in an environment of its own."""

from lynceus.executor.plugin import Plugin
from lynceus.executor.skypilot.executor import SkyPilotExecutor
from lynceus.executor.skypilot.options import SkyPilotOptions, checked

PLUGIN = Plugin(
    SkyPilotExecutor,
    SkyPilotOptions,
    check=checked,
    setup="own",
    about="clusters of any cloud, Kubernetes or Slurm through SkyPilot, which lives in an environment of its own",
)

__all__ = ["PLUGIN", "SkyPilotExecutor", "SkyPilotOptions"]
