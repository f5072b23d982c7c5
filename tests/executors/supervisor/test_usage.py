"""What a supervisor measures of real jobs: memory, processors and disks, of all their processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from local_runs import MakeBench, python
from lynceus.executors.supervisor.usage import processes_bytes
from lynceus.storage.serialization import outcome_of, outcome_record
from lynceus.trial.outcome import End
from lynceus.trial.usage import Usage

MEGABYTE = 10**6


def test_memory_of_one_process_is_measured(bench: MakeBench) -> None:
    outcome = bench(python("held = b'x' * 200_000_000")).outcome()
    assert outcome.end is End.FINISHED
    assert outcome.usage is not None
    assert 200 * MEGABYTE <= outcome.usage.peak_memory_bytes <= 300 * MEGABYTE


def test_memory_of_several_processes_at_once_is_added(bench: MakeBench) -> None:
    code = (
        "import os, time\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        held = b'x' * 60_000_000\n"
        "        time.sleep(5)\n"
        "        os._exit(0)\n"
        "for _ in range(3): os.wait()\n"
    )
    outcome = bench(python(code)).outcome()
    assert outcome.usage is not None
    assert 175 * MEGABYTE <= outcome.usage.peak_memory_bytes <= 330 * MEGABYTE


def test_processor_time_of_children_counts_and_idle_runs_have_little(bench: MakeBench) -> None:
    burn = (
        "import os, time\nif os.fork() == 0:\n    while time.process_time() < 0.5: pass\n    os._exit(0)\nos.wait()\n"
    )
    busy = bench(python(burn)).outcome()
    idle = bench(python("import time; time.sleep(0.5)")).outcome(number=1)
    assert busy.usage is not None
    assert idle.usage is not None
    assert 0.5 <= busy.usage.cpu_s <= 0.8 + busy.seconds
    assert idle.usage.cpu_s < busy.usage.cpu_s


def test_bytes_written_to_a_disk_count(bench: MakeBench, tmp_path: Path) -> None:
    code = "import os\nwith open('big', 'wb') as f: f.write(b'x' * 8_000_000); f.flush(); os.fsync(f.fileno())"
    outcome = bench(python(code)).outcome()
    assert outcome.usage is not None
    if os.statvfs(tmp_path).f_bsize == 0 or outcome.usage.written_bytes == 0:
        pytest.skip("the temporary folder is not on a disk")
    assert 8 * MEGABYTE <= outcome.usage.written_bytes <= 80 * MEGABYTE


def test_failed_and_stopped_runs_have_a_usage_too(bench: MakeBench) -> None:
    job = bench(python("import time; held = b'x' * 50_000_000; time.sleep(60)"))
    stopped = job.outcome(timeout_s=1.5)
    failed = bench(python("held = b'x' * 50_000_000; raise SystemExit(3)")).outcome(number=1)
    for outcome in (stopped, failed):
        assert outcome.end is not End.FINISHED
        assert outcome.usage is not None
        assert outcome.usage.peak_memory_bytes >= 50 * MEGABYTE


def test_a_usage_survives_the_storage_and_nonsense_is_left_out(bench: MakeBench) -> None:
    outcome = bench(python("pass")).outcome()
    assert outcome_of(outcome_record(outcome)).usage == outcome.usage
    assert Usage.read({"peak_memory_bytes": 1.0}) is None
    assert Usage.read({"peak_memory_bytes": -1, "cpu_s": 0, "read_bytes": 0, "written_bytes": 0}) is None
    assert Usage.read(None) is None


def test_processes_that_have_gone_use_no_memory() -> None:
    assert processes_bytes({os.getpid()}) > MEGABYTE
    assert processes_bytes({2**22 + 1}) == 0
