"""Run directories of local runs: one run for each, nobody else reads them, and those of other versions and boots are recognised."""

import fcntl
import math
import os
import time
from pathlib import Path

import pytest

from local_runs import Bench, MakeBench, eventually
from lynceus.errors import InfrastructureError
from lynceus.executors import local
from lynceus.executors.interface import LostRunError, OwnedResource, ResourceKind
from lynceus.executors.supervisor import files
from lynceus.trial.outcome import End, FailureReason


def test_a_run_that_is_launched_several_times_runs_once(bench: MakeBench, tmp_path: Path) -> None:
    one = bench("echo ran >> log; sleep 0.3")
    other = Bench(one.root, one.job, one.problem)
    tickets = {maker.launch() for maker in (one, other, one, other)}
    assert len(tickets) == 1
    first, second = one.wait(next(iter(tickets))), other.wait(next(iter(tickets)))
    assert first == second
    one.launch()
    assert one.wait(next(iter(tickets))) == first
    assert (tmp_path / "log").read_text() == "ran\n"
    other.executor.close()


def test_reading_the_status_of_a_starting_run_does_not_stop_it(
    bench: MakeBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading the status holds the lock for a moment. The supervisor waits for it; a second one would start only after 10 s."""
    monkeypatch.setattr(local, "_START_S", math.inf)
    one = bench("true")
    folder = tmp_path / "runs" / "study-id" / "0"
    folder.mkdir(parents=True)
    lock = os.open(folder / files.LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    ticket = one.launch()
    eventually(lambda: (folder / files.LOG).exists())  # the supervisor is alive
    time.sleep(0.1)
    assert not (folder / files.STARTED).exists()
    os.close(lock)
    assert one.wait(ticket).end is End.FINISHED


def test_run_directories_are_private(bench: MakeBench, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        one = bench("echo hello")
        ticket = Path(one.launch())
    finally:
        os.umask(before)
    one.wait(str(ticket))
    assert [oct(path.stat().st_mode & 0o777) for path in (ticket, ticket.parent)] == ["0o700"] * 2
    mine = (files.REQUEST, files.PARAMS, "script", files.STARTED, files.OUTCOME, files.LOG, files.STDOUT)
    assert [name for name in mine if (ticket / name).stat().st_mode & 0o077] == []


def test_folders_that_lynceus_did_not_make_are_not_its_own(bench: MakeBench, tmp_path: Path) -> None:
    """As with `run_directory: .`, where the user's own folders are beside those of studies."""
    one = bench("true")
    one.outcome(number=7)
    photos = one.root / "photos" / "123"
    photos.mkdir(parents=True)
    (photos / "cat.jpg").write_bytes(b"cat")
    (photos.parent / "124").mkdir()
    (photos.parent / "124" / files.REQUEST).write_text('{"number": 124, "url": "https://example.org"}')
    (photos.parent / "8").symlink_to(one.root / "study-id" / "7")
    owned = one.executor.owned_resources()
    assert {(resource.name, resource.study, resource.identity, resource.number) for resource in owned} == {
        (str(one.root / "study-id" / "7"), "study", "id", 7)
    }
    for name in (photos, photos.parent / "124", photos.parent / "8"):
        for kind in (ResourceKind.DIRECTORY, ResourceKind.PROCESSES):
            one.executor.remove(OwnedResource(kind, str(name), "photos", "", 123))
    assert (photos / "cat.jpg").exists()
    assert (photos.parent / "124").exists()
    for resource in owned:
        one.executor.remove(resource)
    assert not (one.root / "study-id" / "7").exists()


def directories(bench: Bench) -> list[tuple[str, str, int]]:
    """Run directories that are recognised; a supervisor may still be about to exit."""
    found = [one for one in bench.executor.owned_resources() if one.kind is ResourceKind.DIRECTORY]
    return [(one.study, one.identity, one.number) for one in found]


def test_directories_of_earlier_versions_are_recognised(bench: MakeBench) -> None:
    one = bench("true")
    ticket = one.launch(number=3)
    one.wait(ticket)
    Path(ticket, files.MARKER).unlink()
    assert directories(one) == [("study", "id", 3)]


def test_an_interrupted_launch_leaves_a_directory_that_is_recognised(bench: MakeBench) -> None:
    one = bench("true")
    ticket = one.launch(number=3)
    one.wait(ticket)
    Path(ticket, files.REQUEST).unlink()
    assert directories(one) == [("study", "id", 3)]


def test_a_run_prepared_before_a_reboot_is_not_started(bench: MakeBench, tmp_path: Path) -> None:
    one = bench("touch ran")
    ticket = one.launch()
    one.wait(ticket)
    with open(Path(ticket, files.LOCK)) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # its supervisor has ended
    request = files.read_json(os.path.join(ticket, files.REQUEST))
    assert request is not None
    for name in (files.OUTCOME, files.STARTED):
        Path(ticket, name).unlink()
    (tmp_path / "ran").unlink()
    files.write_atomically(os.path.join(ticket, files.REQUEST), {**request, "boot": "another"})
    assert one.launch() == ticket
    outcome = one.wait(ticket)
    assert (outcome.reason, outcome.charged_usd) == (FailureReason.INFRA, 0.0)
    assert not (tmp_path / "ran").exists()


def test_a_run_without_a_directory_is_lost(bench: MakeBench) -> None:
    with pytest.raises(LostRunError, match=r"the run directory .* no longer exists"):
        bench(("true",)).executor.collect("/no/such/run")


def test_a_root_that_cannot_be_written_is_an_infrastructure_error(bench: MakeBench, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file where a folder should be")
    with pytest.raises(InfrastructureError, match=r"the run directory .* cannot be written"):
        bench(("true",)).launch()
