"""Questions to the API server, asked with the official client, and the meaning of its answers. No call waits long."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Callable
from typing import Any, TypeVar

from lynceus.errors import InfrastructureError, InputError, MissingExtraError
from lynceus.executors.kubernetes.objects import MANAGED_BY, KubeJob, KubePod, job_of, pod_of
from lynceus.executors.kubernetes.options import KubernetesOptions
from lynceus.executors.outage_log import OutageLog
from lynceus.trial.text import clean_line

_CONNECT_S, _ANSWER_S = 1.5, 3.0
"""How long a call waits for a connection, and for the answer."""
_SELECTOR = ",".join(f"{name}={value}" for name, value in MANAGED_BY.items())
_PERMANENT = (400, 404, 405, 413, 422)
"""Refusals that do not change by waiting; 403 may be a quota."""
_LONGEST = 300
_SERVER = "the API server"

T = TypeVar("T")


class UnreachableError(InfrastructureError):
    """The API server does not answer, or not sensibly."""

    see = "kubernetes.md"


class RefusedError(InfrastructureError):
    """The API server refused for now; a later attempt may succeed."""

    see = "kubernetes.md"


class KubernetesClient:
    """Asks one API server."""

    def __init__(self, options: KubernetesOptions) -> None:
        self._options = options
        self._api: Any = None
        self.outages = OutageLog()

    def close(self) -> None:
        """Close connections."""
        if self._api is not None:
            self._api.close()
            self._api = None

    def jobs(self) -> dict[str, KubeJob]:
        """All Jobs of Lynceus in the namespace, by name."""
        listed = self._ask("list Jobs", lambda: self._batch().list_namespaced_job(**self._selected()))
        return {one.name: one for one in self._read("list Jobs", lambda: [job_of(item) for item in listed.items])}

    def pods(self) -> dict[str, KubePod]:
        """The pods of these Jobs, by the name of the Job; of several the newest."""
        listed = self._ask("list pods", lambda: self._core().list_namespaced_pod(**self._selected()))

        def read() -> dict[str, KubePod]:
            items = sorted(listed.items, key=lambda one: str(one.metadata.creation_timestamp))
            return {(one.metadata.labels or {}).get("batch.kubernetes.io/job-name", ""): pod_of(one) for one in items}

        return self._read("list pods", read)

    def create(self, job: dict[str, Any]) -> None:
        """Create a Job, unless one of its name exists."""
        try:
            self._ask(
                "create a Job",
                lambda: self._batch().create_namespaced_job(self._options.namespace, job, **self._limits()),
            )
        except _ConflictError:
            return

    def delete(self, name: str) -> None:
        """Delete a Job with its pods, unless it is gone."""
        try:
            self._ask(
                "delete a Job",
                lambda: self._batch().delete_namespaced_job(
                    name, self._options.namespace, propagation_policy="Background", **self._limits()
                ),
            )
        except InputError:
            return  # 404

    def _selected(self) -> dict[str, Any]:
        return {"namespace": self._options.namespace, "label_selector": _SELECTOR, **self._limits()}

    def _limits(self) -> dict[str, Any]:
        return {"_request_timeout": (_CONNECT_S, _ANSWER_S)}

    def _batch(self) -> Any:
        from kubernetes import client

        return client.BatchV1Api(self._connected())

    def _core(self) -> Any:
        from kubernetes import client

        return client.CoreV1Api(self._connected())

    def _connected(self) -> Any:
        """The official client, configured from inside a pod or from the kubeconfig."""
        if self._api is None:
            from kubernetes import client, config
            from yaml import YAMLError

            settings = client.Configuration()
            try:
                config.load_kube_config(
                    os.environ.get("KUBECONFIG"), context=self._options.context, client_configuration=settings
                )
            except YAMLError:
                raise InputError(
                    "executor: the kubeconfig is not valid YAML; mend it, or set KUBECONFIG to another one."
                ) from None
            except config.ConfigException as outside:
                try:
                    config.load_incluster_config(client_configuration=settings)
                except config.ConfigException:
                    raise InputError(
                        f"executor: no Kubernetes cluster is configured here: {outside}; set KUBECONFIG, or run Lynceus in the cluster."
                    ) from None
            settings.retries = False
            self._api = client.ApiClient(settings)
        return self._api

    def _ask(self, what: str, call: Callable[[], T]) -> T:
        """An answer; `UnreachableError` without one, `RefusedError` or `InputError` for a refusal."""
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        try:
            answer = call()
        except ApiException as error:
            if error.status is None or error.status >= 500 or error.status in (0, 401, 408):
                raise self._failed(f"the API server answered {error.status} {clean_line(str(error.reason))}") from None
            self.outages.answered(_SERVER)
            raise _refusal(error.status, _said(error)) from None
        except (
            HTTPError,
            OSError,
            http.client.HTTPException,
            ValueError,
            TypeError,
            AttributeError,
            LookupError,
        ) as error:
            raise self._failed(f"{what}: {clean_line(str(error), _LONGEST) or type(error).__name__}") from None
        self.outages.answered(_SERVER)
        return answer

    def _read(self, what: str, read: Callable[[], T]) -> T:
        """The meaning of an answer; one that makes no sense is none."""
        try:
            return read()
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            raise self._failed(f"{what}: the answer makes no sense ({clean_line(str(error), 80)})") from None

    def _failed(self, detail: str) -> UnreachableError:
        self.outages.failed(_SERVER, detail)
        return UnreachableError(detail)


class _ConflictError(InfrastructureError):
    """A Job of that name exists."""


def _refusal(status: int, said: str) -> Exception:
    if status == 409:
        return _ConflictError(said)
    return InputError(f"Kubernetes refuses the Job: {said}") if status in _PERMANENT else RefusedError(said)


def _said(error: Any) -> str:
    """The sentence of the API server."""
    try:
        found = json.loads(error.body).get("message")
    except (TypeError, ValueError, AttributeError):
        found = None
    return clean_line(str(found or error.reason), _LONGEST)


def require_client() -> None:
    """Raise `MissingExtraError` without the official client."""
    from importlib.util import find_spec

    if find_spec("kubernetes") is None:
        raise MissingExtraError("Jobs of Kubernetes", "kubernetes")
