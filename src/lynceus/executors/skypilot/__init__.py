"""Runs on clouds, Kubernetes and Slurm through SkyPilot, which is installed in its own environment."""

from lynceus.executors.plugin import Plugin
from lynceus.executors.skypilot.executor import SkyPilotExecutor
from lynceus.executors.skypilot.options import SkyPilotOptions, check_options, not_found

PLUGIN = Plugin(
    SkyPilotExecutor,
    SkyPilotOptions,
    check=check_options,
    setup="own",
    about="clusters of any cloud, Kubernetes or Slurm through SkyPilot, which is installed in its own environment",
    look_for=not_found,
)

__all__ = ["PLUGIN", "SkyPilotExecutor", "SkyPilotOptions"]
