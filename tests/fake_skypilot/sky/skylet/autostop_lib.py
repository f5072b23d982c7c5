"""What may keep a cluster up, in SkyPilot's words."""

import enum


class AutostopWaitFor(enum.Enum):
    JOBS_AND_SSH = "jobs_and_ssh"
    JOBS = "jobs"
    NONE = "none"
