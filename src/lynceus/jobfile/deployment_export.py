"""Export the best server as a deployment: `vllm serve` arguments, a SkyPilot service, a Kubernetes manifest."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

import yaml

from lynceus.errors import InputError
from lynceus.executors.placeholders import as_text, fill
from lynceus.executors.shell_text import fill_script
from lynceus.jobfile.command_line import quoted, served_at
from lynceus.jobfile.prepared_study import PreparedStudy
from lynceus.jobfile.sections.serve import ServeSection
from lynceus.jobfile.winner_export import task_of, variables_of
from lynceus.trial.text import clean_line

_REPLICAS = ("replicas", "pods", "num_replicas")
_GPU_TYPES = ("gpu", "gpu_type", "accelerator", "accelerators")
_GPU_COUNTS = ("gpus", "gpu_count", "num_gpus")
_PARALLELISM = ("tensor_parallel", "tensor_parallel_size", "tp", "pipeline_parallel", "pipeline_parallel_size", "pp")
"""Parameters by common names; degrees of parallelism multiply to a number of GPUs."""
_IMAGES = {
    "vllm": "vllm/vllm-openai:latest",
    "sglang": "lmsysorg/sglang:latest",
    "tritonserver": "nvcr.io/nvidia/tritonserver:25.06-py3",
    "torchserve": "pytorch/torchserve:latest",
}
_PROBE_S = 10


def vllm_arguments(prepared: PreparedStudy, row: int, heading: str) -> str:
    """One `vllm serve` command with the arguments of a configuration, whether the study started vLLM that way or as a module."""
    words = _arguments(prepared, row)
    module = ["-m", "vllm.entrypoints.openai.api_server"]
    if PurePosixPath(words[0]).name == "vllm" and words[1:2] == ["serve"]:
        words = words[2:]
    elif words[1:3] == module:
        words = words[3:]
        if "--model" in words[:-1]:  # `vllm serve` takes the model first
            at = words.index("--model")
            words = [words[at + 1], *words[:at], *words[at + 2 :]]
    else:
        raise InputError(
            f"export: the server of study {prepared.job.name!r} is {words[0]!r}, not 'vllm serve'; export it with --to shell."
        )
    return f"# {clean_line(heading)}\n" + " ".join(["vllm serve", *map(quoted, words)]) + "\n"


def skypilot_service(prepared: PreparedStudy, row: int, heading: str) -> str:
    """A SkyPilot service (`sky serve up`): the task of a configuration with its port, readiness probe and replicas."""
    serve, params = _serve(prepared), prepared.problem.space.point(row)
    task = task_of(prepared, row)
    resources = {**task.get("resources", {}), "ports": served_at(prepared.job)["port"]}
    count, kind = gpus(params)
    if kind and "instance_type" not in resources:
        resources["accelerators"] = f"{kind}:{count}"
    probe = {"path": fill(serve.ready.path, params), "initial_delay_seconds": math.ceil(serve.ready.within)}
    service = {"readiness_probe": probe, "replicas": _replicas(params)}
    task = {
        "name": task["name"],
        "service": service,
        "resources": resources,
        **{k: v for k, v in task.items() if k not in ("name", "resources")},
    }
    return f"# {clean_line(heading)}\n" + yaml_text(task)


def kubernetes_manifest(prepared: PreparedStudy, row: int, heading: str, image: str | None = None) -> str:
    """A Deployment with the command, environment, probe and limits of a configuration, and a Service in front of it."""
    serve, job, params = _serve(prepared), prepared.job, prepared.problem.space.point(row)
    port, name = served_at(job)["port"], dns_name(job.name)
    variables = [{"name": key, "value": value} for key, value in variables_of(prepared, params).items()]
    references = [{"name": key, "valueFrom": {"secretKeyRef": {"name": name, "key": key}}} for key in job.spec.secrets]
    probe = {"httpGet": {"path": fill(serve.ready.path, params), "port": port}}
    patience = math.ceil(serve.ready.within / _PROBE_S)
    container: dict[str, Any] = {
        "name": name,
        "image": image or _image(prepared, row),
        "command": _arguments(prepared, row),
        "env": [*variables, *references],
        "ports": [{"containerPort": port}],
        "startupProbe": {**probe, "periodSeconds": _PROBE_S, "failureThreshold": patience},
        "readinessProbe": {**probe, "periodSeconds": _PROBE_S},
    }
    if amounts := limits(prepared, row, params):
        container["resources"] = {"limits": amounts}
    labels = {"app": name}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": _replicas(params),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": dict(labels)}, "spec": {"containers": [container]}},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {"selector": dict(labels), "ports": [{"port": 80, "targetPort": port}]},
    }
    return f"# {clean_line(heading)}\n{yaml_text(deployment)}---\n{yaml_text(service)}"


def gpus(params: Mapping[str, object]) -> tuple[int, str]:
    """The number of GPUs of a configuration and their type, by common names of parameters; 0 and empty if there are none.

    >>> gpus({"gpu": "A100", "tensor_parallel": 2, "pipeline_parallel": 2})
    (4, 'A100')
    """
    kind = next((as_text(params[name]) for name in _GPU_TYPES if name in params), "")
    kind, _, written = kind.partition(":")
    count = next((params[name] for name in _GPU_COUNTS if name in params), None)
    if count is None and written.isdigit():
        count = int(written)
    if count is None:
        degrees = [params[name] for name in _PARALLELISM if isinstance(params.get(name), int)]
        count = math.prod(degrees) if degrees else (1 if kind else 0)  # type: ignore[arg-type]
    return (count if isinstance(count, int) else 0), kind


def _serve(prepared: PreparedStudy) -> ServeSection:
    if prepared.job.spec.serve is None:
        raise InputError(
            f"export: study {prepared.job.name!r} has a command and no server (section 'serve'); use --to shell, env or skypilot."
        )
    return prepared.job.spec.serve


def _arguments(prepared: PreparedStudy, row: int) -> list[str]:
    """The server's argv, with the port of a deployment."""
    command = _serve(prepared).command
    values = {**prepared.problem.space.point(row), **served_at(prepared.job)}
    if not isinstance(command, str):
        return [fill(element, values) for element in command]
    script = fill_script(command, values) if prepared.job.spec.shell else command
    at = (
        ""
        if prepared.job.spec.shell
        else "".join(f"export {key}={value}\n" for key, value in served_at(prepared.job).items())
    )
    return ["/bin/sh", "-e", "-c", at + script]


