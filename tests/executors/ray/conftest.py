from collections.abc import Iterator

import pytest

from lynceus.executors.ray.client import DriverClient
from ray_bench import Bench, bench


@pytest.fixture(scope="session")
def cluster() -> Iterator[Bench]:
    """A head and two different nodes, started on first use."""
    with bench(num_cpus=4) as running:
        running.add(num_cpus=2, resources={"m.large": 2})
        running.add(num_cpus=4, resources={"m.xlarge": 2})
        yield running


@pytest.fixture(scope="session")
def client(cluster: Bench) -> Iterator[DriverClient]:
    """One connection for all executors."""
    shared = DriverClient(cluster.address)
    yield shared
    shared.close()
