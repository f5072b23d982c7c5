"""Start a local Ray cluster of five nodes for testing: a head, two m.large and two m.xlarge. Press Ctrl-C to stop it."""

import signal
from typing import Any

from ray.cluster_utils import Cluster

SMALL = {"object_store_memory": 80 << 20, "include_dashboard": False}


def add(cluster: Cluster, tries: int = 5, **wanted: Any) -> None:
    """Add a node. Ray waits 30 s for it to start; on a busy machine this may need another try."""
    try:
        cluster.add_node(**wanted, **SMALL)
    except Exception:
        if tries == 1:
            raise
        add(cluster, tries - 1, **wanted)


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **SMALL})
    for vm, cpus in (("m.large", 1), ("m.large", 1), ("m.xlarge", 2), ("m.xlarge", 2)):
        add(cluster, num_cpus=cpus, resources={vm: 1})
    cluster.wait_for_nodes()
    print(f"export RAY_ADDRESS={cluster.address}", flush=True)
    try:
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
