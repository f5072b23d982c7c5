"""The section `resources`: machines of a catalog become dimensions, prices and features of the space."""

from pathlib import Path

import numpy as np
import pytest
import yaml

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import PreparedStudy, prepare
from lynceus.jobfile.winner_export import skypilot_task
from lynceus.prices.store import PriceStore, day_s
from lynceus.replay.tables import data_folder

HEAD = "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region,ClockGHz\n"
MACHINES = (
    "s.small,2,8,,,0.10,0.04,east,3.0",
    "s.large,8,32,,,0.40,0.10,east,3.0",
    "c.large,8,16,,,0.35,0.20,east,3.5",
    "g.large,8,32,T4,1,0.90,,east,2.5",
    "s.small,2,8,,,0.12,0.05,west,3.0",
)


@pytest.fixture(autouse=True)
def own_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PriceStore:
    monkeypatch.setenv("LYNCEUS_HOME", str(tmp_path / "home"))
    store = PriceStore()
    store.keep((HEAD + "\n".join(MACHINES)).encode(), "cloud9", "test.csv", day_s("2026-11-01"))
    return store


def prepared(resources: str, more: str = "", space: str = "space: {level: [1, 2]}") -> PreparedStudy:
    text = f"name: a\nrun: 'true'\n{space}\nresources: {resources}\nbudget: 5 USD\n{more}"
    return prepare(Job.parse(text))


def test_machines_and_nodes_are_dimensions_and_the_price_covers_all_nodes() -> None:
    space = prepared("{infra: cloud9/east, cpus: 8+, num_nodes: [1, 2, 4]}").problem.space
    assert [one.name for one in space.parameters] == ["infra", "instance_type", "num_nodes", "level"]
    assert len(space) == 3 * 3 * 2
    row = space.row({"infra": "cloud9/east", "instance_type": "c.large", "num_nodes": 4, "level": 2})
    assert space.price_per_second[row] * 3600 == pytest.approx(4 * 0.35)


def test_a_baseline_may_omit_fixed_parameters() -> None:
    one = prepared("{infra: cloud9/east, cpus: 8+}", "baseline: {instance_type: c.large, level: 2}")
    assert one.problem.baseline is not None
    point = one.problem.space.point(one.problem.baseline.row)
    assert point == {"infra": "cloud9/east", "instance_type": "c.large", "num_nodes": 1, "level": 2}


def test_hardware_columns_are_features() -> None:
    space = prepared("{infra: cloud9/east, num_nodes: [1, 2, 4]}").problem.space
    assert set(space.feature_names) == {
        *("instance_type", "num_nodes", "level", "vcpus", "memory_gib", "accelerators", "ghz"),
        *("total_vcpus", "total_memory_gib"),
    }
    rows = [space.point(row) for row in range(len(space))]
    large = [row for row, point in enumerate(rows) if point["instance_type"] == "s.large" and point["num_nodes"] == 4]
    assert set(space.columns["total_vcpus"][large]) == {32}
    assert set(space.columns["accelerator"][large]) == {"none"}


def test_several_infras_are_a_dimension_without_machines_that_are_not_offered() -> None:
    space = prepared("{infra: [cloud9/east, cloud9/west], instance_type: [s.*]}", space="").problem.space
    points = [(point["infra"], point["instance_type"]) for point in map(space.point, range(len(space)))]
    assert points == [("cloud9/east", "s.small"), ("cloud9/east", "s.large"), ("cloud9/west", "s.small")]
    assert np.allclose(space.price_per_second * 3600, [0.10, 0.40, 0.12])
    assert "infra" not in space.feature_names, "the region does not change the speed of a machine"


def test_alternatives() -> None:
    text = "{any_of: [{infra: cloud9/west}, {accelerators: T4}], cpus: 2+, infra: cloud9/east}"
    space = prepared(text).problem.space
    names = {(point["infra"], point["instance_type"]) for point in map(space.point, range(len(space)))}
    assert names == {("cloud9/west", "s.small"), ("cloud9/east", "g.large")}


def test_the_number_of_nodes_may_be_a_parameter_of_the_space() -> None:
    space = prepared("{infra: cloud9/west}", space="space: {num_nodes: {int: [2, 3]}}").problem.space
    assert np.allclose(space.price_per_second * 3600, [0.24, 0.36])
    assert "total_vcpus" in space.feature_names


def test_the_price_may_be_an_expression_over_catalog_columns() -> None:
    problem = prepared("{infra: cloud9/west}", "price: 1.5 * price_usd_per_hour + 1").problem
    assert np.allclose(problem.price * 3600, 1.18)


