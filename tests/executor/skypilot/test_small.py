"""The executor against a SkyPilot of processes: the bridge, the node's script and the supervisor are the real ones."""

import json
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local_runs import eventually
from lynceus.errors import InfrastructureError, InputError
from lynceus.executor.command import LocalJob
from lynceus.executor.executor import Belonging, Request
from lynceus.executor.plugin import Setting
from lynceus.executor.skypilot import SkyPilotExecutor, SkyPilotOptions
from lynceus.executor.skypilot.bridge import Bridge, SkyError
from lynceus.history import End, Outcome, Reason
from lynceus.problem import Budget, Problem, Tariff
from lynceus.space import Categorical, Space
from lynceus.testing import Ground, executor_checks
from small_sky_bench import SmallSky

OPTIONS = {"resources": {"infra": "cloud/region", "cpus": 2}, "workdir": False}


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallSky:
    bench = SmallSky(tmp_path / "small")
    monkeypatch.setenv("SMALL_SKY", str(bench.folder))
    return bench


def options(small: SmallSky, **more: Any) -> SkyPilotOptions:
    return SkyPilotOptions.model_validate({"python": str(small.python), **OPTIONS, **more})


class Study:
    """A few runs of one study."""

    def __init__(self, small: SmallSky, folder: Path, tariff: Tariff | None = None, **more: Any) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        space = Space.build([Categorical("machine", ("small", "large"))], price=3600.0)
        self.problem = Problem(space, budget=Budget(usd=1e6), tariff=tariff or Tariff())
        self.job = LocalJob('echo "$machine" >> "$FOLDER/deeds"', workdir=folder, env={"FOLDER": str(folder)})
        self.options = options(small, **more)
        self._open: list[SkyPilotExecutor] = []

    def executor(self, run: str | None = None, **secrets: str) -> SkyPilotExecutor:
        job = self.job if run is None else replace(self.job, run=run, secrets=secrets)
        made = SkyPilotExecutor(Setting(self.problem, job, self.folder / "runs"), self.options)
        self._open.append(made)
        return made

    def request(self, number: int, row: int = 0, cap_s: float = 60.0, *, boots: bool = True) -> Request:
        return Request("nightly", number, row, {"machine": ("small", "large")[row]}, cap_s, boots, "0a1b2c3d")

    def close(self) -> None:
        for one in self._open:
            one.leave()


