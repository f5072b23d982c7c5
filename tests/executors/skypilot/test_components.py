"""Components of the SkyPilot executor: options, payload, list of clusters, messages."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.executors.resources import Resources
from lynceus.executors.skypilot import node
from lynceus.executors.skypilot.bridge import SkyError
from lynceus.executors.skypilot.clusters import Cluster, Clusters, new_name, owner, shape_of
from lynceus.executors.skypilot.messages import diagnose
from lynceus.executors.skypilot.options import SkyPilotOptions, check_options, machines, python_of, task_fields
from lynceus.executors.skypilot.payload import last_line, problem_in, unpack
from lynceus.executors.supervisor import files
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space

SPACE = Space.build(
    [Categorical("vm", ("a", "b")), Integer("nodes", values=(1, 2)), Categorical("use_it", (True, False))], price=1.0
)


def options(**more: Any) -> SkyPilotOptions:
    return SkyPilotOptions.model_validate(more)


def test_placeholders_keep_the_type_of_values() -> None:
    given = options(
        resources={"infra": "aws/${vm}", "use_spot": "${use_it}", "any_of": [{"cpus": "${nodes}+"}]},
        num_nodes="${nodes}",
        task={"config": {"x": "${vm}"}},
    )
    row = SPACE.row({"vm": "b", "nodes": 2, "use_it": True})
    resources, nodes = machines(given, SPACE, row, None)
    assert resources == {"infra": "aws/b", "use_spot": True, "any_of": [{"cpus": "2+"}]}
    assert nodes == 2
    assert task_fields(given, SPACE, row) == {"config": {"x": "b"}}


def test_columns_of_a_catalog_select_the_machine() -> None:
    space = Space.build(
        [
            Categorical("infra", ("aws/us-east-1",)),
            Categorical("instance_type", ("m5.large",)),
            Integer("num_nodes", values=(3,)),
        ],
        price=1.0,
    )
    resources = lambda row: Resources(cpus=6, memory_bytes=1 << 33)  # noqa: E731
    assert machines(options(), space, 0, resources) == ({"infra": "aws/us-east-1", "instance_type": "m5.large"}, 3)


def test_without_a_catalog_the_resources_of_the_job_are_requested() -> None:
    resources = lambda row: Resources(cpus=6, memory_bytes=1 << 33)  # noqa: E731
    assert machines(options(resources={"infra": "k8s"}), SPACE, 0, resources) == (
        {"cpus": 6, "memory": 8.0, "infra": "k8s"},
        1,
    )


def test_unknown_columns_and_reserved_fields_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"executor\.resources: \$\{node\} is not a column of the space\. Did you mean 'nodes'\?"
    ):
        check_options(options(resources={"instance_type": "${node}"}), SPACE)
    with pytest.raises(InputError, match=r"executor\.task\.run: Lynceus sets this from the rest"):
        check_options(options(task={"run": "true"}), SPACE)
    check_options(options(resources={"instance_type": "${vm}"}, num_nodes="${nodes}"), SPACE)


@pytest.mark.parametrize(
    ("keep_warm", "dead_man", "minutes"), [("0s", "10m", 10), ("10m", "10m", 12), ("0s", "1s", 2), ("1h", "1m", 62)]
)
def test_clusters_take_themselves_down_later_than_lynceus_would(keep_warm: str, dead_man: str, minutes: int) -> None:
    assert options(keep_warm=keep_warm, dead_man=dead_man).idle_minutes == minutes


def test_skypilots_environment_is_found_beside_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / ".venv-skypilot" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    monkeypatch.chdir("/")
    assert python_of(options(), tmp_path) == python
    assert python_of(options(python="/opt/sky/bin/python"), tmp_path) == Path("/opt/sky/bin/python")


@given(st.binary(max_size=300), st.text(alphabet="0123456789abcdef", min_size=8, max_size=64))
def test_decrypting_gives_the_original(data: bytes, key: str) -> None:
    assert node.crypt(node.crypt(data, key), key) == data
    if len(data) > 16:
        assert node.crypt(data, key) != data
        assert node.crypt(node.crypt(data, key), key + "0") != data


def _log(folder: Path, rank: str, **contents: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    for name, text in contents.items():
        (folder / name.replace("_", ".")).write_text(text)
    return [f"\x1b[36m(job, pid=7)\x1b[0m {line}" for line in node.result_lines(str(folder), rank)]


def _outcome(end: str = "finished", **more: Any) -> str:
    return json.dumps({"end": end, "seconds": 1.0, "metrics": {}, "trace": [], **more})


def test_results_are_complete_even_if_lines_come_twice(tmp_path: Path) -> None:
    (tmp_path / "ticket").mkdir()
    noise = os.urandom(20_000).hex()
    lines = _log(tmp_path / "node", "0", outcome_json=_outcome(), stdout=noise)
    assert len(lines) > 3
    record = unpack("\n".join(["Waiting for resources", *lines[:2], *lines, "Job finished"]), tmp_path / "ticket")
    assert record is not None
    assert record["end"] == "finished"
    assert (tmp_path / "ticket" / "stdout").read_text() == noise
    assert not (tmp_path / "ticket" / "outcome.json").exists(), "the executor writes the outcome"


def test_incomplete_results_are_ignored(tmp_path: Path) -> None:
    lines = _log(tmp_path / "node", "0", outcome_json=_outcome(), stdout=os.urandom(20_000).hex())
    assert unpack("\n".join(lines[:-1]), tmp_path) is None


def test_the_failure_of_another_node_is_the_outcome(tmp_path: Path) -> None:
    first = _log(tmp_path / "a", "0", outcome_json=_outcome("failed", reason="infra", detail="stopped from outside"))
    other = _log(tmp_path / "b", "1", outcome_json=_outcome("failed", reason="job", detail="exit code 3"))
    record = unpack("\n".join(first + other), tmp_path)
    assert record is not None
    assert (record["reason"], record["detail"]) == ("job", "node 1: exit code 3")


def test_problems_of_a_node_have_a_message() -> None:
    assert "disk of the node is full" in problem_in("(job, pid=7) LYNCEUS-TROUBLE 74")
    assert problem_in("no problem") == ""
    assert last_line("\x1b[31mfirst\x1b[0m\nERROR: it is broken\n\n") == "ERROR: it is broken"


def cluster(name: str = "lyn-x", **more: Any) -> Cluster:
    return replace(Cluster(name, "study", "0a1b", "shape", 0, 2.0, 1000.0), **more)


def add(root: Path, cluster: Cluster) -> None:
    (root / "skypilot").mkdir(exist_ok=True)
    files.write_atomically(str(root / "skypilot" / f"{cluster.name}.json"), asdict(cluster))


def pay(clusters: Clusters, name: str, now_s: float) -> tuple[float, float]:
    with clusters.pay("0a1b", name, now_s) as due:
        return due


def test_names_identify_the_study() -> None:
    name = new_name("My nightly, long sessions!", "0a1b2c3d", shape_of({"cpus": 2}, 1, None))
    assert owner(name) == ("my-nightly-long", "0a1b2c3d")
    assert new_name("My nightly, long sessions!", "0a1b2c3d", "ffffff") != name
    assert owner("another-cluster") == ("", "")
    assert (
        shape_of({"a": 1, "b": 2}, 1, None)
        == shape_of({"b": 2, "a": 1}, 1, None)
        != shape_of({"a": 1, "b": 2}, 2, None)
    )


def test_only_idle_clusters_of_the_same_study_and_shape_are_reused(tmp_path: Path) -> None:
    clusters = Clusters(tmp_path)
    for other in (
        cluster("busy", number=5, up=True),
        cluster("ending", number=None, up=True, ends=True),
        cluster("never-up", number=None),
        cluster("other-shape", number=None, up=True, shape="y"),
        cluster("other-study", number=None, up=True, identity="ffff"),
        cluster("idle-too-long", number=None, up=True, idle_since_s=0.0),
    ):
        add(tmp_path, other)
    fresh = cluster("fresh", number=1)
    assert clusters.claim(fresh, max_idle_s=600.0) == fresh
    add(tmp_path, cluster("warm", number=None, up=True, idle_since_s=900.0))
    assert clusters.claim(cluster("fresh2", number=2), max_idle_s=600.0).name == "warm"
    assert clusters.get("fresh2") is None
    assert clusters.claim(cluster("fresh3", number=3), max_idle_s=600.0).name == "fresh3", "the warm one is in use now"


def test_a_trial_keeps_the_cluster_that_it_claimed_before_a_crash(tmp_path: Path) -> None:
    clusters = Clusters(tmp_path)
    first = clusters.claim(cluster("first", number=4), max_idle_s=0.0)
    assert clusters.claim(cluster("second", number=4), max_idle_s=0.0) == first
    assert [one.name for one in clusters.all()] == ["first"]


def test_every_second_is_charged_once(tmp_path: Path) -> None:
    clusters = Clusters(tmp_path)
    add(tmp_path, cluster("mine", number=0, up=True))
    add(tmp_path, cluster("idle", number=None, up=True))
    add(tmp_path, cluster("ended", number=None, up=True))
    add(tmp_path, cluster("other-study", number=None, up=True, identity="ffff"))
    assert clusters.retire("ended", 1003.0)
    assert not clusters.retire("mine", 1003.0), "a run uses it"
    with pytest.raises(OSError, match="full"), clusters.pay("0a1b", "mine", 1010.0):
        raise OSError("the disk is full: the outcome was not written")
    assert pay(clusters, "mine", 1010.0) == (10.0, 2 * (10.0 + 3.0))
    assert pay(clusters, "mine", 1010.0) == (0.0, 0.0)
    assert pay(clusters, "mine", 1015.0) == (5.0, 2 * 5.0)
    clusters.delete("ended")
    clusters.delete("ended")
    assert {one.name for one in clusters.all()} == {"mine", "idle", "other-study"}


def test_a_cluster_that_is_started_again_owes_its_idle_time(tmp_path: Path) -> None:
    clusters = Clusters(tmp_path)
    add(tmp_path, cluster("again", number=0, up=True))
    clusters.restart_accounting("again", 1004.0)
    assert pay(clusters, "again", 1006.0) == (2.0, 2 * 4.0)


def test_an_unknown_error_is_transient_and_named() -> None:
    found = diagnose(SkyError(["StrangeError", "Exception"], "x" * 1000), "")
    assert found.transient
    assert found.sentence.startswith("SkyPilot failed with StrangeError: xxx")
    assert len(found.sentence) < 400
