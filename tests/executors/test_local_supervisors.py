"""Local runs whose supervisors are killed or hang, or whose directory is removed."""

import contextlib
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from local_runs import MakeBench, eventually, held_stopped, processes_below
from lynceus.executors import local
from lynceus.executors.interface import LostRunError, Outage, ResourceKind
from lynceus.executors.supervisor import files
from lynceus.executors.supervisor.ending import supervisors_of
from lynceus.executors.supervisor.process_tree import descendants, is_dead
from lynceus.trial.outcome import End, FailureReason


def kill_supervisors(ticket: str) -> None:
    """The guard first, and so quickly that neither can record anything."""
    supervisors = supervisors_of(ticket)
    assert len(supervisors) == 2
    for which in (signal.SIGSTOP, signal.SIGKILL):
        for one in supervisors:
            os.kill(one, which)
    eventually(lambda: supervisors_of(ticket) == set())


def test_a_run_whose_supervisors_were_killed_is_charged_up_to_its_last_heartbeat(
    bench: MakeBench, tmp_path: Path
) -> None:
    one = bench("touch ready; exec sleep 1000")
    ticket = one.launch(timeout_s=1000.0)
    eventually((tmp_path / "ready").exists)
    assert one.executor.collect(ticket) is None
    kill_supervisors(ticket)
    eventually(lambda: processes_below(tmp_path) == set())
    Path(ticket, files.ALIVE).write_text("12.0")
    outcome = one.wait(ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA)
    assert outcome.charged_usd == pytest.approx(12.0, abs=1e-3)
    assert one.executor.collect(ticket) == outcome  # it does not change
    one.launch(timeout_s=1000.0)
    assert one.executor.collect(ticket) == outcome


def test_a_run_that_outlived_its_supervisors_is_charged_for_all_of_its_time(bench: MakeBench, tmp_path: Path) -> None:
    one = bench("(setsid sleep 1000 &) ; touch ready; sleep 1000")
    ticket = one.launch(timeout_s=1000.0)
    eventually((tmp_path / "ready").exists)
    began = time.monotonic()
    kill_supervisors(ticket)
    time.sleep(0.3)
    ran_s = time.monotonic() - began
    outcome = one.wait(ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA)
    assert outcome.charged_usd >= ran_s
    assert processes_below(tmp_path) == set()


def test_cancelling_wakes_a_stopped_supervisor(bench: MakeBench, tmp_path: Path) -> None:
    one = bench("touch ready; sleep 1000")
    ticket = one.launch()
    eventually((tmp_path / "ready").exists)
    for process in supervisors_of(ticket):
        os.kill(process, signal.SIGSTOP)
    one.executor.cancel(ticket)
    outcome = one.wait(ticket)
    assert (outcome.reason, outcome.detail.split(" after")[0]) == (FailureReason.USER, "cancelled")


@pytest.mark.parametrize("how", ["cancel", "timeout", "remove"])
def test_a_run_whose_supervisors_hang_is_ended_by_force(
    bench: MakeBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(local, "_CANCEL_S", 0.5)
    monkeypatch.setattr(local, "_OVERDUE_S", 0.5)
    one = bench("(setsid env -i /bin/sleep 1000 &) ; trap '' TERM; touch ready; sleep 1000", grace_s=0.2)
    ticket = one.launch(timeout_s=1.0 if how == "timeout" else 1000.0)
    eventually((tmp_path / "ready").exists)
    supervisors = supervisors_of(ticket)
    below = {process for one in supervisors for process in descendants(one)}
    with contextlib.ExitStack() as stack:
        for process in supervisors:
            stack.enter_context(held_stopped(process))
        if how == "cancel":
            one.executor.cancel(ticket)
        elif how == "remove":
            for resource in one.executor.owned_resources():
                if resource.kind is ResourceKind.PROCESSES:
                    one.executor.remove(resource)
        outcome = one.wait(ticket)
    assert outcome.end is (End.TIMEOUT if how == "timeout" else End.FAILED)
    assert outcome.reason is {"cancel": FailureReason.USER, "timeout": None, "remove": FailureReason.INFRA}[how]
    assert outcome.charged_usd >= outcome.seconds > 0
    assert [process for process in below | supervisors if not is_dead(process)] == []


def test_a_supervisor_without_a_sign_of_life_is_an_outage(
    bench: MakeBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "_SILENT_S", 2.0)
    one = bench("touch ready; sleep 1000")
    ticket = one.launch(timeout_s=1000.0)
    eventually((tmp_path / "ready").exists)

    def seen() -> Outage | None:
        assert one.executor.collect(ticket) is None
        return one.executor.outage()

    assert seen() is None
    with contextlib.ExitStack() as stack:
        for process in supervisors_of(ticket):
            stack.enter_context(held_stopped(process))
        eventually(seen)
        outage = seen()
        assert outage is not None
        assert ticket in outage.detail
        assert outage.since_s <= time.time() - 2.0
    eventually(lambda: seen() is None)
    one.executor.cancel(ticket)
    one.wait(ticket)
    assert one.executor.outage() is None


def test_a_run_whose_directory_is_removed_is_ended_and_its_time_is_known(bench: MakeBench, tmp_path: Path) -> None:
    one = bench("(setsid env -i /bin/sleep 1000 &) ; trap '' TERM; touch ready; sleep 1000", grace_s=60.0)
    ticket = one.launch()
    eventually((tmp_path / "ready").exists)
    below = {process for one in supervisors_of(ticket) for process in descendants(one)}
    began = time.monotonic()
    time.sleep(0.3)
    shutil.rmtree(ticket)
    ran_s = time.monotonic() - began
    with pytest.raises(LostRunError, match=r"the run directory .* no longer exists") as lost:
        one.executor.collect(ticket)
    assert lost.value.ran_s is not None
    assert ran_s - 0.1 <= lost.value.ran_s < ran_s + 30.0
    assert [process for process in below if not is_dead(process)] == []
    assert supervisors_of(ticket) == set()
