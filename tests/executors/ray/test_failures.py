"""Problems of a real Ray cluster: nodes die, no node is large enough, the head is unreachable, disks are full."""

import base64
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lynceus.errors import InfrastructureError
from lynceus.executors.interface import WallClock
from lynceus.executors.ray.client import DriverClient
from lynceus.policy.presets import preset
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.trial.outcome import End, FailureReason
from ports import free_ports
from ray_bench import Bench, bench
from ray_runs import Runs, parent_of
from relay import relay

_LONG = 'echo $$ >> "$FOLDER/pids"; echo $PPID > "$FOLDER/parent"; (setsid sh -c \'echo $$ >> "$FOLDER/pids"; exec sleep 1000\' &); '
_LONG += 'while [ "$(wc -l < "$FOLDER/pids")" -lt 2 ]; do sleep 0.02; done; touch "$FOLDER/ready"; exec sleep 1000'


def test_a_trial_whose_node_dies_is_charged_and_retried_on_another_node(tmp_path: Path, cluster: Bench) -> None:
    script = f'echo "$LYNCEUS_TRIAL" >> "$FOLDER/log"; if [ "$LYNCEUS_TRIAL" = 0 ]; then {_LONG}; fi; sleep 0.1'
    runs = Runs(tmp_path, cluster.address, script, resources={"doomed": 1})
    study = Study(runs.problem, preset("sweep"))
    doomed = cluster.add(num_cpus=1, resources={"doomed": 1})
    killed: list[float] = []

    def kill_the_node() -> None:
        if (tmp_path / "ready").exists() and not killed:
            time.sleep(1.5)  # so that there is something to charge
            killed.append(time.monotonic())
            cluster.add(num_cpus=1, resources={"doomed": 1})
            cluster.kill(doomed)

    with contextlib.closing(runs.executor):
        began = time.monotonic()
        explore(study, runs.executor, WallClock(), tick=kill_the_node)
        passed = time.monotonic() - began
        runs.check_cluster_is_clean()
    first, *others = study.observations
    assert (first.outcome.end, first.outcome.reason) == (End.FAILED, FailureReason.INFRA)
    assert "was lost; charged up to the last heartbeat" in first.outcome.detail
    assert 0.5 < first.outcome.seconds < passed
    assert first.outcome.charged_usd == pytest.approx(first.outcome.seconds)
    runs.check_all_ended()
    # The same configuration again on the other node, then the rest of the space.
    assert [seen.row for seen in others].count(first.row) == 1
    assert End.FAILED not in {seen.outcome.end for seen in others}
    assert all(seen.outcome.usage is not None and seen.outcome.usage.peak_memory_bytes > 0 for seen in others)
    assert (tmp_path / "log").read_text().split() == [str(seen.order.number) for seen in study.observations]


def test_a_job_ends_when_its_actor_is_killed(tmp_path: Path, cluster: Bench, client: DriverClient) -> None:
    runs = Runs(tmp_path, cluster.address, _LONG, client=client, node_folder=str(tmp_path / "node"))
    ticket = runs.launch()
    runs.wait_for_files(ticket, "ready")
    above = int((tmp_path / "parent").read_text())
    while not Path(f"/proc/{above}/cmdline").read_bytes().startswith(b"ray::RunActor"):
        above = parent_of(above)
    os.kill(above, signal.SIGKILL)
    outcome = runs.wait(ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA)
    runs.check_all_ended()
    runs.check_cluster_is_clean()
    assert len(_folders(tmp_path / "node")) == 1  # the actor could not remove it
    (tmp_path / "ready").unlink()
    again = runs.launch(number=1)
    runs.wait_for_files(again, "ready")
    assert len(_folders(tmp_path / "node")) == 1  # the next actor on the node did
    runs.executor.cancel(again)
    assert runs.wait(again).reason is FailureReason.USER
    runs.check_all_ended()


