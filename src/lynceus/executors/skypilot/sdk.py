"""A program that runs in SkyPilot's own environment and calls its SDK for `bridge`.

It needs only the standard library and `sky`, not Lynceus. It reads one JSON object per line, `{"id", "method", …}`, and answers in any
order, `{"id", "result"}` or `{"id", "error": {"kinds", "text"}}`. It ends when its standard input closes; SkyPilot's API server continues
with what was requested.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import re
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

END_MARK = "LYNCEUS-END 0"
"""The last line that the first node prints, see `node`."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_OPEN = ("PENDING", "RUNNING")


def _only_jobs() -> dict[str, Any]:
    """Only jobs keep a cluster up. By default SkyPilot also counts ssh sessions, even forgotten ones and those of other users."""
    try:
        return {"wait_for": importlib.import_module("sky.skylet.autostop_lib").AutostopWaitFor.JOBS}
    except (ImportError, AttributeError):
        return {}  # an older SkyPilot without this choice


class UnreadableAnswerError(Exception):
    """SkyPilot answered, but not what it should."""


class Sdk:
    """What Lynceus needs of SkyPilot: the methods that `bridge` can call."""

    def __init__(self, sky: Any, submitted: dict[str, threading.Event]) -> None:
        self._sky, self._submitted = sky, submitted
        """Cluster → set when SkyPilot's server has accepted the last launch."""

    def launch(self, cluster: str, task: dict[str, Any], idle_minutes: int, warm: bool) -> dict[str, Any]:
        """Submit a job to a new cluster, which takes itself down when idle, or to a warm one; returns its id."""
        try:
            made = self._made(task)
            if warm:
                request = self._sky.exec(made, cluster)
            else:
                request = self._sky.launch(
                    made, cluster, idle_minutes_to_autostop=idle_minutes, down=True, **_only_jobs()
                )
        finally:
            self._submitted[cluster].set()
        answer = self._sky.get(request)
        if not isinstance(answer, (tuple, list)) or not answer or not isinstance(answer[0], int):
            raise UnreadableAnswerError(f"a launch was answered with {str(answer)[:100]!r}")
        return {"job": answer[0]}

    def _made(self, task: dict[str, Any]) -> Any:
        """A task; whatever it is refused with is a `ValueError`, unlike an answer of the server that cannot be read."""
        try:
            return self._sky.Task.from_yaml_config(task)
        except (ValueError, TypeError, KeyError, AttributeError, AssertionError) as error:
            raise ValueError(str(error)) from error

    def ping(self) -> None:
        """Any answer of the API server, quickly."""
        getattr(self._sky, "api_info", self._sky.api_status)()

    def watch(self, cluster: str, job: int) -> dict[str, Any]:
        """Wait for a job's end; returns its log and, if the log is incomplete, its status."""
        text = io.StringIO()
        self._sky.tail_logs(cluster, job, follow=True, output_stream=text)
        if END_MARK in text.getvalue():
            return {"log": text.getvalue(), "status": ""}
        return {"log": text.getvalue(), "status": self._job_status(cluster, job)}

    def cancel(self, cluster: str, job: int) -> None:
        """Cancel a job; the cluster stays up."""
        self._sky.get(self._sky.cancel(cluster, job_ids=[job]))

    def down(self, cluster: str) -> None:
        """Take a cluster down, after cancelling requests that start it. Does nothing if it does not exist."""
        if cluster in self._submitted:
            self._submitted[cluster].wait()  # a launch that came after this would leave the cluster running
        launches = self._open_launches(cluster)
        if launches:
            self._sky.get(self._sky.api_cancel(launches))
        try:
            self._sky.get(self._sky.down(cluster))
        except ValueError as error:
            if type(error).__name__ != "ClusterDoesNotExist":
                raise

    def clusters(self, prefix: str) -> list[dict[str, Any]]:
        """All clusters whose names start with a prefix."""
        records = _records(self._sky.get(self._sky.status()))
        return [
            {"name": record["name"], "status": _status_name(record["status"])}
            for record in records
            if record["name"].startswith(prefix)
        ]

    def find(self, cluster: str, name: str) -> dict[str, Any]:
        """The state of a cluster and of a job with this name, for a run whose earlier requests are unknown after a crash."""
        records = _records(self._sky.get(self._sky.status([cluster])))
        if self._open_launches(cluster):
            return {"launching": True}
        if not records:
            past = any(record["name"] == cluster for record in _records(self._sky.get(self._sky.cost_report())))
            return {"launching": False, "status": "PAST" if past else ""}
        status = _status_name(records[0]["status"])
        job = self._job_named(cluster, name) if status == "UP" else None
        return {"launching": False, "status": status, "job": job}

    def _open_launches(self, cluster: str) -> list[str]:
        """Ids of open requests that start the cluster or a job on it."""
        return [
            one.request_id
            for one in self._sky.api_status()
            if one.cluster_name == cluster and _status_name(one.status) in _OPEN and _starts_job(one.name)
        ]

    def _job_named(self, cluster: str, name: str) -> int | None:
        jobs = self._sky.get(self._sky.queue(cluster))
        found = [_field(job, "job_id") for job in jobs if _field(job, "job_name") == name]
        return max(found, default=None)

    def _job_status(self, cluster: str, job: int) -> str:
        statuses = self._sky.get(self._sky.job_status(cluster, [job]))
        return next((_status_name(status) for status in statuses.values() if status is not None), "")


