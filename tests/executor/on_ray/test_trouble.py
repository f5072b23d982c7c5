"""What goes wrong on clusters, on the real thing: nodes die, nothing is large enough, the head cannot be reached, disks are full."""

import base64
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lynceus.engine import explore
from lynceus.errors import InfrastructureError
from lynceus.executor import WallClock
from lynceus.executor.on_ray.line import Line
from lynceus.history import End, Reason
from lynceus.policy import preset
from lynceus.study import Study
from ports import free_ports
from ray_bench import Bench, bench
from ray_runs import Runs, parent_of

_LONG = 'echo $$ >> "$FOLDER/pids"; echo $PPID > "$FOLDER/parent"; (setsid sh -c \'echo $$ >> "$FOLDER/pids"; exec sleep 1000\' &); '
_LONG += 'while [ "$(wc -l < "$FOLDER/pids")" -lt 2 ]; do sleep 0.02; done; touch "$FOLDER/ready"; exec sleep 1000'


def test_a_node_that_is_killed_costs_what_ran_and_the_trial_goes_elsewhere(tmp_path: Path, cluster: Bench) -> None:
    script = f'echo "$LYNCEUS_TRIAL" >> "$FOLDER/deeds"; if [ "$LYNCEUS_TRIAL" = 0 ]; then {_LONG}; fi; sleep 0.1'
    runs = Runs(tmp_path, cluster.address, script, resources={"doomed": 1})
    study = Study(runs.problem, preset("sweep"))
    doomed = cluster.add(num_cpus=1, resources={"doomed": 1})
    killed: list[float] = []

    def kill_the_node() -> None:
        if (tmp_path / "ready").exists() and not killed:
            time.sleep(1.5)  # so that there is something to be charged
            killed.append(time.monotonic())
            cluster.add(num_cpus=1, resources={"doomed": 1})
            cluster.kill(doomed)

    with contextlib.closing(runs.executor):
        began = time.monotonic()
        explore(study, runs.executor, WallClock(), tick=kill_the_node)
        passed = time.monotonic() - began
        runs.nothing_on_cluster()
    first, *others = study.history
    assert (first.outcome.end, first.outcome.reason) == (End.FAILED, Reason.INFRA)
    assert "was lost; charged up to its last sign of life" in first.outcome.detail
    assert 0.5 < first.outcome.seconds < passed
    assert first.outcome.charged_usd == pytest.approx(first.outcome.seconds)
    runs.nobody_lives()
    # The same configuration again, on the other node, then the rest of the space.
    assert [seen.row for seen in others].count(first.row) == 1
    assert End.FAILED not in {seen.outcome.end for seen in others}
    assert (tmp_path / "deeds").read_text().split() == [str(seen.order.number) for seen in study.history]


def test_a_keeper_that_is_killed_takes_its_job_along(tmp_path: Path, cluster: Bench, line: Line) -> None:
    runs = Runs(tmp_path, cluster.address, _LONG, line=line, node_folder=str(tmp_path / "node"))
    ticket = runs.launch()
    runs.until_there(ticket, "ready")
    supervisor = int((tmp_path / "parent").read_text())
    os.kill(parent_of(parent_of(supervisor)), signal.SIGKILL)
    outcome = runs.wait(ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, Reason.INFRA)
    runs.nobody_lives()
    runs.nothing_on_cluster()
    assert len(_folders(tmp_path / "node")) == 1  # nobody was left to remove it
    (tmp_path / "ready").unlink()
    again = runs.launch(number=1)
    runs.until_there(again, "ready")
    assert len(_folders(tmp_path / "node")) == 1  # the next keeper on the node did
    runs.executor.cancel(again)
    assert runs.wait(again).reason is Reason.USER
    runs.nobody_lives()


