"""A whole SkyPilot on one machine: its API server, an sshd on loopback, and behind it a Slurm whose nodes are SkyPilot's machines.

Everything lives in one folder and listens on 127.0.0.1 alone. `python -m tests.skypilot_bench FOLDER` keeps it up until Ctrl-C, for people.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parents[1]
PYTHON = HERE / ".venv-skypilot" / "bin" / "python"
"""Made by `make skypilot`."""
_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "sshd", "ssh-keygen", "rsync")
_NODES = {"small": (2, 1), "large": (2, 2)}
"""Partition → nodes, processors of each."""
_UP_S = 120.0


def missing() -> str:
    """Why the bench cannot be started here; empty when it can."""
    if not PYTHON.exists():
        return "SkyPilot's environment .venv-skypilot is missing: run 'make skypilot'"
    if os.geteuid() != 0:
        return "the Slurm behind SkyPilot is started by root alone"
    absent = [name for name in _PROGRAMS if _program(name) is None]
    return f"{', '.join(absent)} not installed: run 'make skypilot'" if absent else ""


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


@dataclass(frozen=True)
class Bench:
    """A running bench."""

    folder: Path
    api_port: int
    processes: dict[str, subprocess.Popen[bytes]]

    @property
    def environment(self) -> dict[str, str]:
        """For whoever speaks to this SkyPilot: its home and the port of its API server."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "SKYPILOT_"))},
            "HOME": str(self.folder / "home"),
            "SKYPILOT_API_SERVER_LOCAL_PORT": str(self.api_port),
            "SKYPILOT_DISABLE_USAGE_COLLECTION": "1",
        }

    def sky(self, *words: str, timeout_s: float = 600.0) -> str:
        """SkyPilot's command line."""
        command = [str(PYTHON.parent / "sky"), *words]
        return _said(command, self.environment, timeout_s)

    def slurm(self, *words: str) -> str:
        """A command of the Slurm behind it, such as `squeue --noheader`."""
        return _said(list(words), {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}, 60.0)


