"""What a keeper does on its node: a folder for the run, the supervisor in a process of its own, and what they left.

Only the standard library and Ray are used here, see `keeper`.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from typing import Any

STREAMS = ("stdout", "stderr")
_KEPT = "keeper.lock"
_YOUNG_S = 60.0
"""A folder without a lock may be one that is just being made."""
_OF_WORKERS = ("RAY_JOB_ID", "RAY_RAYLET_PID", "RAY_CLIENT_MODE", "RAY_LD_PRELOAD_ON_WORKERS", "PYTHONBREAKPOINT")
"""Variables that Ray sets for its own workers; they would mislead a job that uses Ray."""

# Ray kills the children of a worker that ends, and a killed supervisor could not end the job's daemons. So the child of the keeper is a
# link that does nothing but wait; when it dies, for whatever reason, the kernel sends SIGTERM to the supervisor, which ends everything.
_LINK = """
import ctypes, os, sys
prctl = ctypes.CDLL(None).prctl
prctl(1, 9, 0, 0, 0)
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
link = os.getpid()
child = os.fork()
if child:
    os.close(0)
    status = os.waitpid(child, 0)[1]
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)
os.setsid()
prctl(1, 15, 0, 0, 0)
if os.getppid() != link:
    os._exit(1)
sys.path.insert(0, sys.argv[2])
from lynceus.supervisor.runner import main
os._exit(main(sys.argv[3:]))
"""


def failed(detail: str, *, reason: str = "infra", seconds: float = 0.0) -> dict[str, Any]:
    """The end of a run of which no supervisor could tell."""
    return {
        "v": 1,
        "end": "failed",
        "reason": reason,
        "seconds": seconds,
        "metrics": {},
        "trace": [],
        "detail": detail,
        "node": os.uname().nodename,
        "ended_s": time.time(),
    }


class Work:
    """One run on this node."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._folder = ""
        self._cancelled = False
        self._lock = -1

    def whole(self, parcel: dict[str, Any], private: dict[str, Any], nodes: list[str], group: str) -> dict[str, Any]:
        """From an empty folder to how the job ended."""
        host = os.uname().nodename
        base = parcel["folder"] or os.path.join(tempfile.gettempdir(), f"lynceus-ray-{os.getuid()}")
        try:
            os.makedirs(base, mode=0o700, exist_ok=True)
            runner = self._placed(parcel, base)
            sweep(base, runner)
            self._make_folder(parcel, base)
            cwd = self._working_directory(parcel)
        except OSError as error:
            return failed(f"the node {host} cannot hold a run in {base}: {error.strerror}")
        if not os.path.isdir(cwd):
            return failed(
                f"the node {host} does not see the working directory {cwd}; mount it there, or let it be shipped (workdir: ship)"
            )
        try:
            with open(self._path("request.json"), "w", encoding="utf-8") as file:
                json.dump({**parcel["record"], "cwd": cwd}, file)
            return self._supervised(runner, {**private, **self._surroundings(private, nodes, group)})
        except OSError as error:
            return failed(f"the node {host} could not start the run: {error.strerror}")

    def _placed(self, parcel: dict[str, Any], base: str) -> str:
        """The supervisor as one file, once per node and version."""
        path = os.path.join(base, parcel["runner_name"])
        if not os.path.exists(path):
            passing = f"{path}.{os.getpid()}.new"
            with open(passing, "wb") as file:
                file.write(parcel["runner"])
            os.rename(passing, path)
        return path

    def _make_folder(self, parcel: dict[str, Any], base: str) -> None:
        self._folder = os.path.join(base, f"{parcel['record']['run']}-{self._rank}")
        while True:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                self._lock = os.open(self._path(_KEPT), os.O_RDWR | os.O_CREAT, 0o600)
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                if os.fstat(self._lock).st_nlink:
                    break
                os.close(self._lock)  # another keeper took the folder for abandoned before we held it, and removed it
        for name, data in parcel["files"].items():
            with open(self._path(name), "wb") as file:
                file.write(data)
            os.chmod(file.name, 0o700)
        if self._cancelled:
            self.cancel()

    def _working_directory(self, parcel: dict[str, Any]) -> str:
        if parcel["workdir"] is None:
            return str(parcel["record"]["cwd"])
        from ray.experimental import internal_kv

        packed = internal_kv._internal_kv_get(parcel["workdir"].encode(), namespace=b"lynceus")
        if packed is None:
            raise OSError(0, "the shipped working directory is gone from the cluster")
        unpack(packed, self._path("work"))
        return self._path("work")

    @staticmethod
    def _surroundings(private: dict[str, Any], nodes: list[str], group: str) -> dict[str, Any]:
        """What the job is told of the cluster, beside its own variables."""
        import ray

        told = {
            "LYNCEUS_NUM_NODES": str(len(nodes)),
            "LYNCEUS_NODE_IPS": "\n".join(nodes),
            "LYNCEUS_RAY_PLACEMENT_GROUP": group,
            "RAY_ADDRESS": ray.get_runtime_context().gcs_address,
        }
        mine: dict[str, str] = private["environment"]
        return {"environment": {**told, **mine}, "without": [name for name in _OF_WORKERS if name not in mine]}

    def _supervised(self, runner: str, given: dict[str, Any]) -> dict[str, Any]:
        """Blocks until the job has ended. The thread that started the link must live as long: the kernel watches it."""
        given["environment"]["LYNCEUS_NODE_RANK"] = str(self._rank)
        command = [sys.executable, "-I", "-S", "-c", _LINK, str(os.getpid()), runner, "run", self._folder, "-"]
        with open(self._path("supervisor.log"), "ab") as log:
            link = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd="/")
        with contextlib.suppress(BrokenPipeError):
            link.communicate(json.dumps(given).encode())
        told = self._outcome()
        if told is None:  # the supervisor is gone without a word
            ask = [sys.executable, "-I", "-S", runner, "state", self._folder]
            found = subprocess.run(ask, capture_output=True, check=False)
            told = json.loads(found.stdout)["outcome"] if found.returncode == 0 else None
        if told is None:
            words = _text(self._path("supervisor.log")).strip().splitlines()
            told = failed(
                f"its supervisor could not be started on {os.uname().nodename}{f': {words[-1]}' if words else ''}"
            )
        return told

    def cancel(self) -> None:
        """Let the supervisor end the job, now or as soon as it begins."""
        self._cancelled = True
        if self._folder:
            with contextlib.suppress(OSError), open(self._path("cancel"), "wb"):
                pass

    def seconds(self) -> float:
        """How long the job has run, as its supervisor last said."""
        if not self._folder:
            return 0.0
        if (told := self._outcome()) is not None:
            return float(told["seconds"])
        try:
            return float(_text(self._path("alive")))
        except ValueError:
            return 0.0

    def output(self, offsets: dict[str, int]) -> dict[str, bytes]:
        """What the job wrote to each stream, from an offset on."""
        found: dict[str, bytes] = {}
        for stream in STREAMS if self._folder else ():
            data = b"".join(_bytes(self._path(f"{stream}{part}")) for part in ("", ".older", ".tail"))
            found[stream] = data[offsets.get(stream, 0) :]
        return found

    def remove(self) -> None:
        """Leave nothing on the node."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""
            os.close(self._lock)

    def _outcome(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(_text(self._path("outcome.json")))
        except ValueError:
            return None
        return found

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)


def sweep(base: str, runner: str) -> list[str]:
    """End and remove what keepers that were killed left on this node; returns the folders."""
    swept = []
    for name in os.listdir(base) if os.path.isdir(base) else ():
        folder = os.path.join(base, name)
        if os.path.isdir(folder) and (held := _claim(folder)) is not None:
            subprocess.run([sys.executable, "-I", "-S", runner, "end", folder], capture_output=True, check=False)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(held)
            swept.append(folder)
    return swept


def abandoned(base: str) -> list[str]:
    """Folders of runs on this node whose keepers are gone."""
    base = base or os.path.join(tempfile.gettempdir(), f"lynceus-ray-{os.getuid()}")
    found = []
    for name in os.listdir(base) if os.path.isdir(base) else ():
        folder = os.path.join(base, name)
        if os.path.isdir(folder) and (held := _claim(folder)) is not None:
            os.close(held)
            found.append(folder)
    return found


def _claim(folder: str) -> int | None:
    """Take a folder whose keeper is gone; nobody else gets it until the descriptor is closed. Nothing where it has a keeper."""
    try:
        held = os.open(os.path.join(folder, _KEPT), os.O_RDWR)
    except FileNotFoundError:  # a keeper was about to make its lock, or died then
        with contextlib.suppress(OSError):
            return os.open(folder, os.O_RDONLY) if time.time() - os.path.getmtime(folder) > _YOUNG_S else None
        return None
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        return None
    return held


def unpack(packed: bytes, folder: str) -> None:
    """Unpack a zip file, with the permissions that it holds."""
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        for entry in archive.infolist():
            path = archive.extract(entry, folder)
            os.chmod(path, 0o700 if entry.is_dir() else (entry.external_attr >> 16) & 0o777 | 0o600)


def _text(path: str) -> str:
    return _bytes(path).decode("utf-8", "replace")


def _bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
