"""A SkyPilot made of processes, for tests without SkyPilot: clusters are folders, jobs really run, and trouble comes when it is ordered.

Only what the bridge calls is here, with the names and shapes of the real SDK. State lives in the folder SMALL_SKY, so that several bridge
processes see the same clusters, as they would through one API server. `SMALL_SKY/trouble.json` holds `{"launch": ["Kind", "text", times]}`.
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

__version__ = "0.0-small"
_HOME = Path(os.environ["SMALL_SKY"])
_MARK = "SMALL_SKY_CLUSTER"
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


def _trouble(word: str) -> None:
    path = _HOME / "trouble.json"
    with _locked():
        orders = json.loads(path.read_text()) if path.exists() else {}
        kind, text, times = orders.get(word, ["", "", 0])
        if times > 0:
            orders[word][2] -= 1
            path.write_text(json.dumps(orders))
    if times > 0:
        raise globals()[kind](text)


def _answer(value: object) -> str:
    request = uuid.uuid4().hex
    _answers[request] = value
    return request


def get(request: str) -> object:
    value = _answers.pop(request)
    if isinstance(value, BaseException):
        raise value
    return value


def api_info() -> dict:
    _trouble("api_info")
    return {"version": __version__}


def _cluster(name: str) -> Path:
    folder = _HOME / "clusters" / name
    if not (folder / "record.json").exists():
        raise ClusterDoesNotExist(f"Cluster {name!r} does not exist.")
    return folder


def launch(
    task: Task, cluster: str, idle_minutes_to_autostop: int, down: bool, wait_for: AutostopWaitFor | None = None
) -> str:
    _trouble("unreachable")
    try:
        _trouble("launch")
    except Exception as error:  # the request is taken, its answer is the error, and the history knows of it
        with _locked(), open(_HOME / "history", "a") as history:
            history.write(f"{cluster}\n")
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
        with open(_HOME / "history", "a") as history:
            history.write(f"{cluster}\n")
    if fresh and task.config.get("setup"):
        home = folder / "home"
        subprocess.run(
            ["bash", "-c", task.config["setup"]], cwd=home, env={**os.environ, "HOME": str(home)}, check=True
        )
    return _submitted(task, cluster, folder)


def exec(task: Task, cluster: str) -> str:
    _trouble("unreachable")
    return _submitted(task, cluster, _cluster(cluster))


def _submitted(task: Task, cluster: str, folder: Path) -> str:
    home = folder / "home"
    shutil.copytree(task.config["workdir"], home / "sky_workdir", dirs_exist_ok=True, symlinks=True)
    with _locked():
        job = len(list(folder.glob("job-*"))) + 1
        place, making = folder / f"job-{job}", folder / f"making-{uuid.uuid4().hex}"
        making.mkdir()
        (making / "name").write_text(task.config["name"])
        (making / "command").write_text(task.config["run"])
        ranks = range(task.config["num_nodes"])
        lines = " & ".join(
            f'SKYPILOT_NODE_RANK={rank} bash "{place}/command" || echo $? >> "{place}/failed"' for rank in ranks
        )
        # An API server takes a job as a whole or not at all, also when the bridge is killed in the middle of asking for it.
        begun = f'until [ -e "{place}/pid" ]; do [ -e /proc/{os.getpid()} ] || exit 1; sleep 0.01; done'
        end = f'wait; [ -e "{place}/failed" ] && rc=1 || rc=0; echo $rc > "{place}/rc.new"; mv "{place}/rc.new" "{place}/rc"'
        script = f"{begun}; {lines} & {end}"
        with open(making / "log", "wb") as log:
            process = subprocess.Popen(
                ["bash", "-c", script],
                cwd=home / "sky_workdir",
                env={**os.environ, "HOME": str(home), _MARK: cluster, **task.config.get("envs", {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (making / "pid").write_text(str(process.pid))
        making.rename(place)
    return _answer((job, None))


def _alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        os.waitpid(pid, os.WNOHANG)
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _state(place: Path) -> str:
    if (place / "cancelled").exists():
        return "CANCELLED"
    alive = _alive(int((place / "pid").read_text()))  # asked first: it may write its end, and be gone, at any moment
    if (place / "rc").exists():
        return "SUCCEEDED" if (place / "rc").read_text().strip() == "0" else "FAILED"
    return "RUNNING" if alive else "FAILED"


def tail_logs(cluster: str, job: int, follow: bool, output_stream) -> int:
    _trouble("unreachable")
    place = _cluster(cluster) / f"job-{job}"
    while follow and _state(place) == "RUNNING":
        _trouble("stream")
        time.sleep(0.02)
        _cluster(cluster)
    text = (place / "log").read_text(errors="replace")
    output_stream.write("".join(f"(task, pid=1) {line}\n" for line in text.splitlines()))
    return 0


def job_status(cluster: str, jobs: list[int]) -> str:
    return _answer({job: _state(_cluster(cluster) / f"job-{job}") for job in jobs})


def queue(cluster: str) -> str:
    jobs = _cluster(cluster).glob("job-*")
    return _answer([{"job_id": int(one.name[4:]), "job_name": (one / "name").read_text()} for one in jobs])


def cancel(cluster: str, job_ids: list[int]) -> str:
    for job in job_ids:
        place = _cluster(cluster) / f"job-{job}"
        pid = int((place / "pid").read_text())
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGTERM)
        until = time.monotonic() + 5
        while not (place / "rc").exists() and _members(pid) and time.monotonic() < until:
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        (place / "cancelled").touch()
    return _answer(None)


def _members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def down(cluster: str) -> str:
    _trouble("unreachable")
    _trouble("down")
    folder = _cluster(cluster)
    with _locked():
        (folder / "record.json").unlink(missing_ok=True)
    mark = f"{_MARK}={cluster}".encode()
    while left := [pid for pid in _processes() if mark in _environ(pid) and _alive(pid)]:
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
    _trouble("unreachable")
    found = sorted((_HOME / "clusters").glob("*/record.json"))
    every = [{"name": one.parent.name, "status": "UP", "launched_at": 0} for one in found]
    return _answer([one for one in every if names is None or one["name"] in names])


def cost_report() -> str:
    history = _HOME / "history"
    return _answer([{"name": name} for name in (history.read_text().split() if history.exists() else ())])


def api_status() -> list[SimpleNamespace]:
    _trouble("unreachable")
    return []


def api_cancel(requests: list[str]) -> str:
    return _answer([])
