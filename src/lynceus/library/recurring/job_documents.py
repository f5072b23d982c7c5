"""Recurring jobs as documents: the list, and one job as its page shows it."""

from __future__ import annotations

import contextlib

from lynceus.analysis.documents.job import job_document, job_line
from lynceus.analysis.documents.json import Document, page_document
from lynceus.errors import LynceusError
from lynceus.library.recurring.job_problem import todays_problem
from lynceus.library.recurring.job_record import known_job
from lynceus.recurring.next_action import next_action
from lynceus.storage.sql.jobs import JobStore


def jobs_document(store: JobStore) -> Document:
    """All jobs, by name."""
    lines = [_line(store, head.name) for head in store.heads()]
    now_s = store.storage.clock.now()
    return page_document("jobs", {"now_s": now_s, "storage": store.storage.shown_url}) | {"jobs": lines}


def _line(store: JobStore, name: str) -> Document:
    stored = store.load(name)
    deadline_s = stored.record.settings.deadline_s
    with contextlib.suppress(
        LynceusError
    ):  # tables that its job file reads may not be here; the list is shown all the same
        deadline_s = min(deadline_s, todays_problem(stored.document).deadline_s)
    return job_line(stored.record, deadline_s)


def job_page(store: JobStore, name: str) -> Document:
    """One job: what is in production, every run beside what was expected of it, what to do next, what changes brought."""
    job = known_job(store, name)
    action = next_action(job.problem, job.record, job.now_s)
    return job_document(job.record, job.problem, action, job.now_s)