def test_spot_is_a_parameter_that_models_ignore() -> None:
    problem = prepared(
        "{infra: cloud9/east, instance_type: s.*, use_spot: [true, false], spot: {rate_per_hour: 0.1}}"
    ).problem
    space = problem.space
    spot = space.columns["use_spot"].astype(bool)
    assert "use_spot" not in space.feature_names
    assert np.allclose(sorted(set(problem.price * 3600)), [0.04, 0.10, 0.40])
    assert np.allclose(sorted(set(space.size_price * 3600)), [0.10, 0.40]), "the price does not reveal it, either"
    assert problem.testable is None
    assert problem.preemption is not None
    assert np.allclose(problem.preemption.rate_per_s * 3600, np.where(spot, 0.1, 0.0))
    for row in np.flatnonzero(spot):
        twin = problem.preemption.twin[row]
        assert space.point(twin) == {**space.point(int(row)), "use_spot": False}


def test_the_interruption_rate_grows_with_the_number_of_nodes() -> None:
    problem = prepared("{infra: cloud9/west, num_nodes: [1, 4], use_spot: true, spot: {rate_per_hour: 0.1}}").problem
    assert problem.preemption is not None
    assert problem.testable is not None
    nodes, spot = problem.space.columns["num_nodes"], problem.space.columns["use_spot"].astype(bool)
    assert np.allclose(problem.preemption.rate_per_s[spot] * 3600, 0.1 * nodes[spot])
    assert (problem.testable == spot).all(), "on-demand machines are only for interrupted runs"


def test_the_reaction_to_interruptions_is_configurable() -> None:
    moved = prepared("{infra: cloud9/west, use_spot: true, spot: {interruptions: 3}}")
    assert moved.retry_rules.retries_preempted == 2
    stays = prepared(
        "{infra: cloud9/west, use_spot: true, spot: {on_demand: false}}", "trial: {retries: {preempted: 7}}"
    )
    assert stays.retry_rules.retries_preempted == 7
    assert stays.problem.preemption is not None
    assert (stays.problem.preemption.twin == -1).all()
    assert stays.problem.space.columns["use_spot"].all()


def test_machines_without_a_spot_price_are_left_out() -> None:
    names = prepared("{infra: cloud9/east, cpus: 8, use_spot: true}").problem.space.columns["instance_type"]
    assert "g.large" not in set(names)
    assert "s.large" in set(names)


def test_on_the_local_machine_trials_are_limited_to_the_size_of_the_machines() -> None:
    one = prepared("{infra: cloud9/east, instance_type: s.small, num_nodes: [1, 2]}")
    assert one.cpus is not None
    assert one.memory_gib is not None
    assert sorted(set(one.cpus)) == [2, 4]
    assert sorted(set(one.memory_gib)) == [8, 16]


def test_limits_on_the_local_machine() -> None:
    one = prepared("{cpus: level, memory: 512 MB}", "price: 1")
    assert one.cpus is not None
    assert one.memory_gib is not None
    assert set(one.cpus) == {1, 2}
    assert set(one.memory_gib) == {0.5}
    assert one.job.machines is None


def test_old_prices_give_a_note(own_prices: PriceStore) -> None:
    assert not [note for note in prepared("{infra: cloud9/west}").notes if "days old" in note]
    own_prices.keep((HEAD + "\n".join(MACHINES)).encode(), "cloud9", "test.csv", day_s("2020-01-01"))
    (note,) = prepared("{infra: cloud9/west}").notes
    assert "the prices of cloud9 are" in note
    assert "prices refresh" in note


