"""Where trials run: this machine, measured tables, Slurm, Ray, SkyPilot.

Nothing is imported here, because the supervisor of a run is forked from a process that loads only the standard library.
"""
