"""The section `executor` of a job file for Kubernetes. `${column}` is replaced by a value of the configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import Field, field_validator, model_validator

from lynceus.errors import InputError
from lynceus.executors.placeholders import as_text, check_column, fill, names_in, row_values
from lynceus.executors.resources import Resources
from lynceus.problem.fields import Duration, Section
from lynceus.space.table import Space

Value = str | int | float | None
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d*)?)\s*(?:([KMGT])(i?)B?)?\s*", re.IGNORECASE)
_UNITS = {"K": 1, "M": 2, "G": 3, "T": 4}
_IMAGE = re.compile(r"[A-Za-z0-9][\w.\-/:@]*")
_LABEL = re.compile(r"([A-Za-z0-9]([\w.\-]{0,61}[A-Za-z0-9])?)?")
FILLED = ("image", "cpus", "memory", "gpus", "queue", "priority_class")
"""Fields that may depend on the configuration."""


class Volume(Section):
    """A volume that every pod mounts."""

    path: str = Field(description="where it is mounted, in pods and where Lynceus runs")
    claim: str | None = Field(
        default=None, description="the name of a PersistentVolumeClaim that many nodes can write to"
    )
    host_path: str | None = Field(default=None, description="a directory of the node, for clusters of one node")
    read_only: bool = False

    @model_validator(mode="after")
    def _one_source(self) -> Volume:
        if (self.claim is None) == (self.host_path is None):
            raise ValueError("give either claim, the name of a PersistentVolumeClaim, or host_path.")
        if not self.path.startswith("/"):
            raise ValueError(f"path is {self.path!r}; give an absolute one, such as /lynceus.")
        return self


class KubernetesOptions(Section):
    """What a trial requests of the cluster, and how long to wait for it."""

    image: str = Field(description="the container image of the job; here and below, ${column} is replaced by a value")
    volumes: list[Volume] = Field(min_length=1, description="volumes of pods; one holds the run directories")
    namespace: str = Field(default="default", description="the namespace of the Jobs")
    context: str | None = Field(default=None, description="a context of the kubeconfig; by default the current one")
    cpus: Value = Field(default=None, description="CPUs of a pod; those of 'resources' by default")
    memory: Value = Field(
        default=None, description="memory of a pod, such as 4 GB, or a number of GiB; that of 'resources' by default"
    )
    gpus: Value = Field(default=None, description="number of GPUs")
    gpu_resource: str = Field(default="nvidia.com/gpu", description="the resource by which the cluster counts GPUs")
    queue: str | None = Field(default=None, description="the LocalQueue of Kueue that admits the Jobs")
    priority_class: str | None = Field(default=None, description="the PriorityClass of the pods")
    service_account: str | None = Field(default=None, description="the ServiceAccount of the pods")
    pull_secrets: list[str] = Field(default=[], description="Secrets with which the image is pulled")
    node_selector: dict[str, str] = Field(
        default={}, description="labels of nodes, such as node.kubernetes.io/instance-type: ${instance_type}"
    )
    tolerations: list[dict[str, Any]] = Field(
        default=[], description="tolerations of the pods, as Kubernetes writes them"
    )
    labels: dict[str, str] = Field(default={}, description="further labels of the Jobs and pods")
    workdir: str | None = Field(
        default=None,
        description="a directory of the image in which the job runs; by default the job's workdir, on a volume",
    )
    python: str = Field(
        default="python3", description="a Python of version 3.8 or later in the image; it runs the supervisor"
    )
    poll: Duration = Field(default=2.0, description="time between two requests to the API server")
    keep: Duration = Field(default=600.0, description="how long Kubernetes keeps a Job that has ended")
    max_queue: Duration | None = Field(
        default=None, description="a trial whose pod waits longer than this is deleted and retried"
    )
    patience: Duration = Field(
        default=900.0, description="how long to retry while the API server is down or refuses the Job"
    )

    @field_validator("poll")
    @classmethod
    def _positive(cls, value: float) -> float:
        if value <= 0:
            raise ValueError("give a duration above 0, such as 2s: the API server cannot be asked without a pause.")
        return value


def check_options(options: KubernetesOptions, space: Space) -> None:
    """Raise `InputError` for `${name}` that is not a column, and for values that are invalid for some configuration."""
    texts = {field: getattr(options, field) for field in FILLED} | dict(options.node_selector)
    for field, text in texts.items():
        for name in names_in(text):
            check_column(name, space, field)
    for row in range(len(space)):
        requested(options, row_values(space, row), Resources())


def requested(options: KubernetesOptions, values: Mapping[str, object], resources: Resources) -> dict[str, str]:
    """What a configuration requests, by field: texts as Kubernetes reads them. A field whose parameter is inactive is left out."""
    found = {}
    for field in FILLED:
        text = getattr(options, field)
        names = names_in(text)
        if text is None or (len(names) == 1 and text == f"${{{names[0]}}}" and values.get(names[0]) is None):
            continue
        found[field] = fill(text, values) if isinstance(text, str) else as_text(text)
    if "cpus" not in found and resources.cpus is not None:
        found["cpus"] = f"{resources.cpus:g}"
    found["memory"] = _memory(found["memory"]) if "memory" in found else ""
    if not found["memory"]:
        found.pop("memory")
        if resources.memory_bytes is not None:
            found["memory"] = f"{max(resources.memory_bytes >> 20, 1)}Mi"
    _check(found)
    return found


def selected_nodes(options: KubernetesOptions, values: Mapping[str, object]) -> dict[str, str]:
    """The labels that nodes must have for a configuration."""
    return {key: fill(text, values) for key, text in options.node_selector.items()}


def _check(found: Mapping[str, str]) -> None:
    if _IMAGE.fullmatch(found.get("image", "")) is None:
        raise InputError(
            f"image: got {found.get('image', '')!r}; expected the name of an image, such as registry/name:tag."
        )
    for field in ("cpus", "gpus"):
        if field in found and not _positive_number(found[field], whole=field == "gpus"):
            raise InputError(f"{field}: got {found[field]!r}; expected a positive number.")
    if _LABEL.fullmatch(found.get("queue", "")) is None:
        raise InputError(f"queue: got {found['queue']!r}; expected the name of a LocalQueue.")


def _positive_number(word: str, *, whole: bool) -> bool:
    try:
        number = float(word)
    except ValueError:
        return False
    return 0 < number < 1e6 and (not whole or number == int(number))


def _memory(word: str) -> str:
    """Memory as Kubernetes reads it; a number without a unit is GiB, and GB are GiB as elsewhere in job files.

    >>> _memory("1.5"), _memory("512 MB"), _memory("4Gi")
    ('1536Mi', '512Mi', '4096Mi')
    """
    matched = _QUANTITY.fullmatch(word)
    if matched is None or not float(matched[1]):
        raise InputError(f"memory: got {word!r}; expected an amount such as 4 GB.")
    mebibytes = float(matched[1]) * 1024.0 ** (_UNITS[(matched[2] or "G").upper()] - 2)
    return f"{max(round(mebibytes), 1)}Mi"