def _image(prepared: PreparedStudy, row: int) -> str:
    words = " ".join(_arguments(prepared, row))
    found = next((image for name, image in _IMAGES.items() if re.search(rf"\b{name}\b", words)), None)
    if found is None:
        raise InputError(
            f"export: which container image has the server of study {prepared.job.name!r}? Say it with --image registry/name:tag."
        )
    return found


def limits(prepared: PreparedStudy, row: int, params: Mapping[str, object]) -> dict[str, str]:
    """CPUs, memory and GPUs of a configuration, as Kubernetes reads them."""
    found = {}
    if prepared.cpus is not None:
        found["cpu"] = f"{prepared.cpus[row]:g}"
    if prepared.memory_gib is not None:
        found["memory"] = f"{round(prepared.memory_gib[row] * 1024)}Mi"
    if count := gpus(params)[0]:
        found["nvidia.com/gpu"] = str(count)
    return found


def _replicas(params: Mapping[str, object]) -> int:
    return next((value for name in _REPLICAS if isinstance(value := params.get(name), int)), 1)


def dns_name(text: str) -> str:
    """A name that Kubernetes accepts for a service.

    >>> dns_name("7B_chat.v2")
    'x-7b-chat-v2'
    """
    name = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].strip("-") or "server"
    return name if name[0].isalpha() else f"x-{name}"


def yaml_text(document: Mapping[str, Any]) -> str:
    """YAML in the order of the document."""
    return yaml.dump(document, Dumper=_PlainDumper, sort_keys=False, allow_unicode=True, width=120)


class _PlainDumper(yaml.SafeDumper):
    """Without anchors: lists and mappings that occur twice are written twice."""

    def ignore_aliases(self, data: object) -> bool:
        """Always."""
        return True
