"""The Job of a run, and what Kubernetes says about it. Pure functions: plain dictionaries that the official client sends as they are."""

from __future__ import annotations

import hashlib
import math
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lynceus.executors.interface import OwnedResource, ResourceKind
from lynceus.executors.kubernetes.options import KubernetesOptions
from lynceus.executors.supervisor.commands import EXIT_DISK_FULL, EXIT_NO_DIRECTORY

ENVIRONMENT = "environment.json"
"""The job's environment, readable by its owner only. It is in the run directory from the launch until the supervisor has read it."""
MANAGED_BY = {"app.kubernetes.io/managed-by": "lynceus"}
KUEUE = "kueue.x-k8s.io/queue-name"
_STUDY, _IDENTITY, _NUMBER, _RUN = "lynceus/study", "lynceus/identity", "lynceus/number", "lynceus/run"
_SLACK_S = 600
"""How much later than the supervisor Kubernetes itself stops a pod: the image may have to be pulled first."""
_STOPPING_S = 10
DISRUPTED = "DisruptionTarget"
"""The condition of a pod that Kubernetes itself ends: eviction, preemption, a drained or lost node."""


def job_name(request: Mapping[str, Any]) -> str:
    """The name of a Job: the same for the same run, so that it is created once, and readable.

    >>> job_name({"study": "a/B_c", "identity": "1f", "number": 3, "run": "c0ffee"})
    'lynceus-a-b-c-3-c8e94b0f59'
    """
    study = re.sub(r"[^a-z0-9]+", "-", str(request["study"]).lower()).strip("-")[:30].strip("-") or "study"
    mark = "\0".join(str(request[name]) for name in ("study", "identity", "number", "run"))
    return f"lynceus-{study}-{request['number']}-{hashlib.sha256(mark.encode()).hexdigest()[:10]}"


def job_object(
    options: KubernetesOptions,
    asked: Mapping[str, str],
    nodes: Mapping[str, str],
    request: Mapping[str, Any],
    runner: str,
    directory: str,
) -> dict[str, Any]:
    """The Job of a run. It contains no secrets: many people may read Jobs."""
    labels = {**options.labels, **MANAGED_BY, _IDENTITY: _label(request["identity"]), _NUMBER: str(request["number"])}
    labels |= {_RUN: _label(request["run"])}
    queued = {KUEUE: asked["queue"]} if "queue" in asked else {}
    pod = {
        "restartPolicy": "Never",
        "containers": [_container(options, asked, runner, directory)],
        "volumes": [_volume(place, one.claim, one.host_path) for place, one in enumerate(options.volumes)],
        "terminationGracePeriodSeconds": math.ceil(request["grace_s"]) + _STOPPING_S,
        "securityContext": {"runAsUser": os.getuid(), "runAsGroup": os.getgid()},
        "automountServiceAccountToken": options.service_account is not None,
        **({"nodeSelector": dict(nodes)} if nodes else {}),
        **({"tolerations": options.tolerations} if options.tolerations else {}),
        **({"serviceAccountName": options.service_account} if options.service_account else {}),
        **({"priorityClassName": asked["priority_class"]} if "priority_class" in asked else {}),
        **({"imagePullSecrets": [{"name": name} for name in options.pull_secrets]} if options.pull_secrets else {}),
    }
    if request["cap_s"] is not None:
        # Of the pod, not of the Job: that one would also count the time in a queue.
        pod["activeDeadlineSeconds"] = math.ceil(request["cap_s"] + request["grace_s"]) + _SLACK_S
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(request),
            "namespace": options.namespace,
            "labels": {**labels, **queued},
            "annotations": {_STUDY: str(request["study"]), _IDENTITY: str(request["identity"])},
        },
        "spec": {
            "backoffLimit": 0,
            "ttlSecondsAfterFinished": math.ceil(options.keep),
            "podFailurePolicy": {
                "rules": [{"action": "FailJob", "onPodConditions": [{"type": DISRUPTED, "status": "True"}]}]
            },
            "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
        },
    }


def _container(options: KubernetesOptions, asked: Mapping[str, str], runner: str, directory: str) -> dict[str, Any]:
    amounts = {"cpu": asked.get("cpus"), "memory": asked.get("memory"), options.gpu_resource: asked.get("gpus")}
    known = {name: amount for name, amount in amounts.items() if amount is not None}
    mounts = [
        {"name": f"volume-{place}", "mountPath": one.path, **({"readOnly": True} if one.read_only else {})}
        for place, one in enumerate(options.volumes)
    ]
    return {
        "name": "job",
        "image": asked["image"],
        "command": ["/bin/sh", "-c", pod_script(options.python, runner, directory)],
        "volumeMounts": mounts,
        # Requests and limits are equal: a trial has what it is charged for, whatever else runs on its node.
        **({"resources": {"requests": known, "limits": dict(known)}} if known else {}),
    }


def _volume(place: int, claim: str | None, host_path: str | None) -> dict[str, Any]:
    name = f"volume-{place}"
    if claim is not None:
        return {"name": name, "persistentVolumeClaim": {"claimName": claim}}
    return {"name": name, "hostPath": {"path": host_path}}


