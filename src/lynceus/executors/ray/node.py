"""What an actor does on its node: a folder for the run, the supervisor in its own process, and cleaning up after them.

Only the standard library and Ray are used here, see `actor`.
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
from typing import TYPE_CHECKING, Any

from lynceus.executors.supervisor.commands import EXIT_DISK_FULL
from lynceus.executors.supervisor.files import open_regular, read_regular
from lynceus.executors.supervisor.outcome_record import not_started

if TYPE_CHECKING:
    from lynceus.executors.supervisor.outcome_record import OutcomeRecord

STREAMS = ("stdout", "stderr")
_LOCK = "keeper.lock"
"""The actor holds it as long as it lives. Earlier versions use the same name."""
_NEW_FOLDER_S = 60.0
"""A folder without a lock may be one that is just being made."""
_WORKER_VARIABLES = ("RAY_JOB_ID", "RAY_RAYLET_PID", "RAY_CLIENT_MODE", "RAY_LD_PRELOAD_ON_WORKERS", "PYTHONBREAKPOINT")
"""Variables that Ray sets for its own workers; they would confuse a job that uses Ray."""

# Ray kills the children of a worker that ends, and a killed supervisor could not kill the job's daemons. So the child of the actor is a
# process that only waits; when it dies, for whatever reason, the kernel sends SIGTERM to the supervisor, which then stops everything.
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
from lynceus.executors.supervisor.commands import main
os._exit(main(sys.argv[3:]))
"""


class NodeRun:
    """One run on this node."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._folder = ""
        self._cancelled = False
        self._lock = -1

    def execute(self, payload: dict[str, Any], private: dict[str, Any], nodes: list[str], group: str) -> OutcomeRecord:
        """Make a folder, run the job in it, and return how it ended."""
        host = os.uname().nodename
        base = payload["folder"] or os.path.join(tempfile.gettempdir(), f"lynceus-ray-{os.getuid()}")
        try:
            os.makedirs(base, mode=0o700, exist_ok=True)
            runner = self._write_runner(payload, base)
            remove_abandoned(base, runner)
            self._make_folder(payload, base)
            cwd = self._working_directory(payload)
        except OSError as error:
            return _failed_here(f"the node {host} cannot store a run in {base}: {error.strerror}")
        if not os.path.isdir(cwd):
            return _failed_here(
                f"the node {host} cannot see the working directory {cwd}; mount it there, or have it copied (workdir: ship)"
            )
        try:
            with open(self._path("request.json"), "w", encoding="utf-8") as file:
                json.dump({**payload["record"], "cwd": cwd}, file)
            return self._supervise(runner, {**private, **self._environment(private, nodes, group)})
        except OSError as error:
            return _failed_here(f"the node {host} could not start the run: {error.strerror}")

    def _write_runner(self, payload: dict[str, Any], base: str) -> str:
        """The path of the supervisor, which is a single file per node and version."""
        path = os.path.join(base, payload["runner_name"])
        if not os.path.exists(path):
            temporary = f"{path}.{os.getpid()}.new"
            try:
                with open(temporary, "wb") as file:
                    file.write(payload["runner"])
                os.rename(temporary, path)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)  # on a full disk, a part of it would make matters worse
                raise
        return path

    def _make_folder(self, payload: dict[str, Any], base: str) -> None:
        self._folder = os.path.join(base, f"{payload['record']['run']}-{self._rank}")
        while True:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                self._lock = os.open(self._path(_LOCK), os.O_RDWR | os.O_CREAT, 0o600)
                fcntl.flock(self._lock, fcntl.LOCK_EX)
                if os.fstat(self._lock).st_nlink:
                    break
                os.close(self._lock)  # another actor removed the folder as abandoned before we held the lock
        for name, data in payload["files"].items():
            with open(self._path(name), "wb") as file:
                file.write(data)
            os.chmod(file.name, 0o700)
        if self._cancelled:
            self.cancel()

    def _working_directory(self, payload: dict[str, Any]) -> str:
        if payload["workdir"] is None:
            return str(payload["record"]["cwd"])
        from ray.experimental import internal_kv

        packed = internal_kv._internal_kv_get(payload["workdir"].encode(), namespace=b"lynceus")
        if packed is None:
            raise OSError(0, "the copy of the working directory is no longer on the cluster")
        unpack(packed, self._path("work"))
        return self._path("work")

    @staticmethod
    def _environment(private: dict[str, Any], nodes: list[str], group: str) -> dict[str, Any]:
        """The job's own variables, and those that describe the cluster."""
        import ray

        about_cluster = {
            "LYNCEUS_NUM_NODES": str(len(nodes)),
            "LYNCEUS_NODE_IPS": "\n".join(nodes),
            "LYNCEUS_RAY_PLACEMENT_GROUP": group,
            "RAY_ADDRESS": ray.get_runtime_context().gcs_address,
        }
        own: dict[str, str] = private["environment"]
        return {
            "environment": {**about_cluster, **own},
            "without": [*private["without"], *(name for name in _WORKER_VARIABLES if name not in own)],
        }

    def _supervise(self, runner: str, given: dict[str, Any]) -> OutcomeRecord:
        """Blocks until the job has ended. It must run in a thread that lives as long: the kernel links the child to the thread."""
        given["environment"]["LYNCEUS_NODE_RANK"] = str(self._rank)
        command = [sys.executable, "-I", "-S", "-c", _LINK, str(os.getpid()), runner, "run", self._folder, "-"]
        with open(self._path("supervisor.log"), "ab") as log:
            link = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, cwd="/")
        with contextlib.suppress(BrokenPipeError):
            link.communicate(json.dumps(given).encode())
        record = self._outcome()
        if record is None and link.returncode == EXIT_DISK_FULL:
            return _failed_here(
                f"the disk of the node {os.uname().nodename} is full; free some space in {self._folder}"
            )
        if record is None:  # the supervisor died
            ask = [sys.executable, "-I", "-S", runner, "state", self._folder]
            found = subprocess.run(ask, capture_output=True, check=False)
            record = json.loads(found.stdout)["outcome"] if found.returncode == 0 else None
        if record is None:
            log_lines = _text(self._path("supervisor.log")).strip().splitlines()
            last_line = f": {log_lines[-1]}" if log_lines else ""
            record = _failed_here(f"the supervisor could not be started on {os.uname().nodename}{last_line}")
        return record

    def cancel(self) -> None:
        """Have the supervisor stop the job, now or as soon as it starts."""
        self._cancelled = True
        if self._folder:
            with contextlib.suppress(OSError):
                os.close(open_regular(self._path("cancel"), os.O_WRONLY | os.O_CREAT))

    def seconds(self) -> float:
        """How long the job has run, by its supervisor's last heartbeat."""
        if not self._folder:
            return 0.0
        if (record := self._outcome()) is not None:
            return float(record["seconds"])
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
        """Delete the run's folder."""
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""
            os.close(self._lock)

    def _outcome(self) -> OutcomeRecord | None:
        try:
            found: OutcomeRecord = json.loads(_text(self._path("outcome.json")))
        except ValueError:
            return None
        return found

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)


