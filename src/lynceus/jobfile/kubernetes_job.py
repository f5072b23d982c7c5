"""Export the best configuration as a Kubernetes Job."""

from __future__ import annotations

import math
from typing import Any

from lynceus.errors import InputError
from lynceus.executors.kubernetes.options import KubernetesOptions, requested, selected_nodes
from lynceus.executors.placeholders import row_values
from lynceus.executors.resources import Resources
from lynceus.jobfile.command_line import without_variables
from lynceus.jobfile.deployment_export import dns_name, limits, yaml_text
from lynceus.jobfile.executor import executor_section
from lynceus.jobfile.prepared_study import PreparedStudy
from lynceus.jobfile.winner_export import variables_of
from lynceus.trial.text import clean_line

_ROOM = 2.0
"""How many times its limit on time a production run may take before Kubernetes ends it: a late run is still a run."""


def kubernetes_job(prepared: PreparedStudy, row: int, heading: str, image: str | None = None) -> str:
    """A Job that runs a configuration: its command, variables, resources, and what the section `executor` says of pods."""
    job, params = prepared.job, prepared.problem.space.point(row)
    found = executor_section(job)[1]
    options = found if isinstance(found, KubernetesOptions) else None
    name = dns_name(job.name)
    container: dict[str, Any] = {
        "name": "job",
        "image": image or _image(prepared, row, options),
        "command": ["/bin/sh", "-c", without_variables(job, params)],
        "env": [
            *({"name": key, "value": value} for key, value in variables_of(prepared, params).items()),
            *({"name": key, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}} for key in job.spec.secrets),
        ],
    }
    pod: dict[str, Any] = {"restartPolicy": "Never", "containers": [container]}
    labels = {"app": name}
    amounts = limits(prepared, row, params)
    if options is not None:
        labels |= _placed(prepared, row, options, container, pod, amounts)
    if amounts:
        container["resources"] = {"requests": dict(amounts), "limits": amounts}
    spec: dict[str, Any] = {"backoffLimit": 2, "template": {"metadata": {"labels": dict(labels)}, "spec": pod}}
    if math.isfinite(prepared.problem.deadline_s):
        pod["activeDeadlineSeconds"] = math.ceil(_ROOM * prepared.problem.deadline_s)
    document = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels}, "spec": spec}
    return f"# {clean_line(heading)}\n{yaml_text(document)}"


def _placed(
    prepared: PreparedStudy,
    row: int,
    options: KubernetesOptions,
    container: dict[str, Any],
    pod: dict[str, Any],
    amounts: dict[str, str],
) -> dict[str, str]:
    """Add what the section `executor` says of pods; returns further labels of the Job."""
    values = row_values(prepared.problem.space, row)
    asked = requested(options, values, Resources())
    for field, resource in (("cpus", "cpu"), ("memory", "memory"), ("gpus", options.gpu_resource)):
        if field in asked:
            amounts[resource] = asked[field]
    if options.workdir is not None:
        container["workingDir"] = options.workdir
    mounts = [
        {"name": f"volume-{place}", "mountPath": one.path, **({"readOnly": True} if one.read_only else {})}
        for place, one in enumerate(options.volumes)
    ]
    container["volumeMounts"] = mounts
    pod["volumes"] = [
        {"name": f"volume-{place}", "persistentVolumeClaim": {"claimName": one.claim}}
        if one.claim is not None
        else {"name": f"volume-{place}", "hostPath": {"path": one.host_path}}
        for place, one in enumerate(options.volumes)
    ]
    if nodes := selected_nodes(options, values):
        pod["nodeSelector"] = nodes
    if options.tolerations:
        pod["tolerations"] = options.tolerations
    return {"kueue.x-k8s.io/queue-name": asked["queue"]} if "queue" in asked else {}


def _image(prepared: PreparedStudy, row: int, options: KubernetesOptions | None) -> str:
    if options is None:
        raise InputError(
            f"export: which container image has the job of study {prepared.job.name!r}? Say it with --image registry/name:tag."
        )
    return requested(options, row_values(prepared.problem.space, row), Resources())["image"]