def test_a_run_gives_its_nodes_back_though_lynceus_is_gone(tmp_path: Path, cluster: Bench, line: Line) -> None:
    runs = Runs(tmp_path, cluster.address, 'touch "$FOLDER/ready"; sleep 3; echo said', line=line)
    ticket = runs.launch()
    runs.until_there(ticket, "ready")
    until = time.monotonic() + 60
    while [one.detail for one in runs.on_cluster()] != ["notes"]:  # nobody collects, only the outcome waits at the head
        assert time.monotonic() < until, runs.on_cluster()
        time.sleep(0.1)
    outcome = runs.wait(ticket)
    assert outcome.end is End.FINISHED
    assert runs.executor.output(ticket) == b"said\n"
    assert not runs.on_cluster()


def test_the_last_words_of_a_run_that_was_ended_are_no_leftover(tmp_path: Path, cluster: Bench, line: Line) -> None:
    """A keeper may give a sign of life while it is being ended, after everything of its run was forgotten."""
    runs = Runs(tmp_path, cluster.address, _LONG, line=line)
    runs.until_there(runs.launch(), "ready")
    (held,) = runs.on_cluster()
    runs.executor.end(held)
    runs.nobody_lives()
    runs.nothing_on_cluster()
    for _ in range(2):
        line.ask("ship", name=f"{held.name}/alive", packed=base64.b64encode(b"1.5").decode())
        assert not runs.on_cluster()


def test_several_nodes_know_each_other_and_end_together(tmp_path: Path, cluster: Bench, line: Line) -> None:
    script = 'echo $$ >> "$FOLDER/pids"; echo "$LYNCEUS_NODE_IPS" > "$FOLDER/.$LYNCEUS_NODE_RANK"; '
    script += 'mv "$FOLDER/.$LYNCEUS_NODE_RANK" "$FOLDER/rank-$LYNCEUS_NODE_RANK"; '
    script += 'case $LYNCEUS_NODE_RANK in 0) while [ ! -e "$FOLDER/go" ]; do sleep 0.05; done; echo \'::lynceus {"loss": 2}\';; '
    script += '*) if [ "$LYNCEUS_NUM_NODES" = 2 ]; then echo odd >&2; exit 3; fi; sleep 1000;; esac'
    runs = Runs(tmp_path, cluster.address, script, line=line, num_nodes="${n}")
    three = runs.launch(3)
    runs.until_there(three, "rank-0", "rank-1", "rank-2")
    assert all(len((tmp_path / f"rank-{rank}").read_text().split()) == 3 for rank in range(3))
    (tmp_path / "go").touch()
    outcome = runs.wait(three)
    assert outcome.end is End.FINISHED
    assert dict(outcome.metrics) == {"loss": 2}
    runs.nobody_lives()
    (tmp_path / "go").unlink()
    two = runs.wait(runs.launch(2, number=1))
    assert (two.end, two.reason) == (End.FAILED, Reason.JOB)
    assert "exit code 3: odd" in two.detail
    runs.nobody_lives()
    runs.nothing_on_cluster()


def test_what_no_node_can_hold_is_a_sentence(tmp_path: Path, cluster: Bench, line: Line) -> None:
    runs = Runs(tmp_path, cluster.address, ("true",), line=line, resources={"p5.huge": 1}, capacity_wait=0.5)
    outcome = runs.wait(runs.launch())
    assert (outcome.end, outcome.reason, outcome.charged_usd) == (End.FAILED, Reason.INFRA, 0.0)
    assert "no capacity for it: 1 node with 1 CPU, 1 p5.huge wanted for 0.5 s, but its nodes have" in outcome.detail
    assert "2 m.large" in outcome.detail
    runs.nothing_on_cluster()