def _said(command: list[str], environment: dict[str, str], timeout_s: float) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(command)} ended with {done.returncode}: {done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    return done.stdout


@contextlib.contextmanager
def skypilot_bench(folder: Path) -> Iterator[Bench]:
    """Bring it up, and take everything down again at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    bench = Bench(folder, _free_ports(1)[0], {})
    try:
        _start_slurm(bench)
        _start_sshd(bench)
        _start_api(bench)
        yield bench
    finally:
        _stop(bench)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def _daemon(bench: Bench, name: str, *command: str, **variables: str) -> None:
    """In the foreground of a session of its own, so that its number is known."""
    path = _program(command[0])
    assert path is not None
    with open(bench.folder / f"{name}.log", "ab") as log:
        bench.processes[name] = subprocess.Popen(
            [path, *command[1:]],
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, set()),
        )


def _start_slurm(bench: Bench) -> None:
    folder = bench.folder
    for name in ("state", "spool", "uv", "shared"):
        (folder / name).mkdir(exist_ok=True)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    _daemon(
        bench, "munged", "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket",
        f"--pid-file={folder}/munged.pid", f"--seed-file={folder}/munge.seed", f"--log-file={folder}/munged.log",
    )  # fmt: skip
    _until(bench, "munge's socket", (folder / "munge.socket").exists)
    controller, *ports = _free_ports(1 + sum(count for count, _ in _NODES.values()))
    nodes, lines = [], []
    for partition, (count, cpus) in _NODES.items():
        names = [f"lynceus-bench-{partition}{i + 1}" for i in range(count)]
        nodes += names
        lines += [
            f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={ports.pop()} CPUs={cpus} RealMemory=4000"
            for name in names
        ]
        default = " Default=YES" if partition == "small" else ""
        lines.append(f"PartitionName={partition} Nodes={','.join(names)} MaxTime=INFINITE{default} State=UP")
    _name_nodes(nodes)
    prolog = _uv_for_nodes(folder)
    (folder / "slurm.conf").write_text(
        _SLURM_CONF.format(folder=folder, port=controller, prolog=prolog) + "\n".join(lines) + "\n"
    )
    conf = {"SLURM_CONF": str(folder / "slurm.conf")}
    _daemon(bench, "slurmctld", "slurmctld", "-D", "-c", **conf)
    for name in nodes:
        _daemon(bench, name, "slurmd", "-D", "-N", name, **conf)
    _until(
        bench, "Slurm's nodes", lambda: bench.slurm("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * len(nodes)
    )


_HOSTS = Path("/etc/hosts")
_MARK = "# nodes of the SkyPilot bench of Lynceus"


def _name_nodes(nodes: list[str]) -> None:
    """SkyPilot looks the nodes' names up, as on a real cluster; here the hosts file must know them."""
    lines = [line for line in _HOSTS.read_text().splitlines() if _MARK not in line]
    if nodes:
        lines.append(f"127.0.0.1 {' '.join(nodes)} {_MARK}")
    _HOSTS.write_text("\n".join(lines) + "\n")


_SLURM_CONF = """\
ClusterName=bench
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
MailProg=/bin/true
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool/%n
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
PrologSlurmctld={prolog}
KillWait=5
SchedulerParameters=sched_interval=1,batch_sched_delay=1
"""


def _uv_for_nodes(folder: Path) -> Path:
    """A site without the internet gives its nodes what SkyPilot's set-up would download: `uv`, pointed to where pip here finds packages.

    SkyPilot asks for Python 3.10, the nodes have ours.
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
    """pip's own configuration in uv's words."""
    listed = _said([str(PYTHON), "-m", "pip", "config", "list"], dict(os.environ), 60.0)
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
    # pip takes the best version of all indexes; uv does so when told.
    return {"UV_INDEX_STRATEGY": "unsafe-best-match"} | {uv: found[pip] for pip, uv in names.items() if pip in found}


def _start_sshd(bench: Bench) -> None:
    folder = bench.folder
    port = _free_ports(1)[0]
    for name in ("host_key", "user_key"):
        (folder / name).unlink(missing_ok=True)
        _said(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], dict(os.environ), 60.0)
    shutil.copy(folder / "user_key.pub", folder / "authorized_keys")
    (folder / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\nPidFile {folder}/sshd.pid\n"
        f"AuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        f"UsePAM no\nMaxStartups 100\nMaxSessions 100\nSetEnv SLURM_CONF={folder}/slurm.conf\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    _daemon(bench, "sshd", "sshd", "-D", "-e", "-f", str(folder / "sshd_config"))
    home = folder / "home"
    (home / ".slurm").mkdir(parents=True, exist_ok=True)
    (home / ".slurm" / "config").write_text(
        f"Host bench\n  HostName 127.0.0.1\n  Port {port}\n  User {getpass.getuser()}\n"
        f"  IdentityFile {folder}/user_key\n  IdentitiesOnly yes\n"
    )
    (home / ".sky").mkdir(exist_ok=True)
    (home / ".sky" / "config.yaml").write_text(
        f"slurm:\n  provision_timeout: 60\n  cluster_configs:\n    bench:\n      workdir: {folder}/shared\n      tmpdir: {folder}/nodes\n"
    )
    (folder / "nodes").mkdir(exist_ok=True)


def _start_api(bench: Bench) -> None:
    bench.sky("api", "start")
    bench.sky("check", "slurm")


def _until(bench: Bench, what: str, true: object) -> None:
    assert callable(true)
    until = time.monotonic() + _UP_S
    while True:
        with contextlib.suppress(RuntimeError):
            if true():
                return
        dead = [name for name, process in bench.processes.items() if process.poll() is not None]
        if dead or time.monotonic() > until:
            logs = "".join((bench.folder / f"{name}.log").read_text(errors="replace")[-2000:] for name in dead)
            raise RuntimeError(f"{what} did not come up; ended: {dead}\n{logs}")
        time.sleep(0.2)


def _stop(bench: Bench) -> None:
    """Clusters first (their jobs are Slurm's), then the daemons, newest first."""
    with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
        bench.sky("api", "stop", timeout_s=60)
    if "slurmctld" in bench.processes:
        with contextlib.suppress(RuntimeError, subprocess.TimeoutExpired):
            bench.slurm("scancel", f"--user={getpass.getuser()}")
            until = time.monotonic() + 30
            while bench.slurm("squeue", "-h").strip() and time.monotonic() < until:
                time.sleep(0.5)
    for process in reversed(bench.processes.values()):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    _name_nodes([])


def main() -> None:
    """Keep a bench up for people."""
    if reason := missing():
        sys.exit(reason)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    with skypilot_bench(Path(sys.argv[1]).resolve()) as bench:
        print(f"export HOME={bench.folder}/home SKYPILOT_API_SERVER_LOCAL_PORT={bench.api_port}", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
