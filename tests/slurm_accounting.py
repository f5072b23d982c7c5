"""A Slurm cluster with accounting: that of `slurm_bench.py`, with slurmdbd and MariaDB."""

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
AccountingStorageEnforce=associations,limits,qos
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1"""
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
    """Why such a cluster cannot be started here; empty if it can."""
    absent = [name for name in ("slurmdbd", "mariadbd", "mariadb-install-db", "mariadb") if shutil.which(name) is None]
    if absent:
        return f"{', '.join(absent)} not installed: 'make slurm' installs them"
    return slurm_bench.missing()


@contextlib.contextmanager
def slurm_with_accounts(folder: Path, *commands: str) -> Iterator[SlurmBench]:
    """A cluster whose accounts are set up by these commands of sacctmgr."""
    daemon, database = free_ports(2)
    values = {"folder": folder / "slurm", "port": daemon, "database": database}
    bench = SlurmBench(folder / "slurm", accounting=_ACCOUNTING.format(**values))
    with contextlib.ExitStack() as stack:
        stack.enter_context(_mariadb(folder / "database", database))
        stack.callback(bench.stop)
        bench.prepare()
        settings = bench.folder / "slurmdbd.conf"
        settings.write_text(_DAEMON.format(**values))
        settings.chmod(0o600)
        stack.callback(bench.kill, "slurmdbd.pid", signal.SIGTERM)
        bench.run("slurmdbd")
        _retry(lambda: bench.run("sacctmgr", "--immediate", "add", "cluster", "bench"))
        for command in commands:
            bench.run("sacctmgr", "--immediate", *command.split())
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
            _retry(lambda: subprocess.run(ask, check=True, capture_output=True, timeout=60))
            yield
        finally:
            server.terminate()
            server.wait()


def _retry(attempt: Callable[[], object]) -> None:
    """Retry until it succeeds."""
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
