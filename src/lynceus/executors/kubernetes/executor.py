"""The Kubernetes executor: launch, collect, cancel, clean up."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any, cast

from lynceus.errors import InfrastructureError, InputError
from lynceus.executors import run_directory as runs
from lynceus.executors.command import absent_variables, environment
from lynceus.executors.interface import Outage, OwnedResource, Request, ResourceKind
from lynceus.executors.kubernetes.client import KubernetesClient, RefusedError, UnreachableError, require_client
from lynceus.executors.kubernetes.objects import (
    ENVIRONMENT,
    NEVER_STARTS,
    KubeJob,
    KubePod,
    job_name,
    job_object,
    why_ended,
)
from lynceus.executors.kubernetes.options import KubernetesOptions, check_options, requested, selected_nodes
from lynceus.executors.placeholders import row_values
from lynceus.executors.plugin import ExecutorContext, Plugin
from lynceus.executors.polling import PolledAnswer, RetryPauses
from lynceus.executors.resources import Resources
from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.bundle import write_runner
from lynceus.executors.supervisor.outcome_record import OutcomeRecord, Reason, failed, not_started, timed_out
from lynceus.executors.supervisor.status import last_heartbeat_s, read_outcome
from lynceus.trial.outcome import Outcome

_NOTE = "kubernetes.json"
"""In a run directory: whether the Job was created, since when there are problems, and why Lynceus deletes it."""
_FILE_SYSTEM_DELAY_S = 3.0
"""How long after a Job's end its outcome may still be on its way through a network file system."""
_CANCEL_S = 30.0
"""A supervisor that has not stopped its run this long after the grace period is ended by Kubernetes."""