def test_a_queued_run_is_not_charged_for_waiting_and_can_be_cancelled(
    tmp_path: Path, cluster: Bench, line: Line
) -> None:
    script = 'touch "$FOLDER/at-$LYNCEUS_TRIAL"; while [ ! -e "$FOLDER/go" ]; do sleep 0.05; done'
    runs = Runs(tmp_path, cluster.address, script, line=line, resources={"m.xlarge": 2}, capacity_wait=0.1)
    first = runs.launch()
    runs.until_there(first, "at-0")
    second, third = runs.launch(number=1), runs.launch(number=2)
    queued = time.monotonic()
    for _ in range(16):
        time.sleep(0.5)
        assert runs.executor.collect(second) is None
    runs.executor.cancel(third)
    ended = runs.wait(third)
    assert (ended.reason, ended.charged_usd, ended.detail) == (Reason.USER, 0.0, "ended on request before it began")
    waited = time.monotonic() - queued
    (tmp_path / "go").touch()
    assert runs.wait(first).end is End.FINISHED
    later = runs.wait(second)
    assert later.end is End.FINISHED
    assert later.seconds < waited
    assert not (tmp_path / "at-2").exists()


def test_a_working_directory_is_shipped_or_must_be_seen(tmp_path: Path, cluster: Bench, line: Line) -> None:
    runs = Runs(tmp_path, cluster.address, 'cp tool data/in.txt "$FOLDER/"; ./tool', line=line, exclude=["*.bin"])
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
    if where.exists():  # its keeper was ended while it tidied up; the next one on the node does it
        assert runs.wait(runs.launch(number=1)).end is End.FINISHED
    assert not where.exists(), "nothing is left on the node"
    unseen = tmp_path / "only here"
    shared = Runs(tmp_path, cluster.address, ("true",), line=line, workdir=unseen)
    shared.executor._options = shared.executor._options.model_copy(update={"workdir": "shared"})
    refused = shared.wait(shared.launch())
    assert (refused.reason, refused.charged_usd) == (Reason.INFRA, 0.0)
    assert f"does not see the working directory {unseen}; mount it there" in refused.detail


def test_a_full_disk_on_the_node_is_a_sentence(tmp_path: Path, cluster: Bench, line: Line) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(disk)]
    if os.getuid() != 0 or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("a small disk needs the right to mount one")
    try:
        (disk / "ballast").write_bytes(b"x" * 1000 * 1024)
        runs = Runs(tmp_path, cluster.address, ("true",), line=line, node_folder=str(disk))
        outcome = runs.wait(runs.launch())
        assert (outcome.end, outcome.reason, outcome.charged_usd) == (End.FAILED, Reason.INFRA, 0.0)
        assert "No space left on device" in outcome.detail or "is full" in outcome.detail
        (disk / "ballast").unlink()
        assert runs.wait(runs.launch(number=1)).end is End.FINISHED
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_cluster_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    runs = Runs(tmp_path, "127.0.0.1:9", ("true",), patience=0.5)
    with contextlib.closing(runs.executor):
        ticket = runs.launch()
        with pytest.raises(
            InfrastructureError, match=r"the Ray cluster 127\.0\.0\.1:9 cannot be reached: nobody answers there"
        ):
            runs.wait(ticket)
        with pytest.raises(InfrastructureError, match=r"the Ray cluster 127\.0\.0\.1:9 cannot be reached"):
            runs.executor.belongings()


