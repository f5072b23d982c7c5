"""A Slurm with accounts: the cluster of `slurm_bench.py`, with slurmdbd and a MariaDB of its own below the same folder."""

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import slurm_bench
from ports import free_ports
from slurm_bench import SlurmBench

_PATIENCE_S = 60.0
_ACCOUNTING = """\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={port}
AccountingStoragePass={folder}/munge.sock
AccountingStorageEnforce=associations,limits,qos"""
_DAEMON = """\
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost=localhost
DbdPort={port}
SlurmUser=root
LogFile={folder}/slurmdbd.log
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=root
StorageLoc=accounts
"""


def missing() -> str:
    """Why there can be no such cluster here; empty if there can be."""
    absent = [name for name in ("slurmdbd", "mariadbd", "mariadb-install-db", "mariadb") if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed: 'make slurm' installs them"
    return slurm_bench.missing()


@contextlib.contextmanager
def slurm_with_accounts(folder: Path, *orders: str) -> Iterator[SlurmBench]:
    """A cluster whose accounts were set up by these orders to sacctmgr."""
    daemon, database = free_ports(2)
    words = {"folder": folder / "slurm", "port": daemon, "database": database}
    bench = SlurmBench(folder / "slurm", accounting=_ACCOUNTING.format(**words))
    with contextlib.ExitStack() as down:
        down.enter_context(_mariadb(folder / "database", database))
        down.callback(bench.stop)
        bench.prepare()
        settings = bench.folder / "slurmdbd.conf"
        settings.write_text(_DAEMON.format(**words))
        settings.chmod(0o600)
        down.callback(bench.end, "slurmdbd.pid", signal.SIGTERM)
        bench.run("slurmdbd")
        _until(lambda: bench.run("sacctmgr", "--immediate", "add", "cluster", "bench"))
        for order in orders:
            bench.run("sacctmgr", "--immediate", *order.split())
        bench.start_cluster()
        yield bench


@contextlib.contextmanager
def _mariadb(folder: Path, port: int) -> Iterator[None]:
    data = ["--no-defaults", f"--datadir={folder}", "--user=root"]
    subprocess.run(["mariadb-install-db", *data, "--skip-test-db"], check=True, capture_output=True, timeout=120)
    socket = f"--socket={folder}/socket"
    command = ["mariadbd", *data, socket, f"--port={port}", "--bind-address=127.0.0.1", "--skip-grant-tables"]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            ask = ["mariadb", "--no-defaults", socket, "--execute=CREATE DATABASE IF NOT EXISTS accounts"]
            _until(lambda: subprocess.run(ask, check=True, capture_output=True, timeout=60))
            yield
        finally:
            server.terminate()
            server.wait()


def _until(attempt: Callable[[], object]) -> None:
    """Try until it succeeds."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            attempt()
        except (RuntimeError, subprocess.CalledProcessError):
            if time.monotonic() > until:
                raise
            time.sleep(0.2)
        else:
            return
