"""A real Slurm cluster on this machine: munged, slurmctld and several slurmd on free ports, with all files in one folder."""

import contextlib
import os
import re
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ports import free_ports

NEEDED = ("munged", "slurmctld", "slurmd", "slurmstepd", "sbatch", "squeue", "scontrol", "scancel")
_PATIENCE_S = 240.0
"""A node that could not reach the controller asks again only after 15 s, several times; on a busy machine that adds up."""

_CONFIGURATION = """\
ClusterName=bench
SlurmctldHost=localhost
SlurmctldPort={port}
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_min_interval=10000,batch_sched_delay=0
ReturnToService=2
SlurmdTimeout=20
SlurmctldTimeout=10
KillWait=2
UnkillableStepTimeout=10
MessageTimeout=10
InactiveLimit=0
MinJobAge=300
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
JobRequeue=0
JobSubmitPlugins=lua
{accounting}
{nodes}
PartitionName=main Nodes=cheap[1-2],fast[1-2] Default=YES MaxTime=INFINITE PreemptMode=OFF State=UP
PartitionName=small Nodes=cheap[1-2] MaxTime=INFINITE MaxNodes=1 PreemptMode=OFF State=UP
PartitionName=short Nodes=fast[1-2] MaxTime=2 PreemptMode=OFF State=UP
PartitionName=low Nodes=cheap[1-2] MaxTime=INFINITE PriorityTier=1 PreemptMode=CANCEL State=UP
PartitionName=high Nodes=cheap[1-2] MaxTime=INFINITE PriorityTier=9 PreemptMode=OFF State=UP
PartitionName=down Nodes=fast2 MaxTime=INFINITE State=DOWN
"""


_QUOTA = """\
function slurm_job_submit(job, partitions, user)
  local file = io.open("{folder}/refuse", "r")
  if file == nil then return slurm.SUCCESS end
  local code = file:read("*n")
  file:close()
  return code
end
function slurm_job_modify(job, record, partitions, user) return slurm.SUCCESS end
return slurm.SUCCESS
"""
"""While the file `refuse` exists, the controller refuses jobs with the error number in it, as for a quota."""
OVER_QUOTA = 2050


def missing() -> str:
    """Why Slurm cannot be started here; empty if it can."""
    absent = [name for name in NEEDED if shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None]
    if absent:
        return f"Slurm is not installed ({', '.join(absent)} missing); 'make system' installs it"
    return "" if os.getuid() == 0 else "starting Slurm needs root"