def test_a_run_releases_its_nodes_while_lynceus_is_gone(tmp_path: Path, cluster: Bench, client: DriverClient) -> None:
    runs = Runs(tmp_path, cluster.address, 'touch "$FOLDER/ready"; sleep 3; echo said', client=client)
    ticket = runs.launch()
    runs.wait_for_files(ticket, "ready")
    until = time.monotonic() + 60
    while [one.detail for one in runs.on_cluster()] != ["records"]:  # only the outcome waits at the head
        assert time.monotonic() < until, runs.on_cluster()
        time.sleep(0.1)
    outcome = runs.wait(ticket)
    assert outcome.end is End.FINISHED
    assert Path(ticket, "stdout").read_bytes() == b"said\n"
    assert not runs.on_cluster()


def test_a_late_heartbeat_of_a_removed_run_is_deleted(tmp_path: Path, cluster: Bench, client: DriverClient) -> None:
    """An actor that is being ended may send a heartbeat after all keys of its run were deleted."""
    runs = Runs(tmp_path, cluster.address, _LONG, client=client)
    runs.wait_for_files(runs.launch(), "ready")
    (held,) = runs.on_cluster()
    runs.executor.remove(held)
    runs.check_all_ended()
    runs.check_cluster_is_clean()
    for _ in range(2):
        client.call("store_folder", name=f"{held.name}/alive", packed=base64.b64encode(b"1.5").decode())
        assert not runs.on_cluster()


def test_a_run_on_several_nodes(tmp_path: Path, cluster: Bench, client: DriverClient) -> None:
    script = 'echo $$ >> "$FOLDER/pids"; echo "$LYNCEUS_NODE_IPS" > "$FOLDER/.$LYNCEUS_NODE_RANK"; '
    script += 'mv "$FOLDER/.$LYNCEUS_NODE_RANK" "$FOLDER/rank-$LYNCEUS_NODE_RANK"; '
    script += 'case $LYNCEUS_NODE_RANK in 0) while [ ! -e "$FOLDER/go" ]; do sleep 0.05; done; echo \'::lynceus {"loss": 2}\';; '
    script += '*) if [ "$LYNCEUS_NUM_NODES" = 2 ]; then echo broken >&2; exit 3; fi; sleep 1000;; esac'
    runs = Runs(tmp_path, cluster.address, script, client=client, num_nodes="${n}")
    three = runs.launch(3)
    runs.wait_for_files(three, "rank-0", "rank-1", "rank-2")
    assert all(len((tmp_path / f"rank-{rank}").read_text().split()) == 3 for rank in range(3))
    (tmp_path / "go").touch()
    outcome = runs.wait(three)
    assert outcome.end is End.FINISHED
    assert dict(outcome.metrics) == {"loss": 2}
    runs.check_all_ended()
    (tmp_path / "go").unlink()
    two = runs.wait(runs.launch(2, number=1))
    assert (two.end, two.reason) == (End.FAILED, FailureReason.JOB)
    assert "exit code 3: broken" in two.detail
    runs.check_all_ended()
    runs.check_cluster_is_clean()


def test_a_run_for_which_no_node_is_large_enough_fails(tmp_path: Path, cluster: Bench, client: DriverClient) -> None:
    runs = Runs(tmp_path, cluster.address, ("true",), client=client, resources={"p5.huge": 1}, capacity_wait=0.5)
    outcome = runs.wait(runs.launch())
    assert (outcome.end, outcome.reason, outcome.charged_usd) == (End.FAILED, FailureReason.INFRA, 0.0)
    assert "no capacity: it waited 0.5 s for 1 node with 1 CPU, 1 p5.huge, but the nodes have" in outcome.detail
    assert "2 m.large" in outcome.detail
    runs.check_cluster_is_clean()


