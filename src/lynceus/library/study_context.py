"""A stored study with what an analysis needs besides."""

from __future__ import annotations

from functools import partial

from lynceus.analysis.study_context import StudyContext
from lynceus.jobfile.command_line import command_line
from lynceus.library.open_study import OpenStudyView
from lynceus.library.workers import worker_left


def study_context(one: OpenStudyView) -> StudyContext:
    """A stored study with the command line of its job file."""
    job, record = one.prepared.job, one.record
    command = partial(command_line, job) if job.has_command else None
    left = not one.study.pending and worker_left(one.storage, record)
    return StudyContext(one.study, command, record.created_s, record.seen_s, left, record.payer)
