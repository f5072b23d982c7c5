"""Options, what travels and comes back, and the teardown ledger, each by itself."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.executor.shape import Shape
from lynceus.executor.skypilot import node
from lynceus.executor.skypilot.bridge import SkyError
from lynceus.executor.skypilot.clusters import Cluster, Clusters, new_name, owner, shape_of
from lynceus.executor.skypilot.options import SkyPilotOptions, checked, further, machines, python_of
from lynceus.executor.skypilot.payload import last_words, trouble, unpack
from lynceus.executor.skypilot.sentences import meaning
from lynceus.space import Categorical, Integer, Space

SPACE = Space.build(
    [Categorical("vm", ("a", "b")), Integer("nodes", values=(1, 2)), Categorical("use_it", (True, False))], price=1.0
)


def options(**more: Any) -> SkyPilotOptions:
    return SkyPilotOptions.model_validate(more)


def test_values_keep_their_types_and_are_put_into_texts() -> None:
    asked = options(
        resources={"infra": "aws/${vm}", "use_spot": "${use_it}", "any_of": [{"cpus": "${nodes}+"}]},
        num_nodes="${nodes}",
        task={"config": {"x": "${vm}"}},
    )
    row = SPACE.row({"vm": "b", "nodes": 2, "use_it": True})
    resources, nodes = machines(asked, SPACE, row, None)
    assert resources == {"infra": "aws/b", "use_spot": True, "any_of": [{"cpus": "2+"}]}
    assert nodes == 2
    assert further(asked, SPACE, row) == {"config": {"x": "b"}}


def test_columns_of_a_catalog_choose_the_machine() -> None:
    space = Space.build(
        [
            Categorical("infra", ("aws/us-east-1",)),
            Categorical("instance_type", ("m5.large",)),
            Integer("num_nodes", values=(3,)),
        ],
        price=1.0,
    )
    limits = lambda row: Shape(cpus=6, memory_bytes=1 << 33)  # noqa: E731
    assert machines(options(), space, 0, limits) == ({"infra": "aws/us-east-1", "instance_type": "m5.large"}, 3)


def test_without_a_catalog_the_limits_of_the_job_choose() -> None:
    limits = lambda row: Shape(cpus=6, memory_bytes=1 << 33)  # noqa: E731
    assert machines(options(resources={"infra": "k8s"}), SPACE, 0, limits) == (
        {"cpus": 6, "memory": 8.0, "infra": "k8s"},
        1,
    )


def test_places_that_no_column_fills_are_refused() -> None:
    with pytest.raises(InputError, match=r"\$\{node\} names no column of the space\. Did you mean 'nodes'\?"):
        checked(options(resources={"instance_type": "${node}"}), SPACE)
    with pytest.raises(InputError, match=r"executor\.task\.run: this follows from the rest"):
        checked(options(task={"run": "true"}), SPACE)
    checked(options(resources={"instance_type": "${vm}"}, num_nodes="${nodes}"), SPACE)


@pytest.mark.parametrize(
    ("warm", "dead", "minutes"), [("0s", "10m", 10), ("10m", "10m", 12), ("0s", "1s", 2), ("1h", "1m", 62)]
)
def test_the_dead_man_waits_longer_than_we_do(warm: str, dead: str, minutes: int) -> None:
    assert options(keep_warm=warm, dead_man=dead).idle_minutes == minutes


def test_the_python_is_looked_for_beside_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / ".venv-skypilot" / "bin" / "python"
    place.parent.mkdir(parents=True)
    place.touch()
    monkeypatch.chdir("/")
    assert python_of(options(), tmp_path) == place
    assert python_of(options(python="/opt/sky/bin/python"), tmp_path) == Path("/opt/sky/bin/python")


@given(st.binary(max_size=300), st.text(alphabet="0123456789abcdef", min_size=8, max_size=64))
def test_what_is_made_unreadable_becomes_readable_again(data: bytes, key: str) -> None:
    assert node.crypt(node.crypt(data, key), key) == data
    if len(data) > 16:
        assert node.crypt(data, key) != data
        assert node.crypt(node.crypt(data, key), key + "0") != data


def _log(folder: Path, rank: str, **files: str) -> list[str]:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return [f"\x1b[36m(job, pid=7)\x1b[0m {line}" for line in node.told(str(folder), rank)]


def _outcome(end: str = "finished", **more: Any) -> str:
    return json.dumps({"end": end, "seconds": 1.0, "metrics": {}, "trace": [], **more})


def test_what_a_node_tells_arrives_whole_even_if_it_is_told_twice(tmp_path: Path) -> None:
    (tmp_path / "ticket").mkdir()
    noise = os.urandom(20_000).hex()
    lines = _log(tmp_path / "node", "0", outcome_json=_outcome(), stdout=noise)
    assert len(lines) > 3
    told = unpack("\n".join(["Waiting for resources", *lines[:2], *lines, "Job finished"]), tmp_path / "ticket")
    assert told is not None
    assert told["end"] == "finished"
    assert (tmp_path / "ticket" / "stdout").read_text() == noise
    assert not (tmp_path / "ticket" / "outcome.json").exists(), "who settles the run writes its outcome"


def test_what_was_cut_off_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    lines = _log(tmp_path / "node", "0", outcome_json=_outcome(), stdout=os.urandom(20_000).hex())
    assert unpack("\n".join(lines[:-1]), tmp_path) is None


def test_a_node_that_failed_by_itself_speaks_for_all(tmp_path: Path) -> None:
    first = _log(tmp_path / "a", "0", outcome_json=_outcome("failed", reason="infra", detail="ended from outside"))
    other = _log(tmp_path / "b", "1", outcome_json=_outcome("failed", reason="job", detail="exit code 3"))
    told = unpack("\n".join(first + other), tmp_path)
    assert told is not None
    assert (told["reason"], told["detail"]) == ("job", "node 1: exit code 3")


def test_trouble_of_a_node_is_a_sentence() -> None:
    assert "disk of the node is full" in trouble("(job, pid=7) LYNCEUS-TROUBLE 74")
    assert trouble("all is well") == ""
    assert last_words("\x1b[31mfirst\x1b[0m\nERROR: it is broken\n\n") == "ERROR: it is broken"


def cluster(name: str = "lyn-x", **more: Any) -> Cluster:
    return replace(Cluster(name, "study", "0a1b", "shape", 0, 2.0, 1000.0), **more)


def paid(ledger: Clusters, name: str, now_s: float) -> tuple[float, float]:
    with ledger.paying("0a1b", name, now_s) as due:
        return due


def test_names_tell_whose_they_are() -> None:
    name = new_name("My nightly, long sessions!", "0a1b2c3d", shape_of({"cpus": 2}, 1, None))
    assert owner(name) == ("my-nightly-long", "0a1b2c3d")
    assert new_name("My nightly, long sessions!", "0a1b2c3d", "ffffff") != name
    assert owner("somebody-elses") == ("", "")
    assert (
        shape_of({"a": 1, "b": 2}, 1, None)
        == shape_of({"b": 2, "a": 1}, 1, None)
        != shape_of({"a": 1, "b": 2}, 2, None)
    )


def test_only_idle_clusters_of_the_same_study_and_shape_are_used_again(tmp_path: Path) -> None:
    ledger = Clusters(tmp_path)
    for other in (
        cluster("busy", number=5, up=True),
        cluster("ending", number=None, up=True, ends=True),
        cluster("never-up", number=None),
        cluster("other-shape", number=None, up=True, shape="y"),
        cluster("other-study", number=None, up=True, identity="ffff"),
        cluster("too-long-idle", number=None, up=True, idle_since_s=0.0),
    ):
        ledger.note(other)
    fresh = cluster("fresh", number=1)
    assert ledger.claim(fresh, most_idle_s=600.0) == fresh
    ledger.note(cluster("warm", number=None, up=True, idle_since_s=900.0))
    assert ledger.claim(cluster("fresh2", number=2), most_idle_s=600.0).name == "warm"
    assert ledger.get("fresh2") is None
    assert ledger.claim(cluster("fresh3", number=3), most_idle_s=600.0).name == "fresh3", "it is taken now"


def test_a_trial_that_took_a_cluster_before_a_crash_keeps_it(tmp_path: Path) -> None:
    ledger = Clusters(tmp_path)
    first = ledger.claim(cluster("first", number=4), most_idle_s=0.0)
    assert ledger.claim(cluster("second", number=4), most_idle_s=0.0) == first
    assert [one.name for one in ledger.all()] == ["first"]


def test_every_second_is_charged_once(tmp_path: Path) -> None:
    ledger = Clusters(tmp_path)
    ledger.note(cluster("mine", number=0, up=True))
    ledger.note(cluster("idle", number=None, up=True))
    ledger.note(cluster("ended", number=None, up=True))
    ledger.note(cluster("of-others", number=None, up=True, identity="ffff"))
    assert ledger.retire("ended", 1003.0)
    assert not ledger.retire("mine", 1003.0), "somebody uses it"
    with pytest.raises(OSError, match="full"), ledger.paying("0a1b", "mine", 1010.0):
        raise OSError("the disk is full: the run's end was not written down")
    assert paid(ledger, "mine", 1010.0) == (10.0, 2 * (10.0 + 3.0))
    assert paid(ledger, "mine", 1010.0) == (0.0, 0.0)
    assert paid(ledger, "mine", 1015.0) == (5.0, 2 * 5.0)
    ledger.strike_out("ended")
    ledger.strike_out("ended")
    assert {one.name for one in ledger.all()} == {"mine", "idle", "of-others"}


def test_a_cluster_that_is_started_again_owes_only_what_was_idle_before(tmp_path: Path) -> None:
    ledger = Clusters(tmp_path)
    ledger.note(cluster("again", number=0, up=True))
    ledger.begin_anew("again", 1004.0)
    assert paid(ledger, "again", 1006.0) == (2.0, 2 * 4.0)


def test_an_error_that_nobody_knows_is_told_with_its_kind_and_may_pass() -> None:
    found = meaning(SkyError(["OddError", "Exception"], "x" * 1000), "")
    assert found.passes
    assert found.sentence.startswith("SkyPilot failed with OddError: xxx")
    assert len(found.sentence) < 400
