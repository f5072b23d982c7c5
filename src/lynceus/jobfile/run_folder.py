"""Where the outputs of trials are kept."""

from __future__ import annotations

import math
from pathlib import Path

from lynceus.executors.interface import Request
from lynceus.executors.run_directory import directory_of
from lynceus.jobfile.job import Job
from lynceus.study.view import StudyView


def run_root(job: Job) -> Path:
    """The folder of all run directories of a job."""
    return job.file(job.spec.executor.run_directory)


def study_folder(job: Job, study: StudyView) -> Path:
    """The part of `run_root` that belongs to a study: one directory per trial, by number."""
    return owner_folder(job, study.name, study.record.identity)


def owner_folder(job: Job, name: str, identity: str) -> Path:
    """The same by name and identity: recurring jobs have a part of their own, too."""
    first = Request(name, 0, 0, {}, math.inf, True, identity)
    return directory_of(run_root(job).resolve(), first).parent