@pytest.mark.slow
def test_a_cluster_out_of_reach_loses_nothing(tmp_path: Path, cluster: Bench) -> None:
    script = 'echo $$ >> "$FOLDER/deeds"; touch "$FOLDER/ready"; while [ ! -e "$FOLDER/go" ]; do sleep 0.05; done'
    with _wire(cluster.client()) as wire:
        runs = Runs(tmp_path, wire.address, script, patience=1.0)
        with contextlib.closing(runs.executor):
            ticket = runs.launch()
            with pytest.raises(
                InfrastructureError, match=r"cannot be reached: nobody answers there .*; what runs there goes on"
            ):
                runs.wait(ticket)
            runs.executor._options = runs.executor._options.model_copy(update={"patience": 900.0})
            wire.open()
            runs.until_there(ticket, "ready")
            wire.cut()
            (tmp_path / "go").touch()
            began = time.monotonic()
            while time.monotonic() - began < 3:
                assert runs.executor.collect(ticket) is None
            wire.open()
            outcome = runs.wait(ticket)
        assert outcome.end is End.FINISHED
        assert len((tmp_path / "deeds").read_text().split()) == 1


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
def test_a_job_that_uses_ray_gets_what_its_trial_has_set_aside(tmp_path: Path, cluster: Bench, line: Line) -> None:
    """The resource is there once, and the trial has it: a task outside of the trial's group would wait for ever."""
    run = (sys.executable, "-c", _TASKS)
    runs = Runs(tmp_path, cluster.address, run, line=line, job_uses_ray=True, num_cpus=2, resources={"m.xlarge": 2})
    outcome = runs.wait(runs.launch(cap_s=100))
    assert outcome.end is End.FINISHED, outcome
    assert dict(outcome.metrics) == {"loss": 1}


@pytest.mark.slow
def test_a_cluster_that_was_restarted_has_lost_its_runs(tmp_path: Path) -> None:
    [port] = free_ports(1)
    with bench(num_cpus=2, gcs_server_port=port) as first:
        runs = Runs(tmp_path, first.address, _LONG)
        ticket = runs.launch()
        runs.until_there(ticket, "ready")
        until = time.monotonic() + 3
        while time.monotonic() < until:
            assert runs.executor.collect(ticket) is None
    runs.nobody_lives()
    began = time.monotonic()
    while time.monotonic() - began < 2:
        assert runs.executor.collect(ticket) is None
    with bench(num_cpus=2, gcs_server_port=port) as second, contextlib.closing(runs.executor):
        assert second.address == first.address
        outcome = runs.wait(ticket)
        assert (outcome.end, outcome.reason) == (End.FAILED, Reason.INFRA)
        assert "the Ray cluster was restarted and knows nothing of the run" in outcome.detail
        assert 1.0 < outcome.seconds < 60
        assert len((tmp_path / "pids").read_text().split()) == 2  # it was not begun again


@pytest.mark.slow
def test_a_keeper_that_ray_ends_for_memory_blames_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_memory_usage_threshold", "0.01")
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "6000")
    with bench(num_cpus=2) as cluster:
        runs = Runs(tmp_path, cluster.address, "echo $$ >> $FOLDER/pids; exec sleep 1000")
        with contextlib.closing(runs.executor):
            outcome = runs.wait(runs.launch())
    assert (outcome.end, outcome.reason) == (End.FAILED, Reason.OOM)
    assert "ran out of memory, and Ray ended the run" in outcome.detail
    runs.nobody_lives()


def _folders(base: Path) -> list[Path]:
    return [path for path in base.iterdir() if path.is_dir()]


class _Wire:
    """A port that leads to another one, while it is open."""

    def __init__(self, target: str) -> None:
        host, _, port = target.removeprefix("ray://").partition(":")
        self._target = (host, int(port))
        [self._port] = free_ports(1)
        self.address = f"ray://127.0.0.1:{self._port}"
        self._server: socket.socket | None = None
        self._pairs: list[socket.socket] = []

    def open(self) -> None:
        self._server = socket.create_server(("127.0.0.1", self._port))
        threading.Thread(target=self._serve, args=(self._server,), daemon=True).start()

    def cut(self) -> None:
        assert self._server is not None
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for one in self._pairs:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._pairs, self._server = [], None

    def _serve(self, server: socket.socket) -> None:
        while True:
            try:
                near, _ = server.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target)
            except OSError:
                near.close()
                continue
            self._pairs += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def _wire(target: str) -> Iterator[_Wire]:
    wire = _Wire(target)
    try:
        yield wire
    finally:
        if wire._server is not None:
            wire.cut()
