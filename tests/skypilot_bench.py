"""A real SkyPilot on one machine: its API server, an sshd on loopback, and a Slurm cluster whose nodes are SkyPilot's machines.

Everything is in one folder and listens on 127.0.0.1 only. `python tests/skypilot_bench.py FOLDER` runs it until Ctrl-C.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import slurm_bench
from ports import free_ports

PYTHON = Path(__file__).parents[1] / ".venv-skypilot" / "bin" / "python"
"""Created by `make skypilot`."""
_PROGRAMS = ("sshd", "ssh-keygen", "rsync")


def missing() -> str:
    """Why it cannot be started here; empty if it can."""
    if not PYTHON.exists():
        return "SkyPilot's environment .venv-skypilot is missing: run 'make skypilot'"
    absent = [name for name in _PROGRAMS if _program(name) is None]
    return f"{', '.join(absent)} not installed: run 'make skypilot'" if absent else slurm_bench.missing()


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


@dataclass(frozen=True)
class Bench:
    """A running SkyPilot."""

    folder: Path
    slurm: slurm_bench.SlurmBench
    api_port: int

    @property
    def environment(self) -> dict[str, str]:
        """The environment of clients of this SkyPilot: its home directory and the port of its API server."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SKYPILOT_"))},
            "HOME": str(self.folder / "home"),
            "SKYPILOT_API_SERVER_LOCAL_PORT": str(self.api_port),
            "SKYPILOT_DISABLE_USAGE_COLLECTION": "1",
        }

    def sky(self, *words: str, timeout_s: float = 600.0) -> str:
        """Run SkyPilot's command line and return its output."""
        command = [str(PYTHON.parent / "sky"), *words]
        return _output_of(command, self.environment, timeout_s)


def _output_of(command: list[str], environment: dict[str, str], timeout_s: float) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(command)} ended with {done.returncode}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    return done.stdout


@contextlib.contextmanager
def skypilot_bench(folder: Path) -> Iterator[Bench]:
    """A running SkyPilot as a context."""
    for name in ("home", "shared", "nodes", "uv"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    slurm = slurm_bench.SlurmBench(folder / "slurm", more=f"PrologSlurmctld={_uv_for_nodes(folder)}\n")
    bench = Bench(folder, slurm, free_ports(1)[0])
    with contextlib.ExitStack() as stack:
        stack.callback(_write_hosts, folder, [])
        _write_hosts(folder, list(slurm.nodes))
        stack.callback(slurm.stop)
        slurm.start()
        stack.enter_context(_sshd(bench))
        stack.callback(_stop_api, bench)
        bench.sky("api", "start")
        bench.sky("check", "slurm")
        yield bench


def _stop_api(bench: Bench) -> None:
    with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
        bench.sky("api", "stop", timeout_s=60)


_HOSTS = Path("/etc/hosts")


def _write_hosts(folder: Path, nodes: list[str]) -> None:
    """SkyPilot resolves the names of the nodes, as on a real cluster; here they must be in the hosts file."""
    comment = f"# Lynceus bench {folder}"
    lines = [line for line in _HOSTS.read_text().splitlines() if not line.endswith(comment)]
    if nodes:
        lines.append(f"127.0.0.1 {' '.join(nodes)} {comment}")
    _HOSTS.write_text("\n".join(lines) + "\n")


def _uv_for_nodes(folder: Path) -> Path:
    """Install `uv` on the nodes, which SkyPilot would otherwise download; it uses the package sources of the local pip.

    SkyPilot requests Python 3.10, but the nodes have ours.
    """
    exported = "\n".join(f"export {name}='{value}'" for name, value in _package_sources().items())
    python = os.path.realpath(PYTHON)
    uv = folder / "uv" / "uv"
    uv.write_text(
        "#!/bin/sh\n"
        f"{exported}\n"
        'for word; do shift; [ "$word" = 3.10 ] && word=' + python + '; set -- "$@" "$word"; done\n'
        f'exec {PYTHON.parent / "uv"} "$@"\n'
    )
    uv.chmod(0o755)
    prolog = folder / "uv" / "prolog"
    prolog.write_text(
        "#!/bin/sh\n"
        f'home="{folder}/shared/.sky_clusters/$SLURM_JOB_NAME/.local/bin"\n'
        f'mkdir -p "$home" && ln -sf {uv} "$home/uv"\n'
    )
    prolog.chmod(0o755)
    return prolog


def _package_sources() -> dict[str, str]:
    """The configuration of pip as variables of uv."""
    listed = _output_of([str(PYTHON), "-m", "pip", "config", "list"], dict(os.environ), 60.0)
    found: dict[str, str] = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        found[name.rpartition(".")[2]] = value.strip("'\"")
    names = {
        "index-url": "UV_DEFAULT_INDEX",
        "extra-index-url": "UV_EXTRA_INDEX_URL",
        "find-links": "UV_FIND_LINKS",
        "cert": "SSL_CERT_FILE",
    }
    # pip takes the best version of all indexes; uv needs an option for that.
    return {"UV_INDEX_STRATEGY": "unsafe-best-match"} | {uv: found[pip] for pip, uv in names.items() if pip in found}


@contextlib.contextmanager
def _sshd(bench: Bench) -> Iterator[None]:
    """An sshd on loopback that accepts one key; SkyPilot is configured to use it."""
    folder, port = bench.folder, free_ports(1)[0]
    for name in ("host_key", "user_key"):
        (folder / name).unlink(missing_ok=True)
        _output_of(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], dict(os.environ), 60.0)
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\nPidFile {folder}/sshd.pid\n"
        f"AuthorizedKeysFile {folder}/user_key.pub\nStrictModes no\nPasswordAuthentication no\n"
        "PermitRootLogin prohibit-password\nUsePAM no\nMaxStartups 100\nMaxSessions 100\n"
        f"SetEnv SLURM_CONF={bench.slurm.environment['SLURM_CONF']}\n"
    )
    _configure_skypilot(folder, port)
    Path("/run/sshd").mkdir(exist_ok=True)
    program = _program("sshd")
    assert program is not None
    with open(folder / "sshd.log", "ab") as log:
        sshd = subprocess.Popen([program, "-D", "-e", "-f", str(folder / "sshd_config")], stderr=log)
    try:
        yield
    finally:
        sshd.terminate()
        sshd.wait(10)


def _configure_skypilot(folder: Path, port: int) -> None:
    home = folder / "home"
    (home / ".slurm").mkdir(exist_ok=True)
    (home / ".slurm" / "config").write_text(
        f"Host bench\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n"
        f"  IdentityFile {folder}/user_key\n  IdentitiesOnly yes\n"
    )
    (home / ".sky").mkdir(exist_ok=True)
    (home / ".sky" / "config.yaml").write_text(
        f"slurm:\n  provision_timeout: 60\n  cluster_configs:\n    bench:\n      workdir: {folder}/shared\n      tmpdir: {folder}/nodes\n"
    )


def main() -> None:
    """Run until Ctrl-C."""
    if reason := missing():
        sys.exit(reason)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), skypilot_bench(Path(sys.argv[1]).resolve()) as bench:
        print(f"export HOME={bench.folder}/home SKYPILOT_API_SERVER_LOCAL_PORT={bench.api_port}", flush=True)
        signal.pause()


if __name__ == "__main__":
    main()
