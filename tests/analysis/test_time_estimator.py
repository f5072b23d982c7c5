"""`time_estimator`: measured times where a machine was tried, predicted ones elsewhere, an error for unknown machines."""

import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import lynceus
from lynceus.analysis.time_estimator import time_estimator
from lynceus.errors import InputError
from lynceus.space.derived import Mapped
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space
from lynceus.study.study import Study
from skypilot_bench import PYTHON

VCPUS = {"m.small": 2, "m.medium": 4, "m.large": 8, "m.huge": 16, "6CPU--24GB": 6}


def seconds(machine: str, nodes: int) -> float:
    return 3200.0 / (VCPUS[machine] * nodes) + 10.0 * nodes


def study(tried: list[tuple[str, int]], **more: Any) -> Study:
    space = Space.build(
        [Categorical("instance_type", tuple(VCPUS)), Integer("nodes", values=[1, 2, 4])],
        [Mapped("vcpus", "instance_type", VCPUS)],
        price="0.05 * vcpus * nodes",
    )
    made = lynceus.create_study(space=space, constraints=["runtime <= 2h"], budget="$100", **more)
    for machine, nodes in tried:
        made.add_trial({"instance_type": machine, "nodes": nodes}, runtime=seconds(machine, nodes))
    return made


def resources(**more: Any) -> SimpleNamespace:
    return SimpleNamespace(**{"instance_type": None, "cpus": None, "memory": None, "use_spot": False, **more})


TRIED = [("m.small", 1), ("m.small", 4), ("m.medium", 2), ("m.large", 1), ("m.large", 4)]


def test_measured_times_are_returned_as_measured() -> None:
    estimate = time_estimator(study(TRIED), nodes=4)
    assert estimate(resources(instance_type="m.small")) == 440
    assert estimate(resources(instance_type="m.large")) == 140


def test_the_time_of_an_untried_machine_is_a_plausible_prediction() -> None:
    estimate = time_estimator(study(TRIED), nodes=4)
    assert 100 <= estimate(resources(instance_type="m.medium")) <= 1700


def test_of_several_configurations_on_a_machine_the_study_chooses() -> None:
    # One node is the cheapest on every machine; the objective is cost.
    assert time_estimator(study(TRIED))(resources(instance_type="m.large")) == 410
    assert time_estimator(study(TRIED, objective="time"))(resources(instance_type="m.large")) == 140


def test_amounts_are_in_the_format_of_skypilot() -> None:
    estimate = time_estimator(study(TRIED, objective="time"), nodes=4)
    assert estimate(resources(cpus="2")) == 440
    assert estimate(resources(cpus="8+")) <= 140


def test_an_unknown_machine_is_an_error() -> None:
    estimate = time_estimator(study(TRIED), nodes=4)
    with pytest.raises(InputError, match=r"has no machine 'm\.larg' with nodes 4\. Did you mean 'm\.large'\?"):
        estimate(resources(instance_type="m.larg"))
    with pytest.raises(InputError, match="has no machine like"):
        estimate(resources(cpus="64+"))


def test_an_unknown_column_is_an_error() -> None:
    with pytest.raises(InputError, match=r"no column 'node'\. Did you mean 'nodes'\?"):
        time_estimator(study(TRIED), node=4)


def test_a_study_without_runs_is_an_error() -> None:
    with pytest.raises(InputError, match="too few finished runs"):
        time_estimator(study([]))(resources(instance_type="m.small"))


