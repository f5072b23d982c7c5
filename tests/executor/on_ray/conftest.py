from collections.abc import Iterator

import pytest

from lynceus.executor.on_ray.line import Line
from ray_bench import Bench, bench


@pytest.fixture(scope="session")
def cluster() -> Iterator[Bench]:
    """A head and two unequal nodes, started on first use."""
    with bench(num_cpus=4) as running:
        running.add(num_cpus=2, resources={"m.large": 2})
        running.add(num_cpus=4, resources={"m.xlarge": 2})
        yield running


@pytest.fixture(scope="session")
def line(cluster: Bench) -> Iterator[Line]:
    """One connection for many executors."""
    shared = Line(cluster.address)
    yield shared
    shared.close()
