"""Secrets: read when a trial starts, passed to the job as environment variables, never stored."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lynceus.errors import InputError
from lynceus.executors.supervisor.masking import SHORTEST_SECRET, Secrets
from lynceus.jobfile.job import Job
from lynceus.space.user_file import read_file

HIDDEN = "•••"
"""Replaces the value of a secret in output."""
_LONGEST_SECRET = 1 << 16
"""Bytes of a file with a secret; the system allows not much more in one variable."""


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
    data = text.encode("utf-8", "replace")
    for form in Secrets(value.encode("utf-8", "surrogateescape") for value in secrets.values()).forms:
        data = data.replace(form, HIDDEN.encode())
    return data.decode("utf-8", "replace")


def secret_value(
    job: Job, path: tuple[str | int, ...], source: str, environment: Mapping[str, str] = os.environ
) -> str:
    """The value behind `env:NAME` or `file:PATH`; `path` is the position of the reference in the job file."""
    with job.at(*path):
        value = _read(job, source, environment)
        if "\0" in value:
            raise InputError("its value has a NUL byte, which environment variables cannot hold; correct it.")
        if path[0] == "secrets" and len(value) < SHORTEST_SECRET:
            raise InputError(
                f"its value has fewer than {SHORTEST_SECRET} characters, too few to hide it in outputs; "
                "use a longer one, or write it in envs if it need not be hidden."
            )
        return value


def _read(job: Job, source: str, environment: Mapping[str, str]) -> str:
    kind, _, where = source.partition(":")
    if kind == "env":
        if where not in environment:
            raise InputError(f"the variable {where} is not set in your environment; set it before you run the study.")
        return environment[where]
    try:
        return read_file(job.file(where), _LONGEST_SECRET).decode("utf-8").rstrip("\r\n")
    except FileNotFoundError:
        raise InputError(f"the file {where} does not exist; create it or correct the reference.") from None
    except (OSError, UnicodeDecodeError):
        raise InputError(f"the file {where} cannot be read as UTF-8 text; correct the file or the reference.") from None


def known_secrets(job: Job, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The secrets whose values can be read now: to hide them, not to use them."""
    found = {}
    for name, source in job.spec.secrets.items():
        try:
            found[name] = secret_value(job, ("secrets", name), source, environment)
        except InputError:
            continue
    return found