@pytest.mark.skipif(not PYTHON.exists(), reason="SkyPilot's environment .venv-skypilot is missing: run 'make skypilot'")
def test_it_accepts_the_resources_of_the_real_skypilot() -> None:
    """The real `sky.Task` passes its own `sky.Resources` to the estimator; their attributes come back as they are."""
    code = """
import json, sky
seen = []
def estimate(resources):
    seen.append({name: getattr(resources, name) for name in ("instance_type", "cpus", "memory", "use_spot")})
    return 7
task = sky.Task(run="true").set_time_estimator(estimate)
for resources in (sky.Resources(infra="slurm", instance_type="6CPU--24GB"), sky.Resources(cpus="8+", use_spot=True)):
    assert task.estimate_runtime(resources) == 7
print(json.dumps(seen))
"""
    done = subprocess.run([str(PYTHON), "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    estimate = time_estimator(study([*TRIED, ("6CPU--24GB", 4)], objective="time"), nodes=4)
    exact, least = (estimate(resources(**given)) for given in json.loads(done.stdout.splitlines()[-1]))
    assert exact == 174
    assert 1 <= least <= 140


_OPTIMIZER = """
import csv, json, sys
from pathlib import Path
prices, paths = json.loads(sys.argv[1])
sys.path += paths  # Lynceus and what it needs, behind SkyPilot's own packages
import lynceus, sky
from lynceus.space import Categorical, Mapped, Space
from sky import check, clouds
from sky.catalog import constants
from sky.optimizer import Optimizer

place = Path.home() / ".sky" / "catalogs" / constants.CATALOG_SCHEMA_VERSION / "aws" / "vms.csv"
place.parent.mkdir(parents=True)
with place.open("w", newline="") as file:
    table = csv.writer(file)
    head = "InstanceType AcceleratorName AcceleratorCount vCPUs MemoryGiB GpuInfo Price SpotPrice Region AvailabilityZone Arch"
    table.writerow(head.split())
    for name, (cpus, gib, usd, _) in prices.items():
        table.writerow([name, "", "", cpus, gib, "", usd, "", "us-east-1", "use1-az1", "x86_64"])
check.get_cached_enabled_clouds_or_refresh = lambda *_, **__: [clouds.AWS()]  # without credentials none is enabled

usd = Mapped("usd", "instance_type", {name: one[2] for name, one in prices.items()})
space = Space.build([Categorical("instance_type", tuple(prices))], [usd], price="usd")
study = lynceus.create_study(space=space, constraints=["runtime <= 5h"], budget="$100")
for name, (_, _, _, seconds) in prices.items():
    study.add_trial({"instance_type": name}, runtime=seconds)

def chosen(minimize, estimated):
    with sky.Dag() as dag:
        task = sky.Task(run="true")
        task.set_resources({sky.Resources(infra="aws/us-east-1", instance_type=name) for name in prices})
        if estimated:
            task.set_time_estimator(lynceus.time_estimator(study))
    Optimizer.optimize(dag, minimize=minimize, quiet=True)
    return task.best_resources.instance_type

cost, time = sky.OptimizeTarget.COST, sky.OptimizeTarget.TIME
print(json.dumps([chosen(cost, False), chosen(cost, True), chosen(time, True)]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not PYTHON.exists(), reason="SkyPilot's environment .venv-skypilot is missing: run 'make skypilot'")
def test_the_optimizer_of_skypilot_chooses_by_the_times_of_the_study(tmp_path: Path) -> None:
    """The real optimizer with prices of a catalog, without a cloud. By itself it assumes an hour everywhere, so the cheapest hour wins."""
    prices = {
        "c6i.large": (2, 4, 0.085, 9000.0),  # $0.2125 a run
        "c6i.xlarge": (4, 8, 0.17, 3000.0),  # $0.1417 a run
        "c6i.2xlarge": (8, 16, 0.34, 2000.0),  # $0.1889 a run
        "c6i.4xlarge": (16, 32, 0.68, 1900.0),  # the fastest
    }
    ours = [str(Path(lynceus.__file__).parents[1]), str(Path(pytest.__file__).parents[1])]
    environment = {**os.environ, "HOME": str(tmp_path), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"}
    command = [str(PYTHON), "-c", _OPTIMIZER, json.dumps([prices, ours])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == ["c6i.large", "c6i.xlarge", "c6i.4xlarge"]