def _status_name(value: Any) -> str:
    """The name of a status such as `JobStatus.RUNNING`, which SkyPilot returns as an enum or as a text."""
    return str(getattr(value, "value", value)).rpartition(".")[2]


def _records(answer: Any) -> list[Any]:
    """A list of clusters: anything else would look like a cluster that is gone."""
    try:
        if isinstance(answer, list) and all(isinstance(one["name"], str) for one in answer):
            return answer
    except (TypeError, KeyError):
        pass
    raise UnreadableAnswerError(f"a question for clusters was answered with {str(answer)[:100]!r}")


def _field(record: Any, name: str) -> Any:
    return record[name] if isinstance(record, dict) else getattr(record, name)


def _starts_job(name: str) -> bool:
    return name.rpartition(".")[2] in ("launch", "exec")


def serve(sky: Any, source: Any, answer: Callable[[dict[str, Any]], None]) -> None:
    """Answer every line in its own thread: some calls last as long as a job."""
    submitted: dict[str, threading.Event] = {}
    for line in source:
        request = json.loads(line)
        if request["method"] == "launch":
            submitted[request["cluster"]] = threading.Event()
        threading.Thread(target=_answer, args=(Sdk(sky, submitted), request, answer), daemon=True).start()


def _answer(sdk: Sdk, request: dict[str, Any], answer: Callable[[dict[str, Any]], None]) -> None:
    number, method = request.pop("id"), request.pop("method")
    try:
        answer({"id": number, "result": getattr(sdk, method)(**request)})
    except BaseException as error:  # SystemExit, too: SkyPilot's SDK exits on some errors
        traceback.print_exc(file=sys.stderr)
        kinds = [kind.__name__ for kind in type(error).__mro__]
        answer({"id": number, "error": {"kinds": kinds, "text": _COLOUR.sub("", str(error))}})


def main() -> None:
    """Answer requests until standard input closes; SkyPilot's own messages go to standard error."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    lock = threading.Lock()

    def answer(record: dict[str, Any]) -> None:
        with lock:
            out.write(json.dumps(record, default=str) + "\n")
            out.flush()

    try:
        sky = importlib.import_module("sky")
    except ImportError as error:
        answer({"id": 0, "error": {"kinds": ["ImportError"], "text": str(error)}})
        return
    answer({"id": 0, "ready": True})
    serve(sky, sys.stdin, answer)
    os._exit(0)


if __name__ == "__main__":
    main()