class KubernetesExecutor:
    """Runs a job in pods. Run directories lie on a volume; `root/study-identity/number` is the ticket."""

    def __init__(self, context: ExecutorContext, options: KubernetesOptions) -> None:
        self._context, self._options, self._problem = context, options, context.problem
        self._root = context.root.resolve()
        check_options(options, self._problem.space)
        _check_root(self._root, options)
        self._client = KubernetesClient(options)
        self._seen = PolledAnswer(self._look, options.poll, (UnreachableError, RefusedError, InputError))
        self._pauses = RetryPauses()
        self._ended_s: dict[str, float] = {}
        """Ticket → when its Job was first seen to have ended."""
        self._cancelled_s: dict[str, float] = {}

    def outage(self) -> Outage | None:
        """What the API server does not answer, and since when."""
        return self._client.outages.current()

    def close(self) -> None:
        """Close connections; runs continue."""
        self._client.close()

    def launch(self, request: Request) -> str:
        """Prepare the run directory, by which the run can be found again; then create its Job. `collect` retries."""
        directory = runs.directory_of(self._root, request)
        runs.prepare(directory, request, self._context.job, cwd=self._options.workdir)
        ticket = str(directory)
        if not _read_note(ticket).get("created") and not _has_begun(ticket):
            self._create(ticket)
        return ticket

    def collect(self, ticket: str) -> Outcome | None:
        """What the supervisor recorded, or, if it could not, what Kubernetes says."""
        record = read_outcome(ticket)
        request = runs.read_request(ticket)
        if record is None or record.get("outside"):
            record = self._check(ticket, request, record)
        if record is None:
            return None
        Path(ticket, ENVIRONMENT).unlink(missing_ok=True)
        self._pauses.forget(ticket)
        for kept in (self._ended_s, self._cancelled_s):
            kept.pop(ticket, None)
        return runs.to_outcome(self._problem, request, record)

    def cancel(self, ticket: str) -> None:
        """Ask the supervisor to stop the run, or not to start it; `collect` deletes a Job whose pod has not started."""
        with contextlib.suppress(FileNotFoundError):
            Path(ticket, files.CANCEL).touch()
            if self._seen.is_answering:
                self._seen.expire()

    def owned_resources(self) -> list[OwnedResource]:
        """Jobs that have not ended, of every study, and run directories below the root."""
        active = [one.owned() for one in self._client.jobs().values() if not one.ended]
        return [*(one for one in active if one is not None), *runs.run_directories(self._root)]

    def remove(self, resource: OwnedResource) -> None:
        """Delete a Job with its pods, or a directory."""
        if resource.kind is ResourceKind.JOB:
            self._client.delete(resource.name)
            self._seen.expire()
        else:
            runs.remove_local(resource)

    # Creating

    def _create(self, ticket: str) -> None:
        """Create the Job, or note since when that fails. `InputError` if it can never succeed."""
        request, note = runs.read_request(ticket), _read_note(ticket)
        values = row_values(self._problem.space, request["row"])
        given = self._context.resources
        asked = requested(self._options, values, Resources() if given is None else given(request["row"]))
        runner = str(write_runner(self._root))
        body = job_object(self._options, asked, selected_nodes(self._options, values), request, runner, ticket)
        try:
            self._write_environment(Path(ticket, ENVIRONMENT), request)
            self._client.create(body)
        except OSError as error:
            raise InfrastructureError(f"the run directory {ticket} cannot be written: {error.strerror}") from error
        except (RefusedError, UnreachableError) as error:
            self._pauses.failed(ticket, answered=isinstance(error, RefusedError))
            _write_note(ticket, {**note, "since_s": note.get("since_s", time.time()), "trouble": str(error)})
            return
        except InputError:
            Path(ticket, ENVIRONMENT).unlink(missing_ok=True)
            raise
        _write_note(ticket, {"created": True, "created_s": time.time()})
        self._pauses.forget(ticket)
        self._seen.expire()

    def _create_later(self, ticket: str, note: dict[str, Any]) -> OutcomeRecord | None:
        """Try again when it is time. Returns an outcome if the run was cancelled, or if `patience` is exhausted."""
        if _is_cancelled(ticket) and not _has_begun(ticket):
            if "since_s" in note and not self._is_absent(ticket):
                return None
            return runs.settle(ticket, not_started("cancelled before it was submitted", reason="user"))
        if time.time() - note.get("since_s", time.time()) > self._options.patience:
            return runs.settle(
                ticket, not_started(f"not started: {note.get('trouble', 'its Job could not be created')}")
            )
        if self._pauses.is_due(ticket):
            try:
                self._create(ticket)
            except InputError as error:
                return runs.settle(ticket, not_started(str(error), reason="job"))
        return None

    def _is_absent(self, ticket: str) -> bool:
        """Whether the API server says that a run has no Job; a Job that it has after all is noted."""
        seen = self._seen.get()
        if seen is None:
            return False
        if job_name(runs.read_request(ticket)) in seen[0]:
            _write_note(ticket, {"created": True, "created_s": time.time()})
            return False
        return True

    def _write_environment(self, path: Path, request: dict[str, Any]) -> None:
        """Write the job's own environment to a file that only its owner can read; the image brings the rest."""
        job = self._context.job
        given = {
            "environment": environment(job, request, {}),
            "secrets": list(job.secrets.values()),
            "without": absent_variables(job, request["params"]),
        }
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(json.dumps(given).encode("utf-8", "surrogateescape"))

    # Watching

    def _check(self, ticket: str, request: dict[str, Any], record: OutcomeRecord | None) -> OutcomeRecord | None:
        note = _read_note(ticket)
        if not note.get("created") and record is None:
            return self._create_later(ticket, note)
        seen = self._seen.get()
        if seen is None:
            return None  # the API server is down; the run continues without it
        name = job_name(request)
        job, pod = seen[0].get(name), seen[1].get(name)
        if job is not None and not job.ended:
            self._ended_s.pop(ticket, None)
            if record is None:
                self._watch(ticket, request, note, job, pod)
            return None
        since = self._ended_s.setdefault(ticket, time.monotonic())
        if record is None and time.monotonic() - since < _FILE_SYSTEM_DELAY_S:
            os.utime(ticket)  # makes network file systems refresh their view of the directory
            return None
        return self._settle(ticket, request, note, job, pod)

    def _watch(
        self, ticket: str, request: dict[str, Any], note: dict[str, Any], job: KubeJob, pod: KubePod | None
    ) -> None:
        """Delete a Job that can never start, waits too long, or does not stop when it is cancelled."""
        waited, limit = time.time() - note.get("created_s", time.time()), self._options.max_queue
        if _has_begun(ticket):
            if _is_cancelled(ticket):
                since = self._cancelled_s.setdefault(ticket, time.monotonic())
                if time.monotonic() - since > request["grace_s"] + _CANCEL_S:
                    self._delete(job.name)
        elif pod is not None and pod.waiting in NEVER_STARTS:
            sentence = f"its container can never start (Kubernetes: {pod.waiting} {pod.message})"
            self._give_up(ticket, note, job, "job", sentence)
        elif limit is not None and waited > limit:
            said = (pod.waiting or pod.phase) if pod is not None else "suspended" if job.suspended else "no pod"
            self._give_up(
                ticket, note, job, "infra", f"no capacity: its pod waited {waited:.0f} s (Kubernetes: {said})"
            )
        elif _is_cancelled(ticket) and (pod is None or pod.phase == "Pending"):
            self._delete(job.name)

    def _give_up(self, ticket: str, note: dict[str, Any], job: KubeJob, reason: Reason, sentence: str) -> None:
        """Delete a Job whose pod has not started; the run is settled with this sentence when it is gone."""
        _write_note(ticket, {**note, "ending": [reason, sentence]})
        self._delete(job.name)

    def _delete(self, name: str) -> None:
        with contextlib.suppress(UnreachableError, RefusedError):
            self._client.delete(name)
            self._seen.expire()

    def _settle(
        self, ticket: str, request: dict[str, Any], note: dict[str, Any], job: KubeJob | None, pod: KubePod | None
    ) -> OutcomeRecord:
        """Record what Kubernetes says about a run whose supervisor recorded nothing, or not the cause."""
        reason, sentence = why_ended(job, pod, ticket, self._options.python)
        if job is None and self._is_forgotten(ticket):
            reason, sentence = "infra", "its Job ended without an outcome, and Kubernetes no longer keeps why"
        record = read_outcome(ticket)
        if record is not None:
            if record.get("outside"):
                known = {"reason": reason, "detail": sentence} if reason in ("preempted", "oom", "user") else {}
                record = cast("OutcomeRecord", {**record, **known, "outside": False})
                files.write_atomically(os.path.join(ticket, files.OUTCOME), record)
            return record
        started = files.read_json(os.path.join(ticket, files.STARTED))
        seconds = 0.0 if started is None else last_heartbeat_s(ticket, started)
        if _is_cancelled(ticket) and reason in ("infra", "user"):
            reason, sentence = "user", f"cancelled after {seconds:.1f} s"
        if "ending" in note and started is None:
            reason, sentence = note["ending"]
        Path(ticket, files.CANCEL).touch()  # a supervisor that is still alive, on a node that was lost, stops its run
        why = cast("Reason", reason)
        if started is None:
            return runs.settle(ticket, not_started(sentence, reason=why))
        if (job is not None and job.reason == "DeadlineExceeded") or (
            pod is not None and pod.message == "DeadlineExceeded"
        ):
            return runs.settle(ticket, timed_out(max(seconds, request["cap_s"] or 0.0)))
        return runs.settle(ticket, failed(sentence, reason=why, seconds=seconds))

    def _is_forgotten(self, ticket: str) -> bool:
        """Whether a run ended so long ago that Kubernetes has removed its Job: nobody has deleted it then."""
        try:
            last_s = os.path.getmtime(os.path.join(ticket, files.ALIVE))
        except OSError:  # it has not begun
            return False
        return time.time() - last_s > self._options.keep

    def _look(self) -> tuple[dict[str, KubeJob], dict[str, KubePod]]:
        return self._client.jobs(), self._client.pods()


def _check_root(root: Path, options: KubernetesOptions) -> None:
    shared = [one.path for one in options.volumes if not one.read_only]
    if not any(root.is_relative_to(path) for path in shared):
        raise InputError(
            f"executor: the run directories {root} lie on no volume of the pods ({', '.join(shared) or 'all are read-only'}); set "
            "executor.run_directory to a folder below one of them."
        )


def _read_note(ticket: str) -> dict[str, Any]:
    return files.read_json(os.path.join(ticket, _NOTE)) or {}


def _write_note(ticket: str, note: dict[str, Any]) -> None:
    files.write_atomically(os.path.join(ticket, _NOTE), note)


def _has_begun(ticket: str) -> bool:
    return any(os.path.exists(os.path.join(ticket, name)) for name in (files.STARTED, files.OUTCOME))


def _is_cancelled(ticket: str) -> bool:
    return os.path.exists(os.path.join(ticket, files.CANCEL))


def _make(context: ExecutorContext, options: KubernetesOptions) -> KubernetesExecutor:
    require_client()
    return KubernetesExecutor(context, options)


PLUGIN = Plugin(
    _make,
    KubernetesOptions,
    check_options,
    about="Jobs of a Kubernetes cluster, with run directories on a shared volume",
    require=require_client,
)
