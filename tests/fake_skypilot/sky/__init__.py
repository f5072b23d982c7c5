"""A fake SkyPilot for tests: clusters are folders, jobs are real processes of this machine, and errors can be injected.

It has only the functions that `lynceus.executors.skypilot.sdk` calls, with the signatures of the real SDK. Its state is in the folder
FAKE_SKYPILOT, so that several processes see the same clusters, as with one API server. `FAKE_SKYPILOT/errors.json` holds
`{"launch": ["Kind", "text", times]}`. While `FAKE_SKYPILOT/fault` exists, the server `hangs`, `refuses`, or answers with `garbage`.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

from sky.skylet.autostop_lib import AutostopWaitFor

__version__ = "0.0-fake"
_HOME = Path(os.environ["FAKE_SKYPILOT"])
_CLUSTER_VARIABLE = "FAKE_SKYPILOT_CLUSTER"
_answers: dict[str, object] = {}


class ResourcesUnavailableError(Exception):
    pass


class ApiServerConnectionError(RuntimeError):
    pass


class NoCloudAccessError(Exception):
    pass


class NotSupportedError(Exception):
    pass


class ClusterDoesNotExist(ValueError):  # noqa: N818
    pass


class Task:
    def __init__(self, config: dict) -> None:
        self.config = config

    @staticmethod
    def from_yaml_config(config: dict) -> "Task":
        return Task(config)


@contextlib.contextmanager
def _locked():
    _HOME.mkdir(exist_ok=True)
    with open(_HOME / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _reach_server() -> str:
    """Every request to the server begins with this; returns its fault, if it has one that shows in its answer."""
    path = _HOME / "fault"
    while (fault := path.read_text() if path.exists() else "") == "hangs":
        time.sleep(0.02)
    if fault == "refuses":
        raise ApiServerConnectionError("connection refused")
    return fault


def _raise_injected(function: str) -> None:
    path = _HOME / "errors.json"
    with _locked():
        errors = json.loads(path.read_text()) if path.exists() else {}
        kind, text, times = errors.get(function, ["", "", 0])
        if times > 0:
            errors[function][2] -= 1
            path.write_text(json.dumps(errors))
    if times > 0:
        raise globals()[kind](text)


def _answer(value: object) -> str:
    request = uuid.uuid4().hex
    _answers[request] = value
    return request


def get(request: str) -> object:
    if _reach_server() == "garbage":
        return json.loads("<html>\x00") if request[0] in "01234567" else ["\x1b[2J", 7]
    value = _answers.pop(request)
    if isinstance(value, BaseException):
        raise value
    return value


def _cluster(name: str) -> Path:
    folder = _HOME / "clusters" / name
    if not (folder / "record.json").exists():
        raise ClusterDoesNotExist(f"Cluster {name!r} does not exist.")
    return folder


def launch(
    task: Task, cluster: str, idle_minutes_to_autostop: int, down: bool, wait_for: AutostopWaitFor | None = None
) -> str:
    if _reach_server() == "garbage":
        return uuid.uuid4().hex
    _raise_injected("unreachable")
    try:
        _raise_injected("launch")
    except Exception as error:  # the request is accepted, its result is the error
        with _locked(), open(_HOME / "launches", "a") as launches:
            launches.write(f"{cluster}\n")
        return _answer(error)
    folder = _HOME / "clusters" / cluster
    with _locked():
        fresh = not (folder / "record.json").exists()
        (folder / "home").mkdir(parents=True, exist_ok=True)
        record = {
            "idle_minutes": idle_minutes_to_autostop,
            "down": down,
            "wait_for": None if wait_for is None else wait_for.value,
            "task": task.config,
            "launched_at": time.time(),
        }
        (folder / "record.json").write_text(json.dumps(record))
        with open(_HOME / "launches", "a") as launches:
            launches.write(f"{cluster}\n")
    if fresh and task.config.get("setup"):
        home = folder / "home"
        subprocess.run(
            ["bash", "-c", task.config["setup"]], cwd=home, env={**os.environ, "HOME": str(home)}, check=True
        )
    return _submit(task, cluster, folder)


def exec(task: Task, cluster: str) -> str:
    if _reach_server() == "garbage":
        return uuid.uuid4().hex
    _raise_injected("unreachable")
    return _submit(task, cluster, _cluster(cluster))


def _submit(task: Task, cluster: str, folder: Path) -> str:
    home = folder / "home"
    shutil.copytree(task.config["workdir"], home / "sky_workdir", dirs_exist_ok=True, symlinks=True)
    with _locked():
        job = len(list(folder.glob("job-*"))) + 1
        final, making = folder / f"job-{job}", folder / f"making-{uuid.uuid4().hex}"
        making.mkdir()
        (making / "name").write_text(task.config["name"])
        (making / "command").write_text(task.config["run"])
        ranks = range(task.config["num_nodes"])
        lines = " & ".join(
            f'SKYPILOT_NODE_RANK={rank} bash "{final}/command" || echo $? >> "{final}/failed"' for rank in ranks
        )
        # An API server accepts a job completely or not at all, even if its client is killed during the request.
        wait_for_pid = f'until [ -e "{final}/pid" ]; do [ -e /proc/{os.getpid()} ] || exit 1; sleep 0.01; done'
        end = f'wait; [ -e "{final}/failed" ] && rc=1 || rc=0; echo $rc > "{final}/rc.new"; mv "{final}/rc.new" "{final}/rc"'
        script = f"{wait_for_pid}; {lines} & {end}"
        with open(making / "log", "wb") as log:
            process = subprocess.Popen(
                ["bash", "-c", script],
                cwd=home / "sky_workdir",
                env={**os.environ, "HOME": str(home), _CLUSTER_VARIABLE: cluster, **task.config.get("envs", {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (making / "pid").write_text(str(process.pid))
        making.rename(final)
    return _answer((job, None))


def _alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        os.waitpid(pid, os.WNOHANG)
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _state(job: Path) -> str:
    if (job / "cancelled").exists():
        return "CANCELLED"
    alive = _alive(int((job / "pid").read_text()))  # checked first: it may write its exit code and end at any moment
    if (job / "rc").exists():
        return "SUCCEEDED" if (job / "rc").read_text().strip() == "0" else "FAILED"
    return "RUNNING" if alive else "FAILED"


def tail_logs(cluster: str, job: int, follow: bool, output_stream) -> int:
    if _reach_server() == "garbage":
        output_stream.write("LYNCEUS-LINE 0 0 1 Z2FyYmFnZQ==\nLYNCEUS-LINE ../../x 0 1 ////\n\x1b[2J\udcff")
        return 0
    _raise_injected("unreachable")
    place = _cluster(cluster) / f"job-{job}"
    while follow and _state(place) == "RUNNING":
        if _reach_server() == "garbage":
            raise json.JSONDecodeError("not JSON", "<html>", 0)
        _raise_injected("stream")
        time.sleep(0.02)
        _cluster(cluster)
    text = (place / "log").read_text(errors="replace")
    output_stream.write("".join(f"(task, pid=1) {line}\n" for line in text.splitlines()))
    return 0


def job_status(cluster: str, jobs: list[int]) -> str:
    if _reach_server() == "garbage":
        return uuid.uuid4().hex
    return _answer({job: _state(_cluster(cluster) / f"job-{job}") for job in jobs})


def queue(cluster: str) -> str:
    jobs = _cluster(cluster).glob("job-*")
    return _answer([{"job_id": int(one.name[4:]), "job_name": (one / "name").read_text()} for one in jobs])


def cancel(cluster: str, job_ids: list[int]) -> str:
    if _reach_server() == "garbage":
        return uuid.uuid4().hex
    for job in job_ids:
        place = _cluster(cluster) / f"job-{job}"
        pid = int((place / "pid").read_text())
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGTERM)
        until = time.monotonic() + 5
        while not (place / "rc").exists() and _has_members(pid) and time.monotonic() < until:
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        (place / "cancelled").touch()
    return _answer(None)


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def down(cluster: str) -> str:
    if _reach_server() == "garbage":
        return uuid.uuid4().hex
    _raise_injected("unreachable")
    _raise_injected("down")
    folder = _cluster(cluster)
    with _locked():
        (folder / "record.json").unlink(missing_ok=True)
    entry = f"{_CLUSTER_VARIABLE}={cluster}".encode()
    while left := [pid for pid in _processes() if entry in _environ(pid) and _alive(pid)]:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    shutil.rmtree(folder, ignore_errors=True)
    return _answer(None)


def _processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _environ(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def status(names: list[str] | None = None) -> str:
    if _reach_server() == "garbage":
        return uuid.uuid4().hex
    _raise_injected("unreachable")
    found = sorted((_HOME / "clusters").glob("*/record.json"))
    every = [{"name": one.parent.name, "status": "UP", "launched_at": 0} for one in found]
    return _answer([one for one in every if names is None or one["name"] in names])


def cost_report() -> str:
    launches = _HOME / "launches"
    return _answer([{"name": name} for name in (launches.read_text().split() if launches.exists() else ())])


def api_status() -> list[SimpleNamespace]:
    if _reach_server() == "garbage":
        raise json.JSONDecodeError("not JSON", "<html>", 0)
    _raise_injected("unreachable")
    return []


def api_cancel(requests: list[str]) -> str:
    return _answer([])
