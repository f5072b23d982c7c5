"""A real Ray cluster of two nodes on this machine: the same traces, and a node that is lost in the middle."""

import os
import sys

import pytest

from lab_cases import timeless
from lynceus.errors import InfrastructureError, MissingExtraError
from lynceus.lab import on_ray
from lynceus.lab.campaign import run_cells
from lynceus.lab.engines import InProcess, engine_named
from lynceus.lab.experiment import load_experiment
from lynceus.lab.store import Store


def test_without_ray_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        MissingExtraError, match=r"Campaigns on Ray need an optional package: pip install -e '\.\[ray\]'"
    ):
        next(iter(engine_named("ray", 1)([])))


def test_nodes_are_told_where_tables_and_peers_lie(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LYNCEUS_DATA", "tables")
    monkeypatch.delenv("LYNCEUS_PEERS", raising=False)
    assert on_ray._environment() == {"LYNCEUS_THREADS": "1", "LYNCEUS_DATA": str(tmp_path / "tables")}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_two_nodes_give_the_traces_of_one_process_and_survive_the_loss_of_one(experiment_file, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="pip install -e '.[ray]'")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    cells = load_experiment(experiment_file).cells()
    alone = {(one.cell.setting, one.cell.seed): timeless(one.replay) for one in InProcess()(cells)}
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
        there = {(cell.setting, cell.seed): timeless(store.read(cell.setting, [cell.seed])[0].replay) for cell in cells}
        assert there == alone
    finally:
        ray.shutdown()
        cluster.shutdown()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_is_not_there_is_one_sentence():
    pytest.importorskip("ray", reason="pip install -e '.[ray]'")
    with pytest.raises(InfrastructureError, match=r"the Ray cluster ray://127\.0\.0\.1:9 cannot be reached"):
        next(iter(engine_named("ray://127.0.0.1:9", 1)([])))
