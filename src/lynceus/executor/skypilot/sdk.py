"""The far side of the bridge: runs in SkyPilot's own environment and calls its SDK.

It needs no Lynceus, only the standard library and `sky`. One JSON object per line comes in, `{"id", "do", …}`; answers go out in any
order, `{"id", "result"}` or `{"id", "error": {"kinds", "text"}}`. It ends when its standard input closes; what SkyPilot's API server was
asked for goes on there.
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
"""What the first node says when it has told everything; see `node`."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_OPEN = ("PENDING", "RUNNING")


def _jobs_alone() -> dict[str, Any]:
    """Only jobs keep a cluster up. SkyPilot also counts ssh sessions, even those that were forgotten or are of others on the node."""
    try:
        return {"wait_for": importlib.import_module("sky.skylet.autostop_lib").AutostopWaitFor.JOBS}
    except (ImportError, AttributeError):
        return {}  # an older SkyPilot, which has no such choice


class Sdk:
    """What Lynceus wants of SkyPilot, one method per word of the protocol."""

    def __init__(self, sky: Any, asked_for: dict[str, threading.Event]) -> None:
        self._sky, self._asked_for = sky, asked_for
        """By cluster: whether SkyPilot's server has taken the launch that we were told to ask for last."""

    def hello(self) -> dict[str, Any]:
        """The version of SkyPilot, and the API server that answers."""
        return {"version": self._sky.__version__, "server": self._sky.api_info().get("version", "")}

    def launch(self, cluster: str, task: dict[str, Any], idle_minutes: int, warm: bool) -> dict[str, Any]:
        """Start a cluster that takes itself down when idle, or use a warm one, for one job; returns its number."""
        try:
            made = self._sky.Task.from_yaml_config(task)
            if warm:
                request = self._sky.exec(made, cluster)
            else:
                request = self._sky.launch(
                    made, cluster, idle_minutes_to_autostop=idle_minutes, down=True, **_jobs_alone()
                )
        finally:
            self._asked_for[cluster].set()
        job, _ = self._sky.get(request)
        return {"job": job}

    def watch(self, cluster: str, job: int) -> dict[str, Any]:
        """Wait for a job's end; returns what it printed and, when it did not say that this is all, what became of it."""
        text = io.StringIO()
        self._sky.tail_logs(cluster, job, follow=True, output_stream=text)
        if END_MARK in text.getvalue():
            return {"log": text.getvalue(), "status": ""}
        return {"log": text.getvalue(), "status": self._job_status(cluster, job)}

    def cancel(self, cluster: str, job: int) -> None:
        """End a job; the cluster lives on."""
        self._sky.get(self._sky.cancel(cluster, job_ids=[job]))

    def down(self, cluster: str) -> None:
        """End a cluster, and first whatever is about to start it; done already is done."""
        if cluster in self._asked_for:
            self._asked_for[cluster].wait()  # a launch that comes after the end would never be ended
        coming = self._coming(cluster)
        if coming:
            self._sky.get(self._sky.api_cancel(coming))
        try:
            self._sky.get(self._sky.down(cluster))
        except ValueError as error:
            if type(error).__name__ != "ClusterDoesNotExist":
                raise

    def clusters(self, prefix: str) -> list[dict[str, Any]]:
        """All clusters whose names begin so."""
        records = self._sky.get(self._sky.status())
        return [
            {"name": record["name"], "status": _word(record["status"]), "launched_s": record.get("launched_at")}
            for record in records
            if record["name"].startswith(prefix)
        ]

    def find(self, cluster: str, name: str) -> dict[str, Any]:
        """What is known of a cluster and of a job by its name: after a crash, nobody remembers what was asked for."""
        records = self._sky.get(self._sky.status([cluster]))
        if self._coming(cluster):
            return {"launching": True}
        if not records:
            past = any(record["name"] == cluster for record in self._sky.get(self._sky.cost_report()))
            return {"launching": False, "status": "PAST" if past else ""}
        status = _word(records[0]["status"])
        job = self._job_named(cluster, name) if status == "UP" else None
        return {"launching": False, "status": status, "job": job}

    def _coming(self, cluster: str) -> list[str]:
        """Requests under way that start the cluster or a job on it."""
        return [
            one.request_id
            for one in self._sky.api_status()
            if one.cluster_name == cluster and _word(one.status) in _OPEN and _launches(one.name)
        ]

    def _job_named(self, cluster: str, name: str) -> int | None:
        jobs = self._sky.get(self._sky.queue(cluster))
        found = [_field(job, "job_id") for job in jobs if _field(job, "job_name") == name]
        return max(found, default=None)

    def _job_status(self, cluster: str, job: int) -> str:
        statuses = self._sky.get(self._sky.job_status(cluster, [job]))
        return next((_word(status) for status in statuses.values() if status is not None), "")


def _word(value: Any) -> str:
    """`JobStatus.RUNNING`, or its name: whichever SkyPilot gives."""
    return str(getattr(value, "value", value)).rpartition(".")[2]


def _field(record: Any, name: str) -> Any:
    return record[name] if isinstance(record, dict) else getattr(record, name)


def _launches(name: str) -> bool:
    return name.rpartition(".")[2] in ("launch", "exec")


def serve(sky: Any, source: Any, answer: Callable[[dict[str, Any]], None]) -> None:
    """Answer every line in a thread of its own: some calls last as long as a job."""
    asked_for: dict[str, threading.Event] = {}
    for line in source:
        asked = json.loads(line)
        if asked["do"] == "launch":
            asked_for[asked["cluster"]] = threading.Event()
        threading.Thread(target=_answer, args=(Sdk(sky, asked_for), asked, answer), daemon=True).start()


def _answer(sdk: Sdk, asked: dict[str, Any], answer: Callable[[dict[str, Any]], None]) -> None:
    number, word = asked.pop("id"), asked.pop("do")
    try:
        answer({"id": number, "result": getattr(sdk, word)(**asked)})
    except BaseException as error:  # SystemExit, too: SkyPilot's SDK ends its process for some mistakes
        traceback.print_exc(file=sys.stderr)
        kinds = [kind.__name__ for kind in type(error).__mro__]
        answer({"id": number, "error": {"kinds": kinds, "text": _COLOUR.sub("", str(error))}})


def main() -> None:
    """Keep what SkyPilot prints out of the answers; end with whoever asks."""
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
    serve(sky, sys.stdin, answer)
    os._exit(0)


if __name__ == "__main__":
    main()
