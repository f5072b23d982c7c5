"""When clusters of the fake SkyPilot are started, reused and taken down."""

import json
import time
from collections.abc import Callable

import pytest

from fake_skypilot_bench import FakeSkyPilot
from lynceus.executors.interface import ResourceKind
from lynceus.problem.billing import Billing
from lynceus.trial.outcome import End
from skypilot_runs import StudyRuns, run, wait


def test_a_cluster_is_listed_before_it_is_requested_until_it_is_down(
    fake: FakeSkyPilot, study: Callable[..., StudyRuns], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lynceus.executors.skypilot.executor._CHECK_S", 0.0)
    made = study()
    fake.fail(down=("ApiServerConnectionError", "not available for a moment", 1))
    executor = made.executor()
    ticket = executor.launch(made.request(0))
    (record_file,) = (made.folder / "runs" / "skypilot").glob("*.json")
    assert json.loads(record_file.read_text())["number"] == 0
    assert wait(executor, ticket).end is End.FINISHED
    until = time.monotonic() + 20
    while executor._downs and time.monotonic() < until:
        executor.collect(ticket)
        time.sleep(0.01)
    assert record_file.exists(), "a cluster was deleted from the list although it could not be taken down"
    assert fake.clusters(), "it still exists"
    executor._down_not_before.clear()
    while record_file.exists() and time.monotonic() < until:
        executor.collect(ticket)
        time.sleep(0.01)
    assert not record_file.exists()
    assert not fake.clusters()


def test_every_cluster_takes_itself_down_when_idle(fake: FakeSkyPilot, study: Callable[..., StudyRuns]) -> None:
    made = study(keep_warm="20m", dead_man="5m")
    executor = made.executor()
    run(executor, made.request(0))
    (record,) = fake.records()
    assert record["down"] is True
    assert record["idle_minutes"] == 22, "later than Lynceus would do it"
    assert record["wait_for"] == "jobs", "ssh sessions do not keep it up"


def test_a_warm_cluster_of_the_same_shape_is_reused_without_a_boot(
    fake: FakeSkyPilot, study: Callable[..., StudyRuns]
) -> None:
    made = study(keep_warm="10m", billing=Billing(boot_s=30, fee_usd=5))
    executor = made.executor()
    first, second = run(executor, made.request(0)), run(executor, made.request(1))
    assert len(fake.launches()) == 1, f"clusters were started: {fake.launches()}"
    assert first.charged_usd >= 35
    assert second.charged_usd < 30, "a warm cluster does not boot"
    executor.close()
    assert not fake.clusters(), "no warm cluster is left behind"


def test_idle_time_is_charged_to_the_next_run(fake: FakeSkyPilot, study: Callable[..., StudyRuns]) -> None:
    made = study(keep_warm="10m")
    executor = made.executor()
    run(executor, made.request(0))
    (record_file,) = (made.folder / "runs" / "skypilot").glob("*.json")
    record = json.loads(record_file.read_text())
    record["accounted_s"] -= 500.0  # as if it had been idle for so long
    record_file.write_text(json.dumps(record))
    second = run(executor, made.request(1))
    assert 500 <= second.charged_usd < 560
    assert second.seconds < 60


def test_a_cluster_that_was_not_released_before_a_crash_is_taken_down(
    fake: FakeSkyPilot, study: Callable[..., StudyRuns]
) -> None:
    made = study(keep_warm="10m")
    executor = made.executor()
    ticket = executor.launch(made.request(0))
    wait(executor, ticket)
    (record_file,) = (made.folder / "runs" / "skypilot").glob("*.json")
    record_file.write_text(
        json.dumps({**json.loads(record_file.read_text()), "number": 0})
    )  # as if it had not been released
    executor.leave()
    later = made.executor()
    until = time.monotonic() + 30
    while record_file.exists() and time.monotonic() < until:
        later.collect(ticket)
        time.sleep(0.01)
    assert not record_file.exists()
    assert not fake.clusters()


def test_clusters_of_other_shapes_are_not_reused(fake: FakeSkyPilot, study: Callable[..., StudyRuns]) -> None:
    made = study(keep_warm="10m", resources={"infra": "cloud/region", "instance_type": "${machine}"})
    executor = made.executor()
    for number, row in enumerate((0, 1, 0)):
        run(executor, made.request(number, row))
    assert len(fake.launches()) == 2
    kinds = {record["task"]["resources"]["instance_type"] for record in fake.records()}
    assert kinds == {"small", "large"}


def test_clusters_that_are_not_listed_are_found_and_removed(
    fake: FakeSkyPilot, study: Callable[..., StudyRuns]
) -> None:
    made = study(keep_warm="10m")
    executor = made.executor()
    run(executor, made.request(0))
    for path in (made.folder / "runs" / "skypilot").glob("*.json"):
        path.unlink()
    (left,) = [one for one in executor.owned_resources() if one.kind is ResourceKind.CLUSTER]
    assert (left.study, left.identity, left.number) == ("nightly", "0a1b2c3d", None)
    executor.remove(left)
    executor.remove(left)
    assert not fake.clusters()
    assert not [one for one in executor.owned_resources() if one.kind is ResourceKind.CLUSTER]