def test_a_queued_run_is_not_charged_and_can_be_cancelled(tmp_path: Path, cluster: Bench, client: DriverClient) -> None:
    script = 'touch "$FOLDER/at-$LYNCEUS_TRIAL"; while [ ! -e "$FOLDER/go" ]; do sleep 0.05; done'
    runs = Runs(tmp_path, cluster.address, script, client=client, resources={"m.xlarge": 2}, capacity_wait=0.1)
    first = runs.launch()
    runs.wait_for_files(first, "at-0")
    second, third = runs.launch(number=1), runs.launch(number=2)
    queued = time.monotonic()
    for _ in range(16):
        time.sleep(0.5)
        assert runs.executor.collect(second) is None
    runs.executor.cancel(third)
    ended = runs.wait(third)
    assert (ended.reason, ended.charged_usd, ended.detail) == (
        FailureReason.USER,
        0.0,
        "cancelled before it started",
    )
    waited = time.monotonic() - queued
    (tmp_path / "go").touch()
    assert runs.wait(first).end is End.FINISHED
    later = runs.wait(second)
    assert later.end is End.FINISHED
    assert later.seconds < waited
    assert not (tmp_path / "at-2").exists()


def test_a_working_directory_is_copied_or_shared(tmp_path: Path, cluster: Bench, client: DriverClient) -> None:
    runs = Runs(tmp_path, cluster.address, 'cp tool data/in.txt "$FOLDER/"; ./tool', client=client, exclude=["*.bin"])
    (runs.work / "data").mkdir()
    (runs.work / "data" / "in.txt").write_text("here")
    (runs.work / "large.bin").write_bytes(b"x" * 100)
    (runs.work / "tool").write_text('#!/bin/sh\nls > "$FOLDER/seen"; pwd > "$FOLDER/where"\n')
    (runs.work / "tool").chmod(0o755)
    outcome = runs.wait(runs.launch())
    assert outcome.end is End.FINISHED, outcome
    assert (tmp_path / "seen").read_text().split() == ["data", "tool"]
    assert (tmp_path / "in.txt").read_text() == "here"
    where = Path((tmp_path / "where").read_text().strip())
    if where.exists():  # its actor was ended before it could remove it; the next actor on the node does
        assert runs.wait(runs.launch(number=1)).end is End.FINISHED
    assert not where.exists(), "the folder on the node was removed"
    missing = tmp_path / "only here"
    shared = Runs(tmp_path, cluster.address, ("true",), client=client, workdir=missing)
    shared.executor._options = shared.executor._options.model_copy(update={"workdir": "shared"})
    refused = shared.wait(shared.launch())
    assert (refused.reason, refused.charged_usd) == (FailureReason.INFRA, 0.0)
    assert f"cannot see the working directory {missing}; mount it there" in refused.detail


def test_a_full_disk_of_the_node(tmp_path: Path, cluster: Bench, client: DriverClient) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)]
    if os.getuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("a small disk needs permission to mount it")
    try:
        (disk / "ballast").write_bytes(b"x" * 1000 * 1024)
        runs = Runs(tmp_path, cluster.address, ("true",), client=client, node_folder=str(disk))
        outcome = runs.wait(runs.launch())
        assert (outcome.end, outcome.reason, outcome.charged_usd) == (End.FAILED, FailureReason.INFRA, 0.0)
        assert "No space left on device" in outcome.detail or "is full" in outcome.detail
        (disk / "ballast").unlink()
        assert runs.wait(runs.launch(number=1)).end is End.FINISHED
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_missing_cluster_is_an_error(tmp_path: Path) -> None:
    runs = Runs(tmp_path, "127.0.0.1:9", ("true",), patience=0.5)
    with contextlib.closing(runs.executor):
        ticket = runs.launch()
        with pytest.raises(
            InfrastructureError, match=r"the Ray cluster 127\.0\.0\.1:9 cannot be reached: no answer from there"
        ):
            runs.wait(ticket)
        with pytest.raises(InfrastructureError, match=r"the Ray cluster 127\.0\.0\.1:9 cannot be reached"):
            runs.executor.owned_resources()


