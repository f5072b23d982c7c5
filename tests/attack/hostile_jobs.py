"""Jobs that mean harm. Each writes to a log outside its run directory when it starts and when it ends, so that its truth is known."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

ODD_METRICS = b'{"\\u0000": 1, "\\ud800": 2, "constructor": 3, "[/bold]": 4, "=1+1": 5, "\\u001b[2J": 6}\n'
ODD_REPORTS = b'[1]\n{"loss": "x"}\n{"loss": 1e999}\nnull\n\xff\n{"loss": {}}\n'

HEAD = """\
import os, sys, time, signal, subprocess
deed = DEEDS[int(os.environ["LYNCEUS_TRIAL"]) % len(DEEDS)]
def note(word):
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(log, ("%s %s %d %.6f\\n" % (word, os.environ["LYNCEUS_TRIAL"], os.getpid(), time.monotonic())).encode())
    os.close(log)
note("start")
result, here = os.environ["LYNCEUS_RESULT"], os.path.dirname(os.environ["LYNCEUS_RESULT"])
def report(data):
    with open(result, "ab") as file:
        file.write(data)
def loss():
    report(b'{"loss": %d}\\n' % int(os.environ["LYNCEUS_PARAM_N"]))
def linger(*more):
    subprocess.Popen(["sleep", "600"], start_new_session=True, stdin=subprocess.DEVNULL, *more)
exec(deed)
note("end")
"""

DEEDS = {
    "good": "time.sleep(0.05); loss()",
    "slow": "loss(); time.sleep(0.6)",
    "over the cap": "loss(); time.sleep(30)",
    "deaf to SIGTERM": "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(30)",
    "flood of output": "until = time.monotonic() + 0.5\nwhile time.monotonic() < until: os.write(1, b'x' * 65536)\nloss()",
    "flood of reports": 'end = time.monotonic() + 4\nwhile time.monotonic() < end: report(b\'{"loss": 1, "progress": 0.5}\\n\' * 4000)',
    "fifo for a result": "os.mkfifo(result); time.sleep(0.2)",
    "directory for a result": "os.mkdir(result)",
    "link for a result": "os.symlink('/dev/zero', result); time.sleep(0.1)",
    "daemon": "linger(); loss()",
    "double fork": "os.fork() or (os.setsid(), os.fork() or time.sleep(600)); loss()",
    "forks": "[os.fork() for _ in range(4)]; time.sleep(0.2); os._exit(0)",
    "exit 3 with odd bytes": "os.write(2, b'boom \\0\\x1b[2J\\xff\\xfe ::lynceus {\\n'); note('end'); os._exit(3)",
    "exit 75": "note('end'); os._exit(75)",
    "exit 85": "note('end'); os._exit(85)",
    "SIGKILL": "note('end'); os.kill(os.getpid(), signal.SIGKILL)",
    "SIGSEGV": "note('end'); os.kill(os.getpid(), signal.SIGSEGV)",
    "odd metrics": "report(ODD_METRICS); loss()",
    "odd reports": "report(ODD_REPORTS + b'[' * 9000 + b'\\n'); loss()",
    "one long line": "report(b'{\"loss\": 1' + b' ' * 3000000 + b'}\\n'); loss()",
    "no report": "time.sleep(0.05)",
    "backtracking": "print('a' * 40 + '!', flush=True); loss()",
    "deletes its directory": "import shutil; loss(); shutil.rmtree(here, ignore_errors=True); time.sleep(0.3)",
    "damages its directory": "open(here + '/outcome.json', 'w').write('{'); open(here + '/started.json', 'w').write('[]'); loss()",
    "cancels itself": "open(here + '/cancel', 'w'); time.sleep(5)",
    "closes its output": "os.close(1); os.close(2); loss(); time.sleep(0.2)",
    "stops itself": "os.kill(os.getpid(), signal.SIGSTOP); loss()",
}
FORGES = frozenset({"damages its directory", "cancels itself", "deletes its directory"})
"""Deeds that write into the run directory what only the supervisor should: the ledger may believe them."""


def job_script(deeds: list[str], log: Path) -> str:
    """A Python program that does for each trial the deed of its number."""
    facts = {
        "DEEDS": [DEEDS[one] for one in deeds],
        "LOG": str(log),
        "ODD_METRICS": ODD_METRICS,
        "ODD_REPORTS": ODD_REPORTS,
    }
    return "".join(f"{name} = {value!r}\n" for name, value in facts.items()) + HEAD


@dataclass(frozen=True)
class Execution:
    """One execution of a trial, as the job itself noted it."""

    number: int
    pid: int
    began_s: float
    ended_s: float | None


def executions(log: Path) -> list[Execution]:
    """Every execution so far."""
    found: dict[tuple[int, int], Execution] = {}
    for line in log.read_text().splitlines() if log.exists() else ():
        word, number, pid, moment = line.split()
        key = int(number), int(pid)
        if word == "start":
            found[key] = Execution(*key, float(moment), None)
        elif key in found:
            found[key] = Execution(*key, found[key].began_s, float(moment))
    return list(found.values())


def job_processes(root: Path) -> dict[int, int]:
    """Living processes of jobs below a folder, found by their environment: process → trial."""
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                continue
            variables = Path("/proc", name, "environ").read_bytes().split(b"\0")
        except (OSError, IndexError):
            continue
        values = dict(one.partition(b"=")[::2] for one in variables)
        if values.get(b"LYNCEUS_RESULT", b"").startswith(str(root).encode()) and b"LYNCEUS_RUN" in values:
            found[int(name)] = int(values[b"LYNCEUS_TRIAL"])
    return found


def supervisors(root: Path) -> list[int]:
    """Living processes that have a run directory of this folder open: the supervisors of its runs."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                links = {os.readlink(f"/proc/{name}/fd/{one}") for one in os.listdir(f"/proc/{name}/fd")}
            except OSError:
                continue
            if any(one.startswith(str(root)) and one.endswith("/lock") for one in links):
                found.append(int(name))
    return found


def until(happened: object, seconds: float = 60.0) -> bool:
    """Wait for something; whether it happened in time."""
    assert callable(happened)
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True
