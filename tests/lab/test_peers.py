"""Peers: messages when they are missing, and (with their environment) how they run."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lynceus.errors import InputError
from lynceus.policy.presets import preset
from lynceus.problem.objective import Constraint, Objective
from lynceus.replay.run import replay
from lynceus_lab.cell import loaded
from lynceus_lab.experiment_file import OptionsSpec
from lynceus_lab.peers.catalog import PEERS, peer_named
from lynceus_lab.peers.process import _process_of
from lynceus_lab.peers.replay import plain, replay_peer, told

ENVIRONMENT = Path(__file__).parents[2] / ".venv-peers"


@pytest.fixture
def toy(job):
    loaded.cache_clear()
    return loaded(str(job), OptionsSpec())


def test_the_message_for_a_missing_environment_says_what_to_do(toy, tmp_path, monkeypatch):
    monkeypatch.setenv("LYNCEUS_PEERS", str(tmp_path))
    with pytest.raises(InputError, match="peer 'smac-rf' needs smac in an environment of its own; run 'make peers'"):
        replay_peer(toy, peer_named("smac-rf"), 0)


def test_the_message_for_a_missing_library_names_it(toy, tmp_path, monkeypatch):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("LYNCEUS_PEERS", str(tmp_path))
    with pytest.raises(InputError, match=r"has no botorch \(No module named 'botorch'\); run 'make peers'"):
        replay_peer(toy, peer_named("botorch-cei"), 0)


@pytest.mark.slow
@pytest.mark.skipif(not ENVIRONMENT.is_dir(), reason="the peers' environment is missing: make peers")
@pytest.mark.parametrize("name", PEERS)
def test_a_peer_starts_with_our_samples_and_runs_each_row_once(toy, name):
    seed, ours = next(
        (seed, done)
        for seed in range(50)
        if (done := replay(toy, preset("random"), seed))
        and toy.optimum.row not in [step.row for step in done.steps[:4]]
    )
    done = replay_peer(toy, peer_named(name), seed)
    start = sum(not step.modelled for step in done.steps)
    assert start == 3
    assert [step.row for step in done.steps[:start]] == [step.row for step in ours.steps[:start]]
    rows = [step.row for step in done.steps]
    assert len(rows) == len(set(rows))
    assert rows[-1] == toy.optimum.row
    for step in done.steps:
        assert step.charged_usd == pytest.approx(toy.problem.cost(step.row, float(toy.measurements.seconds[step.row])))
    _process_of.cache_clear()  # a new process suggests the same rows
    again = replay_peer(toy, peer_named(name), seed)
    assert [step.row for step in again.steps] == rows


def test_a_peer_is_told_the_cost_and_the_time_of_a_job_with_a_deadline(toy):
    assert plain(toy.problem)
    seconds = float(toy.measurements.seconds[3])
    assert told(toy, 3) == {"usd": toy.problem.cost(3, seconds), "seconds": seconds}


def test_several_limits_are_one_limit_to_a_peer(toy):
    """Its quotient is at most 1 exactly where every limit holds, and the value follows the objective."""
    latency = np.linspace(0.0, 50.0, len(toy.problem.space))
    throughput = np.geomspace(1.0, 900.0, len(toy.problem.space))
    throughput[-1] = math.nan  # nothing was reported
    problem = replace(
        toy.problem,
        objective=Objective.parse("maximize throughput"),
        constraints=tuple(Constraint.parse(text) for text in ("latency <= 20", "throughput >= 5", "runtime <= 10h")),
    )
    job = replace(
        toy,
        problem=problem,
        measurements=replace(toy.measurements, metrics={"latency": latency, "throughput": throughput}),
    )
    assert not plain(problem)
    for row in range(len(problem.space)):
        seconds = float(toy.measurements.seconds[row])
        metrics = {"latency": latency[row]} | ({} if math.isnan(throughput[row]) else {"throughput": throughput[row]})
        message = told(job, row)
        assert (message["seconds"] <= 1) == problem.meets_constraints(row, seconds, metrics)
        assert message["usd"] > 0
        assert 1e-3 <= message["seconds"] <= 1e3
        if not math.isnan(throughput[row]):
            assert message["usd"] == pytest.approx(1 / throughput[row])