@pytest.fixture
def study(small: SmallSky, tmp_path: Path) -> Iterator[Callable[..., Study]]:
    made: list[Study] = []

    def make(**more: Any) -> Study:
        made.append(Study(small, tmp_path / "study", **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


def ended(executor: SkyPilotExecutor, ticket: str) -> Outcome:
    until = time.monotonic() + 60
    while (outcome := executor.collect(ticket)) is None:
        assert time.monotonic() < until, "the run does not end"
        time.sleep(0.01)
    return outcome


def run(executor: SkyPilotExecutor, request: Request) -> Outcome:
    return ended(executor, executor.launch(request))


@pytest.mark.parametrize("name", executor_checks())
def test_every_promise_is_kept(small: SmallSky, name: str, tmp_path: Path) -> None:
    def make(problem: Problem, job: LocalJob, root: Path) -> SkyPilotExecutor:
        return SkyPilotExecutor(Setting(problem, job, root), options(small))

    executor_checks()[name](Ground(make, tmp_path))
    assert small.processes() == [], "something of a cluster lives on"


def test_the_cluster_is_written_down_before_it_is_asked_for_and_struck_out_when_it_is_down(
    small: SmallSky, study: Callable[..., Study]
) -> None:
    made = study()
    small.trouble(down=("ApiServerConnectionError", "gone for a moment", 1))
    executor = made.executor()
    ticket = executor.launch(made.request(0))
    (ledger,) = (made.folder / "runs" / "skypilot").glob("*.json")
    assert json.loads(ledger.read_text())["number"] == 0
    assert ended(executor, ticket).end is End.FINISHED
    until = time.monotonic() + 20
    while executor._downs and time.monotonic() < until:
        executor.collect(ticket)
        time.sleep(0.01)
        executor._swept_s = 0.0
    assert ledger.exists(), "a cluster was struck out although it could not be taken down"
    assert small.clusters(), "it is still there"
    executor._down_not_before.clear()
    while ledger.exists() and time.monotonic() < until:
        executor._swept_s = 0.0
        executor.collect(ticket)
        time.sleep(0.01)
    assert not ledger.exists()
    assert not small.clusters()


def test_every_cluster_takes_itself_down_when_idle(small: SmallSky, study: Callable[..., Study]) -> None:
    made = study(keep_warm="20m", dead_man="5m")
    executor = made.executor()
    run(executor, made.request(0))
    (record,) = small.records()
    assert record["down"] is True
    assert record["idle_minutes"] == 22, "later than we would do it ourselves"
    assert record["wait_for"] == "jobs", "somebody's ssh session does not keep it up"


def test_a_warm_cluster_of_the_same_shape_is_used_again_and_nobody_pays_for_its_boot_twice(
    small: SmallSky, study: Callable[..., Study]
) -> None:
    made = study(keep_warm="10m", tariff=Tariff(boot_s=30, fee_usd=5))
    executor = made.executor()
    first, second = run(executor, made.request(0)), run(executor, made.request(1))
    assert len(small.history()) == 1, f"clusters were started: {small.history()}"
    assert first.charged_usd >= 35
    assert second.charged_usd < 30, "a warm cluster boots nothing"
    executor.close()
    assert not small.clusters(), "nobody leaves a warm cluster behind"


def test_idle_time_is_charged_to_the_next_run_that_ends(small: SmallSky, study: Callable[..., Study]) -> None:
    made = study(keep_warm="10m")
    executor = made.executor()
    run(executor, made.request(0))
    (ledger,) = (made.folder / "runs" / "skypilot").glob("*.json")
    record = json.loads(ledger.read_text())
    record["accounted_s"] -= 500.0  # as if it had waited so long
    ledger.write_text(json.dumps(record))
    second = run(executor, made.request(1))
    assert 500 <= second.charged_usd < 560
    assert second.seconds < 60


def test_a_cluster_whose_run_has_ended_is_freed_after_a_crash_in_between(
    small: SmallSky, study: Callable[..., Study]
) -> None:
    made = study(keep_warm="10m")
    executor = made.executor()
    ticket = executor.launch(made.request(0))
    ended(executor, ticket)
    (ledger,) = (made.folder / "runs" / "skypilot").glob("*.json")
    ledger.write_text(json.dumps({**json.loads(ledger.read_text()), "number": 0}))  # as if it had not been given back
    executor.leave()
    following = made.executor()
    until = time.monotonic() + 30
    while ledger.exists() and time.monotonic() < until:
        following.collect(ticket)
        time.sleep(0.01)
    assert not ledger.exists()
    assert not small.clusters()


def test_clusters_of_another_shape_do_not_wait_for_each_other(small: SmallSky, study: Callable[..., Study]) -> None:
    made = study(keep_warm="10m", resources={"infra": "cloud/region", "instance_type": "${machine}"})
    executor = made.executor()
    for number, row in enumerate((0, 1, 0)):
        run(executor, made.request(number, row))
    assert len(small.history()) == 2
    kinds = {record["task"]["resources"]["instance_type"] for record in small.records()}
    assert kinds == {"small", "large"}


def test_no_capacity_is_waited_for(
    small: SmallSky, study: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lynceus.executor.skypilot.following._FIRST_PAUSE_S", 0.05)
    small.trouble(launch=("ResourcesUnavailableError", "Failed to acquire resources in all zones", 2))
    made = study()
    assert run(made.executor(), made.request(0)).end is End.FINISHED


@pytest.mark.parametrize(
    ("kind", "text", "reason", "words"),
    [
        ("ResourcesUnavailableError", "Failed to acquire resources in all zones", Reason.INFRA, "no capacity"),
        ("ResourcesUnavailableError", "VcpuLimitExceeded: your quota is 8 vCPUs", Reason.INFRA, "quota"),
        (
            "ResourcesUnavailableError",
            "Catalog does not contain any instances satisfying the request",
            Reason.JOB,
            "offers",
        ),
        ("ResourcesUnavailableError", "Task 'x' requires aws which is not enabled", Reason.INFRA, "no access"),
        ("NoCloudAccessError", "Cloud access is not set up", Reason.INFRA, "sky check"),
        ("NotSupportedError", "Spot instances are not supported here", Reason.JOB, "refuses"),
    ],
)
def test_what_cannot_be_started_is_told_in_a_sentence_and_costs_nothing(
    small: SmallSky, study: Callable[..., Study], kind: str, text: str, reason: Reason, words: str
) -> None:
    small.trouble(launch=(kind, text, 99))
    made = study(patience="0s", tariff=Tariff(minimum_s=60, boot_s=30, fee_usd=5))
    outcome = run(made.executor(), made.request(0))
    assert (outcome.end, outcome.reason, outcome.charged_usd) == (End.FAILED, reason, 0.0)
    assert words in outcome.detail
    assert text.split(":")[0] in outcome.detail


def test_an_api_server_out_of_reach_ends_the_study_and_not_the_run(
    small: SmallSky, study: Callable[..., Study], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lynceus.executor.skypilot.following._FIRST_PAUSE_S", 0.05)
    made = study(patience="1s", api_server="http://sky.example:46580")
    executor = made.executor('echo begun >> "$FOLDER/deeds"; while [ ! -e "$FOLDER/go" ]; do sleep 0.02; done')
    ticket = executor.launch(made.request(0))
    until = time.monotonic() + 60
    while not (made.folder / "deeds").exists() and time.monotonic() < until:
        assert executor.collect(ticket) is None
        time.sleep(0.01)
    small.trouble(
        stream=("ApiServerConnectionError", "refused", 1), unreachable=("ApiServerConnectionError", "refused", 999)
    )
    with pytest.raises(InfrastructureError, match=r"API server at http://sky\.example:46580 does not answer"):
        ended(executor, ticket)
    executor.leave()
    small.trouble()
    (made.folder / "go").touch()
    assert ended(made.executor(), ticket).end is End.FINISHED
    assert (made.folder / "deeds").read_text().split() == ["begun"]


@pytest.mark.parametrize(("spot", "reason"), [(False, Reason.INFRA), (True, Reason.PREEMPTED)])
def test_a_cluster_that_vanishes_is_the_machines_trouble(
    small: SmallSky, study: Callable[..., Study], spot: bool, reason: Reason
) -> None:
    made = study(resources={"infra": "cloud/region", "use_spot": spot})
    executor = made.executor('touch "$FOLDER/deeds"; sleep 600')
    ticket = executor.launch(made.request(0))
    until = time.monotonic() + 60
    while not (made.folder / "deeds").exists() and time.monotonic() < until:
        assert executor.collect(ticket) is None
        time.sleep(0.01)
    small.vanish()
    outcome = ended(executor, ticket)
    assert (outcome.end, outcome.reason) == (End.FAILED, reason)
    assert "gone" in outcome.detail
    assert outcome.charged_usd > 0, "it ran, and was paid for"


def test_a_bridge_that_dies_is_started_again(small: SmallSky, study: Callable[..., Study]) -> None:
    made = study()
    executor = made.executor('touch "$FOLDER/deeds"; while [ ! -e "$FOLDER/go" ]; do sleep 0.02; done')
    ticket = executor.launch(made.request(0))
    until = time.monotonic() + 60
    while not (made.folder / "deeds").exists() and time.monotonic() < until:
        assert executor.collect(ticket) is None
        time.sleep(0.01)
    assert executor._bridge._far is not None
    os.kill(executor._bridge._far.process.pid, signal.SIGKILL)
    (made.folder / "go").touch()
    assert ended(executor, ticket).end is End.FINISHED


def test_several_nodes_run_the_job_side_by_side_and_the_first_one_speaks_for_all(
    small: SmallSky, study: Callable[..., Study]
) -> None:
    made = study(num_nodes=2)
    script = """
    echo $SKYPILOT_NODE_RANK >> "$FOLDER/deeds"
    while [ "$(wc -l < "$FOLDER/deeds")" -lt 2 ]; do sleep 0.02; done
    echo "::lynceus {\\"rank\\": $SKYPILOT_NODE_RANK}"
    """
    outcome = run(made.executor(script), made.request(0))
    assert outcome.end is End.FINISHED
    assert dict(outcome.metrics) == {"rank": 0.0}
    assert sorted((made.folder / "deeds").read_text().split()) == ["0", "1"]


def test_a_node_that_fails_fails_the_run(small: SmallSky, study: Callable[..., Study]) -> None:
    made = study(num_nodes=2)
    outcome = run(made.executor("exit $SKYPILOT_NODE_RANK"), made.request(0))
    assert (outcome.end, outcome.reason) == (End.FAILED, Reason.JOB)
    assert "node 1: exit code 1" in outcome.detail


def test_the_workdir_travels_without_what_only_lynceus_needs(small: SmallSky, study: Callable[..., Study]) -> None:
    made = study(workdir=True)
    (made.folder / "train.sh").write_text('ls -A > "$FOLDER/deeds"; echo \'::lynceus {"loss": 2}\'')
    (made.folder / "lynceus.db").write_text("not for everybody")
    (made.folder / ".git").mkdir()
    outcome = run(made.executor("sh train.sh"), made.request(0))
    assert dict(outcome.metrics) == {"loss": 2.0}
    names = {name for name in (made.folder / "deeds").read_text().split() if not name.startswith("lynceus-run-")}
    assert names == {"train.sh"}


def test_setup_runs_once_per_cluster(small: SmallSky, study: Callable[..., Study]) -> None:
    made = study(keep_warm="10m")
    setting = Setting(made.problem, made.job, made.folder / "runs", setup=f"echo setup >> '{made.folder}/deeds'")
    executor = SkyPilotExecutor(setting, made.options)
    for number in range(2):
        assert run(executor, made.request(number)).end is End.FINISHED
    executor.close()
    assert (made.folder / "deeds").read_text().split() == ["setup", "small", "small"]


@pytest.fixture
def small_disk(small: SmallSky) -> Iterator[None]:
    """All clusters on a disk of 2 MB."""
    folder = small.folder / "clusters"
    folder.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(folder)], check=False).returncode:
        pytest.skip("a small disk needs the right to mount one")
    yield
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.usefixtures("small_disk")
def test_a_full_disk_of_the_node_is_told_in_a_sentence(small: SmallSky, study: Callable[..., Study]) -> None:
    made = study(keep_warm="10m")
    fill = "head -c $(( $(df --output=avail -k . | tail -1) - 170 ))k /dev/zero > fill"
    executor = SkyPilotExecutor(Setting(made.problem, made.job, made.folder / "runs", setup=fill), made.options)
    outcome = run(executor, made.request(0))
    assert (outcome.end, outcome.reason) == (End.FAILED, Reason.INFRA)
    assert "the disk of the node is full" in outcome.detail
    executor.close()
    assert not small.clusters(), "nobody uses such a machine again"


def test_clusters_that_the_ledger_forgot_are_found_and_ended(small: SmallSky, study: Callable[..., Study]) -> None:
    made = study(keep_warm="10m")
    executor = made.executor()
    run(executor, made.request(0))
    for ledger in (made.folder / "runs" / "skypilot").glob("*.json"):
        ledger.unlink()
    (left,) = [one for one in executor.belongings() if one.kind == "cluster"]
    assert (left.study, left.identity, left.number) == ("nightly", "0a1b2c3d", None)
    executor.end(left)
    executor.end(left)
    assert not small.clusters()
    assert not [one for one in executor.belongings() if one.kind == "cluster"]


def test_secrets_are_neither_in_the_task_nor_readable_in_what_travels(
    small: SmallSky, study: Callable[..., Study]
) -> None:
    made = study(keep_warm="10m")
    executor = made.executor('test "$TOKEN" = hunter2-"and-more"', TOKEN="hunter2-and-more")
    assert run(executor, made.request(0)).end is End.FINISHED
    for place in (small.folder, made.folder):
        for path in place.rglob("*"):
            assert not path.is_file() or b"hunter2-and-more" not in path.read_bytes(), path


def test_a_python_that_is_not_there_is_named_before_anything_runs(small: SmallSky, study: Callable[..., Study]) -> None:
    made = study(python="/nowhere/bin/python")
    with pytest.raises(InputError, match=r"executor\.python: there is no /nowhere/bin/python"):
        made.executor()


def test_a_python_without_skypilot_is_named(tmp_path: Path) -> None:
    import sys

    bridge = Bridge(Path(sys.executable), tmp_path / "log")
    answer: Future[Any] = bridge.ask("hello")
    with pytest.raises(SkyError, match="has no SkyPilot"):
        answer.result(60)
    bridge.close()


def test_a_call_that_a_dead_process_left_open_fails_though_another_one_runs(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nsleep 1000 & echo $! >> {tmp_path}/children; wait\n")
    python.chmod(0o755)
    bridge = Bridge(python, tmp_path / "log")

    def children() -> list[int]:
        return [int(line) for line in (tmp_path / "children").read_text().split()]

    first = bridge.ask("hello")
    eventually((tmp_path / "children").exists)
    eventually(children)
    assert bridge._far is not None
    os.kill(bridge._far.process.pid, signal.SIGKILL)  # its child holds the pipe open: nobody has noticed yet
    bridge._far.process.wait()
    second = bridge.ask("hello")
    eventually(lambda: len(children()) == 2)
    assert not first.done()
    os.kill(children()[0], signal.SIGKILL)
    with pytest.raises(SkyError, match="the process that speaks to SkyPilot ended"):
        first.result(60)
    assert not second.done(), "the other one goes on"
    bridge.close()
    os.kill(children()[1], signal.SIGKILL)


def test_an_infinite_cap_is_no_cap(small: SmallSky, study: Callable[..., Study]) -> None:
    made = study()
    assert run(made.executor(), made.request(0, cap_s=math.inf)).end is End.FINISHED


def test_ending_a_directory_removes_it(small: SmallSky, study: Callable[..., Study]) -> None:
    made = study()
    executor = made.executor()
    ticket = executor.launch(made.request(0))
    ended(executor, ticket)
    executor.end(Belonging("directory", ticket, "nightly", "0a1b2c3d", 0))
    assert not Path(ticket).exists()
