"""Job files: what a person writes, checked line by line, and what a study needs, built from it.

Here is the file alone. Whoever builds a study from it imports `lynceus.job.prepare`, and with it what policies compute with; whoever
only looks at one needs `lynceus.job.problem`.
"""

from lynceus.job.job import Job
from lynceus.job.model import JobFile

__all__ = ["Job", "JobFile"]
