"""The shared budgets on which a job file draws, whether its study exists already or not."""

from __future__ import annotations

from pathlib import Path

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.library.find import storage_url
from lynceus.storage.sql.address import parse_address
from lynceus.storage.sql.budgets import BudgetStore
from lynceus.storage.sql.storage import Storage
from lynceus.storage.user import current_user
from lynceus.trial.shared_budget import Payer, SharedBudget


def payer_of(job: Job, owner: str | None = None) -> Payer:
    """Who pays for the study of a job file: whom it names, else the `owner` that the study has, else who starts it."""
    return Payer(job.spec.project, job.spec.owner or owner or current_user())


def job_budgets(job: Job, storage: str | None) -> tuple[SharedBudget, ...]:
    """The budgets that the study of this job shares, or would share; none where there is no storage yet."""
    url = storage_url(storage, job)
    file = parse_address(url).file
    if file is not None and not Path(file).exists():
        return ()
    try:
        with Storage(url, create=False) as opened:
            owner = next((one.payer.owner for one in opened.studies() if one.name == job.name), None)
            return BudgetStore(opened).of(payer_of(job, owner))
    except InputError:
        return ()  # the command that uses the storage says what is wrong with it
