"""A recurring job of a server, with the words of a local one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lynceus.client.http import Http


class RemoteJob:
    """A recurring job that a server keeps; see `lynceus.RecurringJob`.

    job = lynceus.Client("http://127.0.0.1:8080").job("nightly")
    config = job.config(run_id="2026-11-18", input="120 GB")
    …  # run it with config["params"]; a canary must be stopped after config["timeout_s"]
    job.record("31m", run_id="2026-11-18", input="120 GB")
    """

    def __init__(self, name: str, http: Http) -> None:
        self.name, self._http = name, http

    def __repr__(self) -> str:
        return f"RemoteJob({self.name!r})"

    def status(self) -> dict[str, Any]:
        """Everything about it: versions, runs, findings, the next step, the audit."""
        found: dict[str, Any] = self._http.get("jobs", self.name)
        return found

    def config(self, *, run_id: str | None = None, input: float | str | None = None) -> dict[str, Any]:
        """What is in production; with `run_id`, what this one run is to have, which may be a canary."""
        if run_id is None:
            found: dict[str, Any] = self._http.get("jobs", self.name, "config")
            return found
        started: dict[str, Any] = self._http.post("jobs", self.name, "start", body={"run_id": run_id, "input": input})
        return started

    def record(
        self,
        runtime: float | str,
        *,
        run_id: str,
        input: float | str | None = None,
        cost: float | str | None = None,
        version: int | None = None,
        state: str = "COMPLETE",
        reason: str | None = None,
    ) -> bool:
        """Report a run; False if it was recorded before."""
        given = {
            "run_id": run_id,
            "runtime": runtime,
            "input": input,
            "cost": cost,
            "version": version,
            "state": state,
            "reason": reason,
        }
        return bool(self._http.post("jobs", self.name, "runs", body=given)["new"])

    def adopt(
        self, *, study: str | None = None, params: Mapping[str, Any] | None = None, by: str = "", reason: str = ""
    ) -> int:
        """Make a study's answer, or a configuration, the production configuration; returns the number of its version."""
        body = {"study": study, "params": None if params is None else dict(params), "by": by, "reason": reason}
        return int(self._http.post("jobs", self.name, "adopt", body=body)["version"])

    def rollback(self, to: int, *, by: str = "", reason: str = "") -> int:
        """Put an earlier version into production again."""
        body = {"to": to, "by": by, "reason": reason}
        return int(self._http.post("jobs", self.name, "rollback", body=body)["version"])

    def set(
        self,
        *,
        mode: str | None = None,
        allowance: float | str | None = None,
        deadline: float | str | None = None,
        late_chance: float | None = None,
        exclude: Sequence[str] | None = None,
        timezone: str | None = None,
        held: bool | None = None,
        by: str = "",
        reason: str = "",
    ) -> dict[str, Any]:
        """Change what Lynceus may do with it; returns all settings."""
        body = {
            "mode": mode,
            "allowance": allowance,
            "deadline": deadline,
            "late_chance": late_chance,
            "exclude": None if exclude is None else list(exclude),
            "timezone": timezone,
            "held": held,
            "by": by,
            "reason": reason,
        }
        found: dict[str, Any] = self._http.post("jobs", self.name, "settings", body=body)
        return found
