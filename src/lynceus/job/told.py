"""Jobs without a command: programs elsewhere ask for their trials and tell how they went."""

from __future__ import annotations

from lynceus.job.job import Job

NO_COMMAND = "echo 'This study has no command: programs ask for its trials and tell how they went.' >&2; exit 1"
"""What a worker runs of such a study: a sentence for whoever starts one by mistake."""


def has_command(job: Job) -> bool:
    """Whether trials can be run by a worker."""
    return job.spec.run != NO_COMMAND