def pod_script(python: str, runner: str, directory: str) -> str:
    """What the container runs: the supervisor, then `state`, which records the outcome if the supervisor was killed.

    The shell is process 1 of the container, so it hands on the signal with which Kubernetes ends a pod.
    """
    place = shlex.quote(directory)
    start = f"{shlex.quote(python)} -I -S {shlex.quote(runner)}"
    return f"""[ -e {place}/request.json ] && [ -e {shlex.quote(runner)} ] || exit {EXIT_NO_DIRECTORY}
[ -e {place}/cancel ] && exit 0
{start} run {place} {place}/{ENVIRONMENT} &
supervisor=$!
trap 'kill -TERM $supervisor 2> /dev/null' TERM INT HUP
while true; do
  wait $supervisor
  code=$?
  kill -0 $supervisor 2> /dev/null || break
done
[ -e {place}/outcome.json ] || {start} state {place} > /dev/null
exit $code
"""


@dataclass(frozen=True, slots=True)
class KubeJob:
    """A Job as the API server shows it."""

    name: str
    uid: str
    active: int
    """Pods that are pending or running."""
    ended: bool
    reason: str
    """Why it failed, in the words of Kubernetes; empty if it did not."""
    message: str
    suspended: bool
    """Whether it waits for a queue such as Kueue's."""
    study: str
    identity: str
    number: str

    @property
    def disrupted(self) -> bool:
        """Whether Kubernetes itself ended the pod."""
        return self.reason == "PodFailurePolicy" and DISRUPTED in self.message

    def owned(self) -> OwnedResource | None:
        """The Job as a resource; None if its labels are not ours."""
        if not self.number.isdigit():
            return None
        detail = "Kubernetes Job, suspended" if self.suspended else "Kubernetes Job"
        return OwnedResource(ResourceKind.JOB, self.name, self.study, self.identity, int(self.number), detail)


@dataclass(frozen=True, slots=True)
class KubePod:
    """A pod as the API server shows it."""

    phase: str
    node: str
    waiting: str
    """Why its container has not started, in the words of Kubernetes."""
    message: str
    terminated: str
    """Why its container ended, such as OOMKilled; empty while it has not."""
    exit_code: int
    disruption: str
    """Why Kubernetes itself ends it, such as PreemptionByScheduler; empty if it does not."""


def job_of(found: Any) -> KubeJob:
    """From the official client's `V1Job`."""
    metadata, status = found.metadata, found.status
    conditions = {one.type: one for one in (status.conditions or ()) if one.status == "True"} if status else {}
    failed = conditions.get("Failed") or conditions.get("FailureTarget")
    labels, notes = metadata.labels or {}, metadata.annotations or {}
    return KubeJob(
        metadata.name,
        metadata.uid or "",
        (status.active or 0) if status else 0,
        "Failed" in conditions or "Complete" in conditions,
        (failed.reason or "") if failed else "",
        (failed.message or "") if failed else "",
        bool(found.spec.suspend),
        notes.get(_STUDY, ""),
        notes.get(_IDENTITY, ""),
        labels.get(_NUMBER, ""),
    )


def pod_of(found: Any) -> KubePod:
    """From the official client's `V1Pod`."""
    status = found.status
    states = [one.state for one in (status.container_statuses or ()) if one.state]
    waiting = next((one.waiting for one in states if one.waiting), None)
    ended = next((one.terminated for one in states if one.terminated), None)
    conditions = {one.type: one for one in status.conditions or ()}
    unscheduled = conditions.get("PodScheduled")
    disruption = conditions.get(DISRUPTED)
    blocked = unscheduled if unscheduled is not None and unscheduled.status == "False" else None
    return KubePod(
        status.phase or "",
        found.spec.node_name or "",
        (waiting.reason or "") if waiting else (blocked.reason or "") if blocked else "",
        (waiting.message or "") if waiting else (blocked.message or "") if blocked else status.reason or "",
        (ended.reason or "") if ended else "",
        int(ended.exit_code) if ended else 0,
        (disruption.reason or DISRUPTED) if disruption is not None and disruption.status == "True" else "",
    )


NEVER_STARTS = frozenset({"InvalidImageName", "CreateContainerConfigError", "ErrImageNeverPull"})
"""Reasons of a waiting container that do not go away by themselves."""


def why_ended(job: KubeJob | None, pod: KubePod | None, ticket: str, python: str) -> tuple[str, str]:
    """The reason and a sentence for a run whose supervisor recorded nothing."""
    node = pod.node if pod is not None and pod.node else "no node"
    if job is None:
        return "user", "its Job was deleted in Kubernetes"
    if job.disrupted or (pod is not None and pod.disruption):
        cause = pod.disruption if pod is not None and pod.disruption else "a disruption"
        return "preempted", f"Kubernetes ended its pod on {node} ({cause})"
    if pod is not None and pod.terminated == "OOMKilled":
        return "oom", f"out of memory, according to Kubernetes ({node})"
    if pod is not None and pod.exit_code == EXIT_NO_DIRECTORY:
        return (
            "infra",
            f"its pod cannot see the run directory {ticket}; mount the volume that holds it under the same path",
        )
    if pod is not None and pod.exit_code == EXIT_DISK_FULL:
        return "infra", f"the disk of the run directory {ticket} is full, according to {node}; free some space"
    if pod is not None and pod.exit_code in (126, 127, 128):
        return (
            "infra",
            f"its image has no {python} for the supervisor; set executor.python to one of version 3.8 or later",
        )
    said = job.reason or (pod.terminated if pod is not None else "") or "no reason"
    return "infra", f"its pod on {node} ended without an outcome (Kubernetes: {said})"


def _label(text: object) -> str:
    """A text as the value of a label."""
    return re.sub(r"[^A-Za-z0-9_.\-]", "-", str(text))[:63].strip("-_.")
