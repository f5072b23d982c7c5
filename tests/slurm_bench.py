"""A real Slurm on this machine: munged, slurmctld and several slurmd on free ports, below one folder, stopped by their pid files."""

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
_PATIENCE_S = 60.0

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
JobAcctGatherType=jobacct_gather/none
{nodes}
PartitionName=main Nodes=cheap[1-2],dear[1-2] Default=YES MaxTime=INFINITE PreemptMode=OFF State=UP
PartitionName=small Nodes=cheap[1-2] MaxTime=INFINITE MaxNodes=1 PreemptMode=OFF State=UP
PartitionName=short Nodes=dear[1-2] MaxTime=2 PreemptMode=OFF State=UP
PartitionName=low Nodes=cheap[1-2] MaxTime=INFINITE PriorityTier=1 PreemptMode=CANCEL State=UP
PartitionName=high Nodes=cheap[1-2] MaxTime=INFINITE PriorityTier=9 PreemptMode=OFF State=UP
PartitionName=down Nodes=dear2 MaxTime=INFINITE State=DOWN
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
"""The controller refuses jobs with the error of this number for as long as the file `refuse` is there, as for a quota."""
OVER_QUOTA = 2050


def missing() -> str:
    """Why there is no Slurm here; empty if there can be."""
    absent = [name for name in NEEDED if shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None]
    if absent:
        return f"Slurm is not installed ({', '.join(absent)} missing); 'make system' installs it"
    return "" if os.getuid() == 0 else "a Slurm of our own needs root"


@dataclass
class SlurmBench:
    """Four nodes: cheap1, cheap2 (2 processors, feature `cheap`), dear1, dear2 (4 processors, feature `dear`)."""

    folder: Path
    more: str = ""
    """Further lines of the configuration."""
    accounting: str = "AccountingStorageType=accounting_storage/none"
    """How the controller keeps accounts, in lines of the configuration."""

    def __post_init__(self) -> None:
        self.nodes = {"cheap1": 2, "cheap2": 2, "dear1": 4, "dear2": 4}
        ports = free_ports(1 + len(self.nodes))
        self._ports = dict(zip(["slurmctld", *self.nodes], ports, strict=True))

    @property
    def environment(self) -> dict[str, str]:
        """What makes Slurm's commands speak to this cluster."""
        return {
            **os.environ,
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin",
        }

    def start(self) -> None:
        """Everything up, and all nodes idle."""
        self.prepare()
        self.start_cluster()

    def prepare(self) -> None:
        """The configuration, and the daemon by which all others know each other."""
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
        words = {"folder": self.folder, "port": self._ports["slurmctld"], "accounting": self.accounting}
        text = _CONFIGURATION.format(**words, nodes="\n".join(lines))
        (self.folder / "slurm.conf").write_text(text + self.more)
        (self.folder / "job_submit.lua").write_text(_QUOTA.format(folder=self.folder))
        self.run(
            "munged", "--force", f"--key-file={key}", f"--socket={self.folder}/munge.sock", f"--pid-file={self.folder}/munged.pid",
            f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munged.seed",
        )  # fmt: skip

    def start_cluster(self) -> None:
        """Controller and nodes, until all nodes are idle."""
        self.start_controller(clean=True)
        for name in self.nodes:
            self.start_node(name)
        self.wait_until_idle()

    def start_controller(self, *, clean: bool = False) -> None:
        self.run("slurmctld", *(["-c"] if clean else []))

    def stop_controller(self, which: int = signal.SIGKILL) -> None:
        self.end("slurmctld.pid", which)

    def start_node(self, name: str) -> None:
        self.run("slurmd", "-N", name, "-c")

    def stop_node(self, name: str, which: int = signal.SIGKILL) -> None:
        self.end(f"slurmd.{name}.pid", which)

    def wait_until_idle(self) -> None:
        until = time.monotonic() + _PATIENCE_S
        while True:
            seen = self.command("sinfo", "--noheader", "--Node", "--format=%N %T").split("\n")
            states = dict(line.split() for line in seen if line)
            if set(states) == set(self.nodes) and set(states.values()) == {"idle"}:
                return
            for node in (name for name, state in states.items() if state == "drained"):
                # A starved machine makes Slurm send a job twice; it then takes the node out of service until somebody looks.
                self.command("scontrol", "update", f"nodename={node}", "state=resume")
            if time.monotonic() > until:
                raise TimeoutError(f"nodes are {states}; see {self.folder}")
            time.sleep(0.1)

    def command(self, *command: str, check: bool = True) -> str:
        """One of Slurm's commands; its output. A starved controller is asked again."""
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
        """Let the controller refuse every job with that error, or none."""
        if error is None:
            (self.folder / "refuse").unlink(missing_ok=True)
        else:
            (self.folder / "refuse").write_text(str(error))

    def jobs(self) -> list[str]:
        """Jobs that are not over."""
        return self.command("squeue", "--noheader", "--format=%i %T").splitlines()

    def stop(self) -> None:
        """Everything down."""
        with contextlib.suppress(Exception):
            self.command("scancel", "--user=root", check=False)
            until = time.monotonic() + 10
            while self.jobs() and time.monotonic() < until:
                time.sleep(0.1)
        for name in self.nodes:
            self.end(f"slurmd.{name}.pid", signal.SIGTERM)
        self.end("slurmctld.pid", signal.SIGKILL)
        self.end("munged.pid", signal.SIGTERM)

    def run(self, *command: str) -> None:
        """A command of Slurm's that must succeed; daemons go to the background."""
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode:
            raise RuntimeError(f"{command[0]}: {done.stderr or done.stdout}")

    def end(self, name: str, which: int) -> None:
        """End the daemon of a pid file."""
        try:
            pid = int((self.folder / name).read_text())
            os.kill(pid, which)
        except (FileNotFoundError, ValueError, ProcessLookupError):
            return
        until = time.monotonic() + 10
        while _lives(pid):
            if time.monotonic() > until:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
        (self.folder / name).unlink(missing_ok=True)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@contextlib.contextmanager
def slurm(folder: Path) -> Iterator[SlurmBench]:
    """A cluster for a while."""
    bench = SlurmBench(folder)
    try:
        bench.start()
        yield bench
    finally:
        bench.stop()