@pytest.mark.slow
def test_an_unreachable_cluster_loses_no_run(tmp_path: Path, cluster: Bench) -> None:
    script = 'echo $$ >> "$FOLDER/log"; touch "$FOLDER/ready"; while [ ! -e "$FOLDER/go" ]; do sleep 0.05; done'
    with relay(cluster.client()) as line:
        runs = Runs(tmp_path, line.address, script, patience=1.0)
        with contextlib.closing(runs.executor):
            ticket = runs.launch()
            with pytest.raises(
                InfrastructureError, match=r"cannot be reached: no answer from there .*; its runs continue"
            ):
                runs.wait(ticket)
            runs.executor._options = runs.executor._options.model_copy(update={"patience": 900.0})
            line.open()
            runs.wait_for_files(ticket, "ready")
            line.cut()
            (tmp_path / "go").touch()
            began = time.monotonic()
            while time.monotonic() - began < 3:
                assert runs.executor.collect(ticket) is None
            line.open()
            outcome = runs.wait(ticket)
        assert outcome.end is End.FINISHED
        assert len((tmp_path / "log").read_text().split()) == 1


_TASKS = """
import os, sys, ray
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
ray.init(namespace="lynceus", log_to_driver=False, logging_level="error")
group = ray.util.get_placement_group(os.environ["LYNCEUS_RAY_PLACEMENT_GROUP"])
where = PlacementGroupSchedulingStrategy(group)
task = ray.remote(lambda: ray.util.get_current_placement_group().id.hex())
assert ray.get(task.options(num_cpus=2, resources={"m.xlarge": 2}, scheduling_strategy=where).remote()) == group.id.hex()
print('::lynceus {"loss": 1}')
"""


@pytest.mark.slow
def test_a_job_that_uses_ray_has_the_resources_of_its_trial(
    tmp_path: Path, cluster: Bench, client: DriverClient
) -> None:
    """The trial has the whole resource: a task outside its placement group would wait for ever."""
    run = (sys.executable, "-c", _TASKS)
    runs = Runs(tmp_path, cluster.address, run, client=client, job_uses_ray=True, num_cpus=2, resources={"m.xlarge": 2})
    outcome = runs.wait(runs.launch(timeout_s=100))
    assert outcome.end is End.FINISHED, outcome
    assert dict(outcome.metrics) == {"loss": 1}


@pytest.mark.slow
def test_a_restarted_cluster_has_lost_its_runs(tmp_path: Path) -> None:
    [port] = free_ports(1)
    with bench(num_cpus=2, gcs_server_port=port) as first:
        runs = Runs(tmp_path, first.address, _LONG)
        ticket = runs.launch()
        runs.wait_for_files(ticket, "ready")
        until = time.monotonic() + 3
        while time.monotonic() < until:
            assert runs.executor.collect(ticket) is None
    runs.check_all_ended()
    began = time.monotonic()
    while time.monotonic() - began < 2:
        assert runs.executor.collect(ticket) is None
    with bench(num_cpus=2, gcs_server_port=port) as second, contextlib.closing(runs.executor):
        assert second.address == first.address
        outcome = runs.wait(ticket)
        assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.INFRA)
        assert "the Ray cluster was restarted and does not know the run" in outcome.detail
        assert 1.0 < outcome.seconds < 60
        assert len((tmp_path / "pids").read_text().split()) == 2  # it was not started again


@pytest.mark.slow
def test_an_actor_that_ray_kills_for_memory_is_out_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.01")
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "6000")
    with bench(num_cpus=2) as cluster:
        runs = Runs(tmp_path, cluster.address, "echo $$ >> $FOLDER/pids; exec sleep 1000")
        with contextlib.closing(runs.executor):
            outcome = runs.wait(runs.launch())
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.OOM)
    assert "ran out of memory, and Ray stopped the run" in outcome.detail
    runs.check_all_ended()


def _folders(base: Path) -> list[Path]:
    return [path for path in base.iterdir() if path.is_dir()]
