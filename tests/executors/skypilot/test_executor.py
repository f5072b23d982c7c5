"""The executor with a fake SkyPilot; the bridge, the script on the nodes and the supervisor are the real ones."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from fake_skypilot_bench import FakeSkyPilot
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import OwnedResource, ResourceKind
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.skypilot.executor import SkyPilotExecutor
from lynceus.problem.problem import Problem
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.testing.executors import executor_checks
from lynceus.trial.outcome import End, FailureReason
from skypilot_runs import StudyRuns, options, run, wait


@pytest.mark.parametrize("name", executor_checks())
def test_the_skypilot_executor_conforms(fake: FakeSkyPilot, name: str, tmp_path: Path) -> None:
    def make(problem: Problem, job: JobCommand, root: Path) -> SkyPilotExecutor:
        ships = name == "a run can be started in its scratch directory"  # with files of the working directory
        return SkyPilotExecutor(ExecutorContext(problem, job, root), options(fake, workdir=ships))

    executor_checks()[name](ExecutorHarness(make, tmp_path))
    assert fake.processes() == [], "a process of a cluster is alive"


def test_a_run_on_several_nodes_has_the_outcome_of_the_first(
    fake: FakeSkyPilot, study: Callable[..., StudyRuns]
) -> None:
    made = study(num_nodes=2)
    script = """
    echo $SKYPILOT_NODE_RANK >> "$FOLDER/log"
    while [ "$(wc -l < "$FOLDER/log")" -lt 2 ]; do sleep 0.02; done
    echo "::lynceus {\\"rank\\": $SKYPILOT_NODE_RANK}"
    """
    outcome = run(made.executor(script), made.request(0))
    assert outcome.end is End.FINISHED
    assert dict(outcome.metrics) == {"rank": 0.0}
    assert sorted((made.folder / "log").read_text().split()) == ["0", "1"]


def test_a_run_fails_if_one_of_its_nodes_fails(fake: FakeSkyPilot, study: Callable[..., StudyRuns]) -> None:
    made = study(num_nodes=2)
    outcome = run(made.executor("exit $SKYPILOT_NODE_RANK"), made.request(0))
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.JOB)
    assert "node 1: exit code 1" in outcome.detail


def test_the_workdir_is_copied_without_files_of_lynceus_and_git(
    fake: FakeSkyPilot, study: Callable[..., StudyRuns]
) -> None:
    made = study(workdir=True)
    (made.folder / "train.sh").write_text('ls -A > "$FOLDER/log"; echo \'::lynceus {"loss": 2}\'')
    (made.folder / "lynceus.db").write_text("private")
    (made.folder / ".git").mkdir()
    outcome = run(made.executor("sh train.sh"), made.request(0))
    assert dict(outcome.metrics) == {"loss": 2.0}
    names = {name for name in (made.folder / "log").read_text().split() if not name.startswith("lynceus-run-")}
    assert names == {"train.sh"}


def test_setup_runs_once_per_cluster(fake: FakeSkyPilot, study: Callable[..., StudyRuns]) -> None:
    made = study(keep_warm="10m")
    context = ExecutorContext(made.problem, made.job, made.folder / "runs", setup=f"echo setup >> '{made.folder}/log'")
    executor = SkyPilotExecutor(context, made.options)
    for number in range(2):
        assert run(executor, made.request(number)).end is End.FINISHED
    executor.close()
    assert (made.folder / "log").read_text().split() == ["setup", "small", "small"]


def test_secrets_are_not_in_the_task_and_encrypted_in_the_copied_files(
    fake: FakeSkyPilot, study: Callable[..., StudyRuns]
) -> None:
    made = study(keep_warm="10m")
    executor = made.executor('test "$TOKEN" = hunter2-"and-more"', TOKEN="hunter2-and-more")
    assert run(executor, made.request(0)).end is End.FINISHED
    for folder in (fake.folder, made.folder):
        for path in folder.rglob("*"):
            assert not path.is_file() or b"hunter2-and-more" not in path.read_bytes(), path


def test_an_infinite_timeout(fake: FakeSkyPilot, study: Callable[..., StudyRuns]) -> None:
    made = study()
    assert run(made.executor(), made.request(0, timeout_s=math.inf)).end is End.FINISHED


def test_a_directory_can_be_removed(fake: FakeSkyPilot, study: Callable[..., StudyRuns]) -> None:
    made = study()
    executor = made.executor()
    ticket = executor.launch(made.request(0))
    wait(executor, ticket)
    executor.remove(OwnedResource(ResourceKind.DIRECTORY, ticket, "nightly", "0a1b2c3d", 0))
    assert not Path(ticket).exists()
