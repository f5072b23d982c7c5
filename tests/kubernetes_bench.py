"""A fake Kubernetes: an API server that speaks HTTP, checks every object with the official client's models, and runs pods as processes.

What it does not do: schedule, pull images, isolate, mount volumes (paths are those of this machine), admit, authorise. Objects are kept in
memory, with the fields that the real controllers would set.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml
from kubernetes import client

_POD = "LYNCEUS_FAKE_POD"
_JOBS = re.compile(r"/apis/batch/v1/namespaces/([^/]+)/jobs(?:/([^/]+))?")
_PODS = re.compile(r"/api/v1/namespaces/([^/]+)/pods")


def checked(document: dict[str, Any], model: str) -> None:
    """The object survives the official model unchanged: no field is unknown, misspelt, missing or of another type."""
    api = client.ApiClient()
    parsed = api._ApiClient__deserialize(document, model)  # type: ignore[attr-defined]
    again = api.sanitize_for_serialization(parsed)
    if again != document:
        raise ValueError(f"the object is not a {model}: {_difference(document, again)}")


def _difference(given: Any, read: Any, path: str = "") -> str:
    if isinstance(given, dict) and isinstance(read, dict):
        for key in given.keys() | read.keys():
            if given.get(key) != read.get(key):
                return _difference(given.get(key), read.get(key), f"{path}.{key}")
    return f"{path} is {given!r}, read as {read!r}"


@dataclass
class Pod:
    """One pod: a process of this machine, and everything that it started."""

    job: dict[str, Any]
    document: dict[str, Any]
    process: subprocess.Popen[bytes] | None = None
    ended: threading.Event = field(default_factory=threading.Event)


@dataclass
class FakeKubernetes:
    """The cluster, and what a test does to it."""

    address: str = ""
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    created: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    """Objects that the models did not accept."""
    fault: str = ""
    """`hang`, `refuse`, `garbage`, `error`: what every request meets."""
    hold: str = ""
    """A reason for which containers wait instead of starting, such as InvalidImageName."""
    suspend: bool = False
    """Whether new Jobs are suspended, as Kueue's webhook does with Jobs that have a queue."""
    quota: str = ""
    """A sentence with which the quota refuses new Jobs."""
    rights: set[tuple[str, str, str]] = field(default_factory=set)
    """What requests would need of the authoriser: the group, the resource, the verb."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def kubeconfig(self, path: Path) -> Path:
        cluster, user = {"server": self.address}, {"token": "secret"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": cluster}],
            "users": [{"name": "me", "user": user}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "me"}}],
        }
        path.write_text(yaml.safe_dump(config))
        return path

    # What the controllers do

    def create(self, namespace: str, document: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        name = document["metadata"]["name"]
        with self.lock:
            if self.quota:
                return 403, _status(403, self.quota)
            if name in self.jobs:
                return 409, _status(409, f'jobs.batch "{name}" already exists')
            try:
                checked(document, "V1Job")
                assert document["metadata"]["namespace"] == namespace
                assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name), name
                for value in document["metadata"]["labels"].values():
                    assert re.fullmatch(r"([A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?)?", value), value
            except (AssertionError, ValueError, TypeError) as error:
                self.refusals.append(str(error))
                return 422, _status(422, f"Job is invalid: {error}")
            self.created.append(json.loads(json.dumps(document)))
            document["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": _now()}
            document["spec"]["suspend"] = self.suspend
            document["status"] = {}
            self.jobs[name] = document
            if not self.suspend:
                self._start(name)
            return 201, document

    def admit(self) -> None:
        """The queue lets all suspended Jobs go."""
        with self.lock:
            for name, job in self.jobs.items():
                if job["spec"]["suspend"]:
                    job["spec"]["suspend"] = False
                    self._start(name)

    def _start(self, name: str) -> None:
        job = self.jobs[name]
        spec = job["spec"]["template"]["spec"]
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"{name}-x",
                "creationTimestamp": _now(),
                "labels": {**job["spec"]["template"]["metadata"]["labels"], "batch.kubernetes.io/job-name": name},
            },
            "spec": {**spec, "nodeName": "node-1"},
            "status": {"phase": "Pending"},
        }
        checked(document, "V1Pod")
        pod = Pod(job, document)
        self.pods[name] = pod
        job["status"] = {"active": 1, "startTime": _now()}
        if self.hold:
            self._container(pod, {"waiting": {"reason": self.hold, "message": "no image"}})
            return
        mark = uuid.uuid4().hex
        (container,) = spec["containers"]
        environment = {"PATH": os.environ["PATH"], _POD: mark, "HOME": os.environ.get("HOME", "/")}
        pod.process = subprocess.Popen(
            container["command"], env=environment, start_new_session=True, stdin=subprocess.DEVNULL, cwd="/"
        )
        pod.document["status"]["phase"] = "Running"
        self._container(pod, {"running": {"startedAt": _now()}})
        threading.Thread(target=self._follow, args=(name, pod, mark), daemon=True).start()

    def _follow(self, name: str, pod: Pod, mark: str) -> None:
        """The kubelet: waits for the end of the container, which ends everything in it."""
        assert pod.process is not None
        limit_s = pod.document["spec"].get("activeDeadlineSeconds")
        try:
            code = pod.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            pod.process.kill()
            code, pod.document["status"]["reason"] = pod.process.wait(), "DeadlineExceeded"
        _kill_all(mark)
        with self.lock:
            status = pod.document["status"]
            status["phase"] = "Succeeded" if code == 0 else "Failed"
            reason = status.pop("oom", None) or ("Completed" if code == 0 else "Error")
            self._container(pod, {"terminated": {"exitCode": code if code >= 0 else 128 - code, "reason": reason}})
            disrupted = any(one["type"] == "DisruptionTarget" for one in status.get("conditions", ()))
            why = "PodFailurePolicy" if disrupted else "BackoffLimitExceeded"
            said = (
                "Pod has condition DisruptionTarget matching FailJob rule at index 0" if disrupted else "Job has failed"
            )
            done = {"type": "Complete", "status": "True"}
            failed = {"type": "Failed", "status": "True", "reason": why, "message": said}
            pod.job["status"] = {"conditions": [done if code == 0 else failed]}
            pod.ended.set()

    def _container(self, pod: Pod, state: dict[str, Any]) -> None:
        image = pod.document["spec"]["containers"][0]["image"]
        known = {"name": "job", "image": image, "imageID": image, "ready": True, "restartCount": 0, "state": state}
        pod.document["status"]["containerStatuses"] = [known]

    def delete(self, name: str) -> tuple[int, dict[str, Any]]:
        with self.lock:
            if name not in self.jobs:
                return 404, _status(404, f'jobs.batch "{name}" not found')
            del self.jobs[name]
            pod = self.pods.pop(name, None)
        if pod is not None and pod.process is not None:
            threading.Thread(target=self._terminate, args=(pod,), daemon=True).start()
        return 200, _status(200, "deleted")

    def _terminate(self, pod: Pod) -> None:
        """As the kubelet does: SIGTERM to process 1, and after the grace period everything is killed."""
        assert pod.process is not None
        with contextlib.suppress(ProcessLookupError):
            pod.process.terminate()
        if not pod.ended.wait(pod.document["spec"]["terminationGracePeriodSeconds"]):
            pod.process.kill()

    def evict(self, name: str) -> None:
        """A node is drained: the pod gets its condition, then SIGTERM."""
        pod = self.pods[name]
        with self.lock:
            condition = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
            pod.document["status"]["conditions"] = [condition]
        self._terminate(pod)

    def kill_for_memory(self, name: str) -> None:
        """The kernel kills the whole container."""
        pod = self.pods[name]
        pod.document["status"]["oom"] = "OOMKilled"
        assert pod.process is not None
        mark = _environment(pod.process.pid).split(f"{_POD}=")[1].split("\0")[0]
        _kill_all(mark)

    def end(self) -> None:
        for pod in self.pods.values():
            if pod.process is not None and not pod.ended.is_set():
                pod.process.kill()
                pod.ended.wait(10)


def _environment(process: int) -> str:
    try:
        return Path(f"/proc/{process}/environ").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _kill_all(mark: str) -> None:
    """Everything in the container of a pod."""
    while True:
        found = [
            int(one) for one in os.listdir("/proc") if one.isdigit() and f"{_POD}={mark}" in _environment(int(one))
        ]
        if not found:
            return
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.02)


def _status(code: int, message: str) -> dict[str, Any]:
    kind = "Success" if code < 300 else "Failure"
    return {"apiVersion": "v1", "kind": "Status", "status": kind, "code": code, "message": message}


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())


def _handler(cluster: FakeKubernetes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _answer(self, code: int, document: dict[str, Any]) -> None:
            body = b"<html>" if cluster.fault == "garbage" else json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(body)

        def _needs(self, verb: str) -> None:
            path = urlsplit(self.path).path
            group, resource = ("batch", "jobs") if _JOBS.fullmatch(path) else ("", path.rpartition("/")[2])
            cluster.rights.add((group, resource, verb))

        def _broken(self) -> bool:
            length = int(self.headers.get("Content-Length") or 0)
            self.body = self.rfile.read(length)
            if cluster.fault == "hang":
                while cluster.fault == "hang":
                    time.sleep(0.05)
            if cluster.fault in ("hang", "refuse"):
                self.close_connection = True
                return True
            if cluster.fault == "error":
                self._answer(503, _status(503, "etcd is away"))
                return True
            if cluster.fault == "garbage":
                self._answer(200, {})
                return True
            return False

        def do_GET(self) -> None:
            url = urlsplit(self.path)
            named = _JOBS.fullmatch(url.path)
            self._needs("get" if named and named[2] else "list")
            if self._broken():
                return
            wanted = dict(one.split("=") for one in parse_qs(url.query).get("labelSelector", [""])[0].split(",") if one)
            kinds = (("JobList", _JOBS, lambda: cluster.jobs.values()),)
            with cluster.lock:
                for kind, pattern, found in (
                    *kinds,
                    ("PodList", _PODS, lambda: [p.document for p in cluster.pods.values()]),
                ):
                    if pattern.fullmatch(url.path):
                        items = [one for one in found() if wanted.items() <= one["metadata"]["labels"].items()]
                        items = [json.loads(json.dumps(one)) for one in items]
                        self._answer(200, {"kind": kind, "items": items, "metadata": {}})
                        return
            self._answer(404, _status(404, url.path))

        def do_POST(self) -> None:
            self._needs("create")
            if not self._broken() and (matched := _JOBS.fullmatch(urlsplit(self.path).path)):
                self._answer(*cluster.create(matched[1], json.loads(self.body)))

        def do_DELETE(self) -> None:
            self._needs("delete")
            if not self._broken() and (matched := _JOBS.fullmatch(urlsplit(self.path).path)):
                self._answer(*cluster.delete(matched[2]))

    return Handler


@contextlib.contextmanager
def fake_kubernetes(folder: Path) -> Iterator[FakeKubernetes]:
    """A cluster for a test, named by KUBECONFIG."""
    cluster = FakeKubernetes()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(cluster))
    server.daemon_threads = True
    cluster.address = f"http://127.0.0.1:{server.server_address[1]}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    before = os.environ.get("KUBECONFIG")
    os.environ["KUBECONFIG"] = str(cluster.kubeconfig(folder / "kubeconfig"))
    try:
        yield cluster
    finally:
        cluster.fault = ""
        cluster.end()
        server.shutdown()
        server.server_close()
        if before is None:
            os.environ.pop("KUBECONFIG", None)
        else:
            os.environ["KUBECONFIG"] = before
