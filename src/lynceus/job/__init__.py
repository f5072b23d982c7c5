"""Job files: what a person writes, checked line by line, and what a study needs, built from it."""

from lynceus.job.job import Job
from lynceus.job.model import JobFile
from lynceus.job.prepare import Prepared, prepare
from lynceus.job.schema import job_schema
from lynceus.job.starter import starter

__all__ = ["Job", "JobFile", "Prepared", "job_schema", "prepare", "starter"]
