"""A real PostgreSQL server for tests, reached through a Unix socket in its own folder."""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


def binaries() -> Path | None:
    """The folder of the server's programs; on Debian it is not on the PATH."""
    found = [Path(path).resolve().parent for path in [shutil.which("initdb")] if path is not None]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in found if (folder / "postgres").exists()), None)


class Server:
    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder, self._programs = folder, programs
        self._data = folder / "data"
        # The server refuses to run as root.
        self._user = "postgres" if os.getuid() == 0 else None
        if self._user is not None:
            account = pwd.getpwnam(self._user)
            os.chown(folder, account.pw_uid, account.pw_gid)
        folder.chmod(0o755)
        self._run("initdb", "-D", str(self._data), "-U", "lynceus", "-A", "trust", "--no-sync")
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://lynceus@/postgres?host={self.folder}"

    def start(self) -> None:
        # A killed process loses nothing that the kernel has; fsync guards against power cuts, which tests do not simulate.
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' -c fsync=off"
        for attempt in range(50):  # after a kill, the children of the old server must notice first
            try:
                self._run("pg_ctl", "-D", str(self._data), "-w", "-l", str(self.folder / "log"), "-o", options, "start")
                return
            except subprocess.CalledProcessError:
                if attempt == 49:
                    raise
                time.sleep(0.1)

    def kill(self) -> None:
        """Kill it, as the out-of-memory killer does."""
        pid = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)

    def stop(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):
            self._run("pg_ctl", "-D", str(self._data), "-w", "-m", "immediate", "stop")

    def database(self, name: str) -> str:
        """The URL of a new, empty database."""
        self._run("psql", "-h", str(self.folder), "-U", "lynceus", "-q", "-c", f'CREATE DATABASE "{name}"', "postgres")
        return f"postgresql+psycopg://lynceus@/{name}?host={self.folder}"

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._programs / program), *arguments],
            check=True,
            user=self._user,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


@contextlib.contextmanager
def server() -> Iterator[Server]:
    """A running server, or a skipped test where the package is not installed."""
    programs = binaries()
    if programs is None:
        pytest.skip("no PostgreSQL server: install the package postgresql (apt-get install postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="lynceus-pg-"))
    running = Server(folder, programs)
    try:
        yield running
    finally:
        running.stop()
        shutil.rmtree(folder, ignore_errors=True)
