"""A disk that is full: a clear sentence, nothing lost, and the study goes on when there is room again."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_runs import Bench, eventually, problem_of, processes_below
from lynceus.durable import continued, open_study
from lynceus.engine import explore
from lynceus.errors import InfrastructureError
from lynceus.executor import WallClock
from lynceus.executor.command import LocalJob
from lynceus.history import End
from lynceus.ledger.sql import Storage
from lynceus.policy import Because, preset
from lynceus.study import Study
from lynceus.supervisor import files


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
        pytest.skip("a small disk needs the right to mount one")
    yield SmallDisk(folder)
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_no_room_for_a_run_pauses_the_study_with_a_sentence(disk: SmallDisk, tmp_path: Path) -> None:
    study = Study(problem_of(tuple("abcdefgh")), preset("sweep"))
    bench = Bench(disk.folder / "runs", LocalJob(("true",), workdir=tmp_path), study.problem)
    disk.fill()
    explore(study, bench.executor, WallClock())
    assert study.stopped is not None
    assert study.stopped.because is Because.PAUSED
    assert "cannot be written: No space left on device" in study.stopped.reason
    disk.free()
    study.resume()
    explore(study, bench.executor, WallClock())
    assert End.FINISHED in [seen.outcome.end for seen in study.history]
    bench.executor.close()


@pytest.mark.parametrize("reserved", [True, False])
def test_an_outcome_has_its_room_or_waits_for_it(disk: SmallDisk, tmp_path: Path, reserved: bool) -> None:
    script = "touch ready; while [ ! -e go ]; do sleep 0.02; done; seq 100000; echo '::lynceus {\"loss\": 3}'"
    bench = Bench(disk.folder / "runs", LocalJob(script, workdir=tmp_path), problem_of())
    ticket = bench.launch()
    eventually((tmp_path / "ready").exists)
    if not reserved:
        Path(ticket, files.ROOM).unlink()
    disk.fill()
    (tmp_path / "go").touch()
    eventually(lambda: processes_below(disk.folder) == set())
    if reserved:
        assert bench.wait(ticket).end is End.FINISHED
    else:
        assert bench.executor.collect(ticket) is None
    disk.free()
    outcome = bench.wait(ticket)
    assert (outcome.end, outcome.metrics) == (End.FINISHED, {"loss": 3.0})
    assert "its output could not be kept: No space left on device" in outcome.detail
    assert files.read_whole(f"{ticket}/{files.OUTCOME}") is not None
    bench.executor.close()


def test_a_storage_without_room_says_so_and_loses_nothing(disk: SmallDisk) -> None:
    problem = problem_of(tuple("abcdefgh"))
    with Storage(f"sqlite:///{disk.folder}/s.db") as storage:
        study = open_study(storage, "s", problem, preset("sweep", timeout="none"))
        asked: list[int] = []

        def go_on() -> None:
            while (trial := study.ask()) is not None:  # SQLite may have some room left in its log
                asked.append(trial.number)
                study.tell(trial, runtime=1.0)

        disk.fill()
        with pytest.raises(
            InfrastructureError, match=r"disk is full; nothing that was settled is lost, repair it and run"
        ):
            go_on()
        known = study.history
        disk.free()
        again = continued(storage, "s", problem, preset("sweep", timeout="none"))
        assert again.history == known
        assert [one.number for one in again.pending] in ([], asked[-1:])
        while (following := again.ask()) is not None or again.pending:
            again.tell(following or again.pending[0].number, runtime=1.0)
        assert [seen.order.number for seen in again.history] == list(range(8))