@dataclass
class SlurmBench:
    """Four nodes: cheap1, cheap2 (2 CPUs, feature `cheap`), fast1, fast2 (4 CPUs, feature `fast`)."""

    folder: Path
    more: str = ""
    """Further lines of the configuration."""
    accounting: str = "AccountingStorageType=accounting_storage/none\nJobAcctGatherType=jobacct_gather/none"
    """The accounting of the controller, as lines of the configuration."""

    def __post_init__(self) -> None:
        self.nodes = {"cheap1": 2, "cheap2": 2, "fast1": 4, "fast2": 4}
        ports = free_ports(1 + len(self.nodes))
        self._ports = dict(zip(["slurmctld", *self.nodes], ports, strict=True))

    @property
    def environment(self) -> dict[str, str]:
        """The environment in which Slurm's commands use this cluster."""
        return {
            **os.environ,
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
        }

    def start(self) -> None:
        """Start everything and wait until all nodes are idle."""
        self.prepare()
        self.start_cluster()

    def prepare(self) -> None:
        """Write the configuration and start munged."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        (self.folder / "state").mkdir(exist_ok=True)
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        lines = [
            f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={self._ports[name]} CPUs={cpus} RealMemory={2000 * cpus} "
            f"Features={name[:-1]} State=UNKNOWN"
            for name, cpus in self.nodes.items()
        ]
        values = {"folder": self.folder, "port": self._ports["slurmctld"], "accounting": self.accounting}
        text = _CONFIGURATION.format(**values, nodes="\n".join(lines))
        (self.folder / "slurm.conf").write_text(text + self.more)
        (self.folder / "job_submit.lua").write_text(_QUOTA.format(folder=self.folder))
        self.run(
            "munged", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.sock", f"--pid-file={self.folder}/munged.pid",
            f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munged.seed",
        )  # fmt: skip

    def start_cluster(self) -> None:
        """Start the controller and the nodes, and wait until all nodes are idle."""
        self.start_controller(clean=True)
        for name in self.nodes:
            self.start_node(name)
        self.wait_until_idle()

    def start_controller(self, *, clean: bool = False) -> None:
        self.run("slurmctld", *(["-c"] if clean else []))

    def stop_controller(self, which: int = signal.SIGKILL) -> None:
        self.kill("slurmctld.pid", which)

    def start_node(self, name: str) -> None:
        self.run("slurmd", "-N", name, "-c")

    def stop_node(self, name: str, which: int = signal.SIGKILL) -> None:
        self.kill(f"slurmd.{name}.pid", which)

    def wait_until_idle(self) -> None:
        until = time.monotonic() + _PATIENCE_S
        while True:
            seen = self.command("sinfo", "--noheader", "--Node", "--format=%N %T").split("\n")
            states = dict(line.split() for line in seen if line)
            if set(states) == set(self.nodes) and set(states.values()) == {"idle"}:
                return
            for node in (name for name, state in states.items() if state == "drained"):
                # On a busy machine Slurm may send a job twice; it then drains the node until an administrator resumes it.
                self.command("scontrol", "update", f"nodename={node}", "state=resume")
            if time.monotonic() > until:
                raise TimeoutError(f"nodes are {states}; see {self.folder}")
            time.sleep(0.1)

    def command(self, *command: str, check: bool = True) -> str:
        """Run one of Slurm's commands and return its output. Retries if the controller is too busy to answer."""
        for left in reversed(range(5)):
            done = subprocess.run(
                command, env=self.environment, capture_output=True, text=True, check=False, timeout=120
            )
            if not check or not done.returncode:
                break
            if not left or not re.search("timed out|contact|connect", done.stderr, re.IGNORECASE):
                raise RuntimeError(f"{command}: {done.stderr}")
            time.sleep(1)
        return done.stdout

    def refuse(self, error: int | None) -> None:
        """Make the controller refuse every job with this error; None to accept jobs again."""
        if error is None:
            (self.folder / "refuse").unlink(missing_ok=True)
        else:
            (self.folder / "refuse").write_text(str(error))

    def jobs(self) -> list[str]:
        """Jobs that have not ended."""
        return self.command("squeue", "--noheader", "--format=%i %T").splitlines()

    def stop(self) -> None:
        """Stop everything."""
        with contextlib.suppress(Exception):
            self.command("scancel", "--user=root", check=False)
            until = time.monotonic() + 10
            while self.jobs() and time.monotonic() < until:
                time.sleep(0.1)
        for name in self.nodes:
            self.kill(f"slurmd.{name}.pid", signal.SIGTERM)
        self.kill("slurmctld.pid", signal.SIGKILL)
        self.kill("munged.pid", signal.SIGTERM)

    def run(self, *command: str) -> None:
        """Run a command that must succeed; daemons continue in the background."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode:
            raise RuntimeError(f"{command[0]}: {done.stderr or done.stdout}")

    def kill(self, name: str, which: int) -> None:
        """Send a signal to the daemon of a pid file and wait until it has ended."""
        try:
            pid = int((self.folder / name).read_text())
            os.kill(pid, which)
        except (FileNotFoundError, ValueError, ProcessLookupError):
            return
        until = time.monotonic() + 10
        while _is_alive(pid):
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        (self.folder / name).unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def processes_of(job: str, *, with_slurm: bool = True) -> list[int]:
    """The processes of a job, with those of Slurm that look after it."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            environ, line = (path / "environ").read_bytes().split(b"\0"), (path / "cmdline").read_bytes()
        except OSError:
            continue
        is_slurm = line.startswith(b"slurmstepd: [")
        if (f"SLURM_JOB_ID={job}".encode() in environ and not is_slurm) or (
            with_slurm and line.startswith(f"slurmstepd: [{job}.".encode())
        ):
            found.append(int(path.name))
    return found


@contextlib.contextmanager
def slurm(folder: Path) -> Iterator[SlurmBench]:
    """A cluster as a context."""
    bench = SlurmBench(folder)
    try:
        bench.start()
        yield bench
    finally:
        bench.stop()
