"""The guard: the timeout holds and nothing is left running, whatever happens to the supervisor."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from local_runs import PATIENCE_S, eventually, held_stopped
from lynceus.executors.supervisor import files, process_tree
from lynceus.executors.supervisor.ending import supervisors_of

WITHOUT_GROUPS = "import lynceus.executors.supervisor.limits as limits; limits._own_groups = dict; "
PATIENT = "import lynceus.executors.supervisor.guard as guard; guard._PATIENCE_S = 60.0; "
IMPATIENT = "import lynceus.executors.supervisor.guard as guard; guard._PATIENCE_S = 1.0; "
HANGING = (
    "import time; from lynceus.executors.supervisor.reports import Reports; "
    "Reports.add_output = lambda *_: time.sleep(1000); "
)
"""The supervisor waits for ever as soon as the job prints something."""
STOPPED_AT_ONCE = (
    "import os, signal; from lynceus.executors.supervisor.run import Run; start = Run._start; "
    "Run._start = lambda *given: (start(*given), os.kill(os.getpid(), signal.SIGSTOP))[0]; "
)
"""The supervisor is stopped as soon as the job has started."""
SUPERVISE = (
    "import sys; "
    "from lynceus.executors.supervisor.supervise import supervise as s; s(sys.argv[1], {'PATH': '/bin:/usr/bin'}, [])"
)
SLOW = "trap '' TERM; touch ready; sleep 1000"
DAEMON = "setsid env -i /bin/sh -c 'echo $$ > daemon; exec sleep 1000' & while [ ! -s daemon ]; do sleep 0.01; done; "


class Supervised:
    """A run with its guard in a process of its own."""

    def __init__(self, directory: Path, script: str, cap_s: float = 60.0, before: str = IMPATIENT) -> None:
        self.directory = directory
        request = {
            "run": f"test{os.getpid()}{time.monotonic_ns()}",
            "number": 0,
            "argv": ["sh", "-c", script],
            "cwd": str(directory),
            "cap_s": cap_s,
            "grace_s": 0.2,
            "output_bytes": 10_000,
        }
        files.write_atomically(str(directory / files.REQUEST), request)
        self.guard = subprocess.Popen([sys.executable, "-c", before + SUPERVISE, str(directory)])
        eventually(lambda: (directory / "ready").exists() or self.guard.poll() is not None)

    @property
    def supervisor(self) -> int:
        return int(json.loads((self.directory / files.STARTED).read_text())["pid"])

    def outcome(self) -> dict[str, Any]:
        self.guard.wait(PATIENCE_S)
        eventually(lambda: supervisors_of(str(self.directory)) == set())
        found: dict[str, Any] = json.loads((self.directory / files.OUTCOME).read_text())
        return found

    def is_alive(self, name: str) -> bool:
        return not process_tree.is_dead(int((self.directory / name).read_text()))


def test_reports_at_any_rate_do_not_delay_the_timeout(tmp_path: Path) -> None:
    """Faster than they can be read, in the file and on both streams."""
    flood = "while :; do cat block 2> /dev/null"
    line = json.dumps({"x": 1.5, "progress": 0.5})
    (tmp_path / "block").write_text(f"{line}\n::lynceus {line}\n" * 5000)
    script = f"touch ready; ({flood} >> result.jsonl; done) & ({flood}; done) & {flood} >&2; done"
    patient = IMPATIENT.replace("1.0", "30.0")  # a busy machine may need seconds for the last megabytes
    record = Supervised(tmp_path, f"ulimit -f 100000; {script}", cap_s=1.0, before=patient).outcome()
    assert (record["end"], record["metrics"].get("x")) == ("capped", 1.5), record
    assert 1.0 <= record["seconds"] < 8.0  # without a limit it reads as long as the job writes
    (tmp_path / "result.jsonl").unlink()


def test_a_stopped_supervisor_is_woken_at_the_timeout(tmp_path: Path) -> None:
    run = Supervised(tmp_path, "echo '::lynceus {\"x\": 1}'; touch ready; sleep 1000", cap_s=1.0)
    os.kill(run.supervisor, signal.SIGSTOP)
    record = run.outcome()
    assert (record["end"], record["metrics"]) == ("capped", {"x": 1.0})
    assert record["seconds"] > 1.0
    assert "after its timeout, because its supervisor" in record["detail"]


def test_a_supervisor_that_is_stopped_when_the_job_starts_does_not_delay_the_timeout(tmp_path: Path) -> None:
    record = Supervised(tmp_path, "touch ready; sleep 1000", cap_s=1.0, before=IMPATIENT + STOPPED_AT_ONCE).outcome()
    assert record["end"] == "capped"
    assert record["seconds"] > 1.0


def test_a_supervisor_that_is_stopped_when_the_job_starts_does_not_lengthen_its_time(tmp_path: Path) -> None:
    script = "sleep 0.3; date +%s.%N > done; touch ready"
    run = Supervised(tmp_path, script, before=PATIENT + STOPPED_AT_ONCE)
    time.sleep(1.5)
    record = run.outcome()
    assert record["end"] == "finished"
    assert record["seconds"] < float((tmp_path / "done").read_text()) - record["began_s"] + 1.2


def test_a_supervisor_that_hangs_does_not_delay_the_timeout(tmp_path: Path) -> None:
    run = Supervised(tmp_path, f"echo $$ > job; echo output; {SLOW}", cap_s=1.0, before=IMPATIENT + HANGING)
    record = run.outcome()
    assert not run.is_alive("job")
    assert record["end"] == "capped"
    assert 1.0 < record["seconds"] < 30.0
    assert record["stopping_s"] >= 0.2
    assert record["detail"].startswith("its supervisor died; it ended ")


def test_a_job_that_ends_while_its_supervisor_hangs_has_its_true_time(tmp_path: Path) -> None:
    """The guard sees it end."""
    run = Supervised(tmp_path, "touch ready; sleep 0.3; date +%s.%N > done", before=PATIENT)
    with held_stopped(run.supervisor):
        eventually(lambda: (tmp_path / "done").exists() and (tmp_path / "done").read_text())
        time.sleep(1.5)
    record = run.outcome()
    assert record["end"] == "finished"
    assert record["seconds"] < float((tmp_path / "done").read_text()) - record["began_s"] + 1.2


@pytest.mark.parametrize("before", ["", WITHOUT_GROUPS], ids=["groups", "none"])
@pytest.mark.parametrize("which", ["supervisor", "guard"])
def test_killing_the_supervisor_or_the_guard_ends_the_run(tmp_path: Path, which: str, before: str) -> None:
    """Also a daemon that nothing but its parents could identify."""
    run = Supervised(tmp_path, f"echo $$ > job; {DAEMON} {SLOW}", before=before)
    os.kill(run.supervisor if which == "supervisor" else run.guard.pid, signal.SIGKILL)
    record = run.outcome()
    assert (record["end"], record["reason"]) == ("failed", "infra")
    assert record["seconds"] > 0
    assert ("the supervisor died" if which == "supervisor" else "guards its timeout was killed") in record["detail"]
    assert not run.is_alive("job")
    assert not run.is_alive("daemon")


def test_a_stopped_guard_does_not_stay_behind(tmp_path: Path) -> None:
    run = Supervised(tmp_path, "touch ready; sleep 0.2")
    os.kill(run.guard.pid, signal.SIGSTOP)
    assert run.outcome()["end"] == "finished"


def test_a_supervisor_that_fails_says_why(tmp_path: Path) -> None:
    """Its error is in the log, and the run is not lost."""
    before = "import lynceus.executors.supervisor.run as run; run.Run._watch = lambda *_: 1 / 0; "
    record = Supervised(tmp_path, "sleep 1000", before=before).outcome()
    assert (record["end"], record["reason"], record["detail"]) == ("failed", "infra", "the supervisor failed")


def test_files_are_private(tmp_path: Path) -> None:
    Supervised(tmp_path, "touch ready; echo out", before="import os; os.umask(0); ").outcome()
    mine = (files.REQUEST, files.STARTED, files.OUTCOME, files.ALIVE, files.LOCK, files.STDOUT, files.STDERR)
    assert {name: oct((tmp_path / name).stat().st_mode & 0o777) for name in mine} == dict.fromkeys(mine, "0o600")
