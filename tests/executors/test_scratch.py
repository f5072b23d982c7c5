"""Scratch directories of real local runs: whatever happens, they are gone afterwards, and nothing cut off looks like a result."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_runs import Bench, MakeBench, eventually, problem_of
from lynceus.executors.command import JobCommand, Scratch
from lynceus.executors.interface import ResourceKind
from lynceus.executors.supervisor.ending import supervisors_of
from lynceus.trial.outcome import End, FailureReason


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[MakeBench]:
    made: list[Bench] = []

    def make(script: str, scratch: Scratch) -> Bench:
        (tmp_path / "work").mkdir(exist_ok=True)
        job = JobCommand(script, workdir=tmp_path / "work", env={"FOLDER": str(tmp_path)}, grace_s=0.5, scratch=scratch)
        made.append(Bench(tmp_path / "runs", job, problem_of()))
        return made[-1]

    yield make
    for one in made:
        one.executor.close()


def left(ticket: str) -> list[str]:
    return [name for name in os.listdir(ticket) if name.startswith("scratch")]


@pytest.mark.parametrize(
    ("script", "end"),
    [
        ("true", End.FINISHED),
        ("exit 3", End.FAILED),
        ("sleep 1000", End.TIMEOUT),
        ("mkdir -p d/e && touch d/e/f && chmod 500 d/e d", End.FINISHED),
        ('cd / && rm -rf "$LYNCEUS_SCRATCH" && ln -s "$FOLDER/work" "$LYNCEUS_SCRATCH"', End.FINISHED),
    ],
)
def test_the_directory_is_gone_when_the_run_has_ended(bench: MakeBench, tmp_path: Path, script: str, end: End) -> None:
    one = bench(f"echo cut > result; {script}", Scratch("cwd", (), ("mine",)))
    (tmp_path / "work" / "mine").write_text("mine")
    ticket = one.launch(timeout_s=0.7)
    assert one.wait(ticket).end is end
    eventually(lambda: not left(ticket))
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["mine"], "something outside was touched"
    assert (tmp_path / "work" / "mine").read_text() == "mine"


def test_what_is_to_be_kept_says_whether_it_is_complete(bench: MakeBench) -> None:
    one = bench('echo out > "$LYNCEUS_SCRATCH/result"; [ "$LYNCEUS_TRIAL" = 0 ] || exec sleep 1000', Scratch(keep=True))
    for number, name in ((0, "scratch"), (1, "scratch.unfinished")):
        ticket = one.launch(timeout_s=0.5 if number else 60.0, number=number)
        one.wait(ticket)
        eventually(lambda ticket=ticket, name=name: left(ticket) == [name])
        assert Path(ticket, name, "result").exists()
    assert {one.kind for one in one.executor.owned_resources()} == {ResourceKind.DIRECTORY}


@pytest.mark.parametrize("who", ["supervisor", "both"])
def test_a_killed_supervisor_leaves_no_files(bench: MakeBench, tmp_path: Path, who: str) -> None:
    one = bench('echo cut > result; touch "$FOLDER/ready"; sleep 1000', Scratch("cwd"))
    ticket = one.launch()
    eventually((tmp_path / "ready").exists)
    found = sorted(supervisors_of(ticket))
    for process in found if who == "both" else found[-1:]:
        os.kill(process, signal.SIGKILL)
    outcome = one.wait(ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA)
    eventually(lambda: not left(ticket))


def test_leftovers_are_listed_and_removed(bench: MakeBench, tmp_path: Path) -> None:
    """As after a power failure between the outcome and the removal."""
    one = bench("true", Scratch())
    ticket = one.launch()
    one.wait(ticket)
    eventually(lambda: not supervisors_of(ticket))  # which remove what they made
    assert not left(ticket)
    for name in ("scratch", "scratch.17.5.new"):
        Path(ticket, name, "deep").mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    eventually(lambda: len(one.executor.owned_resources()) == 3)
    owned = [found for found in one.executor.owned_resources() if found.kind is ResourceKind.SCRATCH]
    assert {(found.name, found.number) for found in owned} == {(f"{ticket}/{name}", 0) for name in left(ticket)}
    for found in owned:
        one.executor.remove(found)
    assert not left(ticket)
    assert Path(ticket, "outcome.json").exists()


def test_a_directory_that_cannot_be_filled_is_not_the_configurations_fault(bench: MakeBench) -> None:
    one = bench("echo ran", Scratch("cwd", ("gone.py",)))
    outcome = one.outcome()
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA)
    assert "matches 'gone.py'" in outcome.detail
    assert outcome.seconds < 0.5
    assert one.output() == b""


def test_a_run_can_be_cancelled_while_its_files_are_copied(bench: MakeBench, tmp_path: Path) -> None:
    one = bench('touch "$FOLDER/ran"', Scratch("cwd", ("large",)))
    with (tmp_path / "work" / "large").open("wb") as file:
        file.truncate(4 << 30)
    ticket = one.launch()
    eventually(lambda: any(name.endswith(".new") for name in left(ticket)))
    one.executor.cancel(ticket)
    outcome = one.wait(ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.USER)
    eventually(lambda: not left(ticket))
    assert not (tmp_path / "ran").exists()


def test_a_variable_of_another_run_is_not_inherited(bench: MakeBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LYNCEUS_SCRATCH", "/elsewhere")
    assert bench('[ -z "${LYNCEUS_SCRATCH+set}" ]', Scratch("none")).outcome().end is End.FINISHED