def test_a_study_keeps_its_machines_and_prices(own_prices: PriceStore) -> None:
    before = prepared("{infra: cloud9/east, num_nodes: [1, 2], use_spot: [true, false]}")
    stored = before.job.stored()
    own_prices.keep((HEAD + "other,2,8,,,9,9,east,3").encode(), "cloud9", "new.csv", day_s("2026-11-02"))
    again = prepare(Job.from_stored(stored))
    assert again.problem.space == before.problem.space
    assert again.job.stored() == stored


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ("{infra: cloud9/east, cpus: 64+}", r"job.yaml:4: resources: cpus: 64\+ matches none of the 4"),
        ("{infra: cloud8}", r"resources: infra: there are no prices for the cloud 'cloud8'. Did you mean 'cloud9'"),
        ("{infra: k8s/mine}", r"resources: there is no price list for 'k8s/mine'"),
        ("{infra: cloud9/east, instance_type: g.large, use_spot: true}", r"have no spot price for 'g.large'"),
        ("{cpus: 4+}", r"resources: cpus: 4\+ chooses machines from a catalog; add infra"),
        ("{num_nodes: [1, 2]}", r"num_nodes describes cloud machines; add infra"),
        ("{use_spot: true}", r"use_spot describes cloud machines"),
        ("{infra: cloud9, spot: {interruptions: 2}}", r"use_spot asks for none; add use_spot: true"),
        ("{infra: cloud9, cpus: four}", r"resources: cpus: got 'four'; write 4 \(exactly\)"),
        ("{infra: cloud9, num_nodes: [0]}", r"resources.num_nodes: got \[0\]"),
        ("{infra: cloud9, num_nodes: []}", r"resources.num_nodes: got \[\]"),
        ("{infra: cloud9, use_spot: []}", r"resources.use_spot: got an empty list"),
        ("{infra: cloud9, accelerators: 'T4:0'}", r"such as T4:1"),
        ("{any_of: [{region: x}]}", r"any_of, entry 1: 'region' is not allowed here"),
        ("{infra: cloud9, spot: {rate: 1}, use_spot: true}", r"resources.spot"),
    ],
)
def test_errors_are_one_sentence_with_position(resources: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        prepared(resources)


def test_names_of_resources_cannot_be_used_again() -> None:
    with pytest.raises(InputError, match="'instance_type' is already a parameter, because of resources"):
        prepared("{infra: cloud9}", space="space: {instance_type: [a]}")
    with pytest.raises(InputError, match="derived column 'vcpus' has the name of another"):
        prepared("{infra: cloud9}", "derived: {vcpus: '1'}")
    with pytest.raises(InputError, match="resources already determine the prices of their machines"):
        prepared("{infra: cloud9}", "prices: {file: x.csv}")


@pytest.mark.skipif(
    data_folder() is None or not (data_folder() or Path()).joinpath("catalog").is_dir(),
    reason="no folder with real catalogs: set LYNCEUS_DATA",
)
def test_real_catalogs(own_prices: PriceStore) -> None:
    """Extracts of SkyPilot's catalogs: thousands of lines, with the well-known prices."""
    folder = (data_folder() or Path()) / "catalog"
    for cloud in ("aws", "gcp", "azure"):
        own_prices.keep((folder / f"{cloud}.csv").read_bytes(), cloud, "real", day_s("2026-11-15"))
    one = prepared("{infra: aws/us-east-1, cpus: 4+, memory: 16+, instance_type: [m5.*, c5.*], num_nodes: [1, 2, 4]}")
    space = one.problem.space
    row = space.row({"infra": "aws/us-east-1", "instance_type": "m5.xlarge", "num_nodes": 4, "level": 1})
    assert space.price_per_second[row] * 3600 == pytest.approx(4 * 0.192)
    assert (space.columns["vcpus"] >= 4).all()
    assert (space.columns["memory_gib"] >= 16).all()
    wide = prepared(
        "{infra: [aws/us-east-1, gcp, azure], cpus: 8, memory: 32-64, use_spot: [true, false]}"
    ).problem.space
    assert {str(infra).split("/")[0] for infra in wide.columns["infra"]} == {"aws", "gcp", "azure"}
    assert (wide.columns["vcpus"] == 8).all()
    assert len(wide) > 200
    gpu = prepared("{infra: gcp/us-central1, accelerators: 'A100:1'}").problem.space
    assert set(gpu.columns["instance_type"]) == {"a2-highgpu-1g"}
    assert gpu.price_per_second[0] * 3600 == pytest.approx(0.73948 + 2.93391)


def test_the_exported_skypilot_task_names_its_machines() -> None:
    one = prepared("{infra: cloud9/east, instance_type: s.large, num_nodes: [2], use_spot: [false, true]}")
    row = one.problem.space.row(
        {"infra": "cloud9/east", "instance_type": "s.large", "num_nodes": 2, "use_spot": True, "level": 1}
    )
    task = yaml.safe_load(skypilot_task(one, row, "why"))
    assert task["resources"] == {"infra": "cloud9/east", "instance_type": "s.large", "use_spot": True}
    assert task["num_nodes"] == 2
    task = yaml.safe_load(skypilot_task(one, int(one.problem.preemption.twin[row]), "why"))  # type: ignore[union-attr]
    assert "use_spot" not in task["resources"]