def _failed_here(detail: str) -> OutcomeRecord:
    return {**not_started(detail), "node": os.uname().nodename}


def remove_abandoned(base: str, runner: str) -> list[str]:
    """Stop and remove the runs of actors that were killed on this node; returns their folders."""
    removed = []
    for name in os.listdir(base) if os.path.isdir(base) else ():
        folder = os.path.join(base, name)
        if os.path.isdir(folder) and (lock := _lock_if_abandoned(folder)) is not None:
            subprocess.run([sys.executable, "-I", "-S", runner, "end", folder], capture_output=True, check=False)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
            removed.append(folder)
    return removed


def _lock_if_abandoned(folder: str) -> int | None:
    """Lock a folder whose actor is gone, until the descriptor is closed; None if its actor is alive."""
    try:
        lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR)
    except FileNotFoundError:  # an actor is about to make the lock, or died before it could
        with contextlib.suppress(OSError):
            return os.open(folder, os.O_RDONLY) if time.time() - os.path.getmtime(folder) > _NEW_FOLDER_S else None
        return None
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def unpack(packed: bytes, folder: str) -> None:
    """Unpack a zip file, with the permissions of its files."""
    os.makedirs(folder, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        for entry in archive.infolist():
            path = archive.extract(entry, folder)
            os.chmod(path, 0o700 if entry.is_dir() else (entry.external_attr >> 16) & 0o777 | 0o600)


def _text(path: str) -> str:
    return _bytes(path).decode("utf-8", "replace")


def _bytes(path: str) -> bytes:
    try:
        return read_regular(path) or b""
    except OSError:
        return b""
