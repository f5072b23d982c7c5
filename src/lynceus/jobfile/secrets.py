"""Secrets: read when a trial starts, passed to the job as environment variables, never stored."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from lynceus.errors import InputError
from lynceus.jobfile.job import Job

HIDDEN = "•••"
"""Replaces the value of a secret in output."""


def secrets_of(job: Job, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The values of a job's secrets by environment variable."""
    return {
        name: secret_value(job, ("secrets", name), source, environment) for name, source in job.spec.secrets.items()
    }


def hidden(text: str, secrets: Mapping[str, str]) -> str:
    """A text with the values of secrets replaced.

    >>> hidden("token=abcd1234", {"TOKEN": "abcd1234"})
    'token=•••'
    """
    for value in sorted(secrets.values(), key=len, reverse=True):
        # A value of one or two characters also occurs elsewhere, and hiding it there would reveal it.
        if len(value) > 2:
            text = text.replace(value, HIDDEN)
    return text


def secret_value(
    job: Job, path: tuple[str | int, ...], source: str, environment: Mapping[str, str] = os.environ
) -> str:
    """The value behind `env:NAME` or `file:PATH`; `path` is the position of the reference in the job file."""
    kind, _, where = source.partition(":")
    with job.at(*path):
        if kind == "env":
            if where not in environment:
                raise InputError(
                    f"the variable {where} is not set in your environment; set it before you run the study."
                )
            return environment[where]
        try:
            return (job.folder / Path(where).expanduser()).read_text(encoding="utf-8").rstrip("\r\n")
        except FileNotFoundError:
            raise InputError(f"the file {where} does not exist; create it or correct the reference.") from None
        except (OSError, UnicodeDecodeError):
            raise InputError(
                f"the file {where} cannot be read as UTF-8 text; correct the file or the reference."
            ) from None


def known_secrets(job: Job, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The secrets whose values can be read now: to hide them, not to use them."""
    found = {}
    for name, source in job.spec.secrets.items():
        try:
            found[name] = secret_value(job, ("secrets", name), source, environment)
        except InputError:
            continue
    return found
