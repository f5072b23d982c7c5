"""A Ray cluster of five nodes on this machine, to try things out: a head, two m.large and two m.xlarge. Ends with Ctrl-C."""

import signal

from ray.cluster_utils import Cluster

SMALL = {"object_store_memory": 80 << 20, "include_dashboard": False}


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **SMALL})
    for vm, cpus in (("m.large", 1), ("m.large", 1), ("m.xlarge", 2), ("m.xlarge", 2)):
        cluster.add_node(num_cpus=cpus, resources={vm: 1}, **SMALL)
    cluster.wait_for_nodes()
    print(f"export RAY_ADDRESS={cluster.address}", flush=True)
    try:
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
