"""Which page of the documentation explains a field of the job file, for messages about mistakes in it."""

from __future__ import annotations

from collections.abc import Sequence

_JOB, _SEARCH = "job-file.md#the-job", "job-file.md#objective-and-constraints"
_BUDGET = "job-file.md#budget-and-trials"
PAGES = {
    "run": _JOB,
    "shell": _JOB,
    "setup": _JOB,
    "workdir": _JOB,
    "envs": _JOB,
    "secrets": _JOB,
    "name": _JOB,
    "project": "teams.md",
    "owner": "teams.md",
    "serve": "serving.md#the-section-serve",
    "resources": "prices.md",
    "billing": "job-file.md#the-search-space",
    "prices": "prices.md#catalogs",
    "executor": "executors.md",
    "space": "job-file.md#the-search-space",
    "derived": "job-file.md#the-search-space",
    "forbid": "job-file.md#the-search-space",
    "price": "job-file.md#the-search-space",
    "objective": _SEARCH,
    "constraints": _SEARCH,
    "metrics": _SEARCH,
    "baseline": "job-file.md#savings",
    "future": "job-file.md#savings",
    "history": "history.md",
    "family": "history.md",
    "input": "input-size.md",
    "probe": "job-file.md#probe",
    "fraction": "subsampling.md",
    "budget": _BUDGET,
    "trial": _BUDGET,
    "policy": "policy.md",
    "seed": _BUDGET,
    "storage": "durability.md",
    "notify": "job-file.md#notifications",
    "tracking": "integrations.md#mlflow-weights--biases",
}
"""By top-level field; `job-file.md` explains the others."""


def page_of_field(path: Sequence[str | int]) -> str:
    """The page about the field at a path.

    >>> page_of_field(("budget", "cost")), page_of_field(())
    ('job-file.md#budget-and-trials', 'job-file.md')
    """
    return PAGES.get(str(path[0]), "job-file.md") if path else "job-file.md"
