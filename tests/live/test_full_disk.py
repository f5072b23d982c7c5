"""A full disk: the message is clear, no result is lost, and the study continues when there is space again."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_runs import Bench, eventually, problem_of, processes_below
from lynceus.errors import InfrastructureError
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import WallClock
from lynceus.executors.supervisor import files, process_tree
from lynceus.executors.supervisor.ending import supervisors_of
from lynceus.policy.presets import preset
from lynceus.storage.sql.storage import Storage
from lynceus.study.run_loop import explore
from lynceus.study.stored import continued, open_study
from lynceus.study.study import Study
from lynceus.trial.outcome import End
from lynceus.trial.stop import StopReason


class SmallDisk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        with self._ballast.open("ab", buffering=0) as file:
            for size in (65536, 4096, 1):
                try:
                    while file.write(b"x" * size) == size:
                        pass
                except OSError:
                    continue

    def free(self) -> None:
        self._ballast.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)]
    if os.getuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("a small disk needs permission to mount it")
    yield SmallDisk(folder)
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_no_space_for_a_run_pauses_the_study(disk: SmallDisk, tmp_path: Path) -> None:
    study = Study(problem_of(tuple("abcdefgh")), preset("sweep"))
    bench = Bench(disk.folder / "runs", JobCommand(("true",), workdir=tmp_path), study.problem)
    disk.fill()
    explore(study, bench.executor, WallClock())
    assert study.stopped is not None
    assert study.stopped.kind is StopReason.PAUSED
    assert "cannot be written: No space left on device" in study.stopped.reason
    disk.free()
    study.resume()
    explore(study, bench.executor, WallClock())
    assert End.FINISHED in [seen.outcome.end for seen in study.observations]
    bench.executor.close()


def output_is_open(ticket: str) -> bool:
    """Whether a supervisor of the run still saves its output."""
    path = f"{os.path.realpath(ticket)}/{files.STDOUT}"
    return any(path in process_tree.open_files(process) for process in supervisors_of(ticket))


@pytest.mark.parametrize("reserved", [True, False])
def test_an_outcome_uses_its_reserved_space_or_waits_for_space(disk: SmallDisk, tmp_path: Path, reserved: bool) -> None:
    script = "touch ready; while [ ! -e go ]; do sleep 0.02; done; seq 100000; echo '::lynceus {\"loss\": 3}'"
    bench = Bench(disk.folder / "runs", JobCommand(script, workdir=tmp_path), problem_of())
    ticket = bench.launch()
    eventually((tmp_path / "ready").exists)
    if not reserved:
        Path(ticket, files.ROOM).unlink()
    disk.fill()
    (tmp_path / "go").touch()
    eventually(lambda: processes_below(disk.folder) == set())
    eventually(lambda: not output_is_open(ticket))  # the supervisor may read the last of it after the job has ended
    if reserved:
        assert bench.wait(ticket).end is End.FINISHED
    else:
        assert bench.executor.collect(ticket) is None
    disk.free()
    outcome = bench.wait(ticket)
    assert (outcome.end, outcome.metrics) == (End.FINISHED, {"loss": 3.0})
    assert "its output could not be saved: No space left on device" in outcome.detail
    assert files.read_json(f"{ticket}/{files.OUTCOME}") is not None
    bench.executor.close()


def test_a_storage_without_space_is_an_error_and_loses_nothing(disk: SmallDisk) -> None:
    problem = problem_of(tuple("abcdefgh"))
    with Storage(f"sqlite:///{disk.folder}/s.db") as storage:
        study = open_study(storage, "s", problem, preset("sweep", timeout="none"))
        asked: list[int] = []

        def run_all() -> None:
            while (trial := study.ask()) is not None:  # SQLite may have some space left in its log
                asked.append(trial.number)
                study.tell(trial, runtime=1.0)

        disk.fill()
        with pytest.raises(
            InfrastructureError, match=r"disk is full; nothing that was settled is lost, repair it and run"
        ):
            run_all()
        known = study.observations
        disk.free()
        again = continued(storage, "s", problem, preset("sweep", timeout="none"))
        assert again.observations == known
        assert [one.number for one in again.pending] in ([], asked[-1:])
        while (trial := again.ask()) is not None or again.pending:
            again.tell(trial or again.pending[0].number, runtime=1.0)
        assert [seen.order.number for seen in again.observations] == list(range(8))
