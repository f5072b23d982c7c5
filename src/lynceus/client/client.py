"""The client for a server of studies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lynceus.client.http import Http
from lynceus.client.job import RemoteJob
from lynceus.client.remote import RemoteStudy
from lynceus.errors import InputError


class Client:
    """A server that `lynceus dashboard` runs.

        client = lynceus.Client("http://127.0.0.1:8080", token="…")
        study = client.study("nightly-sessions")
        study.optimize(run_my_job)

    Requests are repeated for up to `patience_s` seconds while the server cannot be reached, and take effect once.
    The token may also be in the environment variable LYNCEUS_TOKEN. It is a named one (`lynceus token add`), the read token or the
    write token of the server; its role says which methods work.
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout_s: float = 60.0, patience_s: float = 120.0
    ) -> None:
        token = token or os.environ.get("LYNCEUS_TOKEN") or None
        self._http = Http(url, token, timeout_s, patience_s)

    def __repr__(self) -> str:
        return f"Client({self._http.url!r})"  # never the token

    def studies(self) -> list[dict[str, Any]]:
        """Every study: name, state, money, trials, best so far."""
        found: list[dict[str, Any]] = self._http.get("studies")["studies"]
        return found

    def study(self, name: str) -> RemoteStudy:
        """An existing study."""
        self._http.get("studies", name)
        return RemoteStudy(name, self._http)

    def jobs(self) -> list[dict[str, Any]]:
        """Every recurring job: version, mode, last run, what was saved."""
        found: list[dict[str, Any]] = self._http.get("jobs")["jobs"]
        return found

    def job(self, name: str) -> RemoteJob:
        """A recurring job; `adopt` makes one that does not exist yet."""
        return RemoteJob(name, self._http)

    def create_study(self, job: Mapping[str, Any] | str | Path) -> RemoteStudy:
        """A new study from a job file (a path, or its text) or from its fields as a mapping."""
        if isinstance(job, Mapping):
            made = self._http.post("studies", body=dict(job))
        else:
            made = self._http.post_raw("studies", data=_text(job).encode(), kind="application/yaml")
        return RemoteStudy(made["name"], self._http)

    def budgets(self) -> list[dict[str, Any]]:
        """Every budget of a project or a person, and what is used of it in this month."""
        found: list[dict[str, Any]] = self._http.get("budgets")["budgets"]
        return found

    def set_budget(self, account: str, amount: float | str) -> dict[str, Any]:
        """Let `project:NAME` or `owner:NAME` spend so much in a calendar month, such as '200 USD'; needs the role admin."""
        found: dict[str, Any] = self._http.put("budgets", account, body={"amount": amount})
        return found

    def remove_budget(self, account: str) -> None:
        """Let a project or a person spend without a shared limit; needs the role admin."""
        self._http.delete("budgets", account)

    def tokens(self) -> list[dict[str, Any]]:
        """Every named token, without its secret; needs the role admin."""
        found: list[dict[str, Any]] = self._http.get("tokens")["tokens"]
        return found

    def add_token(self, name: str, role: str, *, expires: float | str | None = None) -> str:
        """Make a token with the role viewer, runner or admin, and return its secret, which nobody can read again; needs the role admin."""
        return str(self._http.post("tokens", body={"name": name, "role": role, "expires": expires})["token"])

    def revoke_token(self, name: str) -> None:
        """Let the server accept a token no longer; needs the role admin."""
        self._http.delete("tokens", name)


def _text(job: str | Path) -> str:
    """The text of a job file; a string of one line is a path."""
    if isinstance(job, str) and "\n" in job:
        return job
    try:
        return Path(job).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"create_study: {str(job)!r} cannot be read: {error}; give a job file, or its text.") from None
