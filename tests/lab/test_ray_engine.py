"""A real Ray cluster of two nodes on this machine: the same traces, even when a node is lost."""

import os
import sys

import pytest

from lab_cases import without_times
from lynceus.errors import InfrastructureError, MissingExtraError
from lynceus_lab import ray_engine
from lynceus_lab.campaign import run_cells
from lynceus_lab.engines import InProcess, engine_named
from lynceus_lab.experiment import load_experiment
from lynceus_lab.trace_store import Store


def test_the_message_for_missing_ray_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        MissingExtraError, match=r"Campaigns on Ray need an optional package: pip install 'lynceus-opt\[ray\]'$"
    ):
        next(iter(engine_named("ray", 1)([])))


def test_nodes_get_the_folders_of_tables_and_peers(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LYNCEUS_DATA", "tables")
    monkeypatch.delenv("LYNCEUS_PEERS", raising=False)
    assert ray_engine._environment() == {"LYNCEUS_THREADS": "1", "LYNCEUS_DATA": str(tmp_path / "tables")}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_two_nodes_give_the_same_traces_even_when_one_is_lost(experiment_file, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="pip install 'lynceus-opt[ray]'")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    cells = load_experiment(experiment_file).cells()
    alone = {(one.cell.setting, one.cell.seed): without_times(one.replay) for one in InProcess()(cells)}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        second = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False)
        assert sum(node["Alive"] for node in ray.nodes()) == 2
        store, lost = Store(tmp_path / "store"), False

        def lose_a_node(result):
            nonlocal lost
            if not lost:
                lost = True
                cluster.remove_node(second, allow_graceful=False)

        ran = run_cells(cells, engine_named("ray", 1), store, lose_a_node)
        assert lost
        assert (ran.made, ran.crashed) == (len(cells), ())
        there = {
            (cell.setting, cell.seed): without_times(store.read(cell.setting, [cell.seed])[0].replay) for cell in cells
        }
        assert there == alone
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_missing_cluster_is_an_infrastructure_error():
    pytest.importorskip("ray", reason="pip install 'lynceus-opt[ray]'")
    with pytest.raises(InfrastructureError, match=r"the Ray cluster ray://127\.0\.0\.1:9 cannot be reached"):
        next(iter(engine_named("ray://127.0.0.1:9", 1)([])))
