"""One cell of an experiment: a job, a policy, a seed. Plain data, so that it can be sent to any process or machine."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

from lynceus.errors import InputError
from lynceus.executors.simulation import World
from lynceus.policy.policy_file import compose
from lynceus.replay.job import ReplayJob, RowSample, load_job
from lynceus.replay.run import Replay, Until, replay
from lynceus_lab.experiment_file import OptionsSpec, WorldSpec
from lynceus_lab.fingerprint import code_fingerprint, provenance
from lynceus_lab.median_stopping import watching
from lynceus_lab.peers.catalog import peer_named, versions
from lynceus_lab.peers.replay import replay_peer
from lynceus_lab.worlds import Failures, Interruptions, Noise, SlowBoots, Stacked


@dataclass(frozen=True)
class Setting:
    """A cell without its seed. Its fingerprint names the folder of its traces, so experiments share equal settings."""

    job: str
    """The name of a replay job, or the path of its file."""
    policy: str
    """The parts of the policy as JSON (`lynceus.policy.policy_file.describe`), or `peer:NAME`."""
    options: OptionsSpec = field(default_factory=OptionsSpec)
    world: WorldSpec | None = None
    until: Until = "optimum"
    trials: int | None = None
    parallel: int = 1

    @property
    def fingerprint(self) -> str:
        """A short hash of all fields.

        >>> Setting("a", "{}").fingerprint == Setting("a", "{}").fingerprint != Setting("b", "{}").fingerprint
        True
        """
        return hashlib.sha256(json.dumps(self.written(), sort_keys=True).encode()).hexdigest()[:16]

    def written(self) -> dict[str, Any]:
        """The fields as JSON values, without those that are not set."""
        data = {**asdict(self), "options": self.options.model_dump(exclude_none=True)}
        data["world"] = None if self.world is None else self.world.model_dump(exclude_none=True)
        data["policy"] = self.policy if self.peer else json.loads(self.policy)
        return {key: value for key, value in data.items() if value not in (None, {})}

    @property
    def code(self) -> str:
        """The fingerprint of the current sources and tables that its traces depend on."""
        return code_fingerprint(self.policy, self.job)

    @property
    def peer(self) -> str | None:
        """The name of the peer library; None for our own policies."""
        return self.policy.removeprefix("peer:") if self.policy.startswith("peer:") else None


@dataclass(frozen=True)
class Cell:
    """One replay to run."""

    setting: Setting
    seed: int


@dataclass(frozen=True)
class Done:
    """A cell that has run, with its replay."""

    cell: Cell
    replay: Replay
    wall_s: float
    made: Mapping[str, Any] = field(default_factory=provenance)
    """When, with which versions and on which machine: a cell may run on another machine."""


def run_cell(cell: Cell) -> Done:
    """Run a cell. Apart from decision times, the result depends only on the cell."""
    setting, began = cell.setting, time.perf_counter()
    job = limited(job_of(cell), setting.trials)
    made = provenance()
    if setting.peer is not None:
        peer = peer_named(setting.peer)
        done = replay_peer(job, peer, cell.seed, until=setting.until)
        made["libraries"] = dict(versions(peer))
    else:
        done = replay(
            job,
            watching(compose(json.loads(setting.policy)), job),
            cell.seed,
            until=setting.until,
            parallel=setting.parallel,
            noise="measured" if setting.world is not None and setting.world.noise == "measured" else "none",
            world=made_world(setting.world),
        )
    return Done(cell, done, time.perf_counter() - began, made)


_DRAWS = 100
"""Samples of rows that are tried until one keeps the limits of the job."""


def job_of(cell: Cell) -> ReplayJob:
    """The job that a cell replays. Where options ask for a share of the rows, each seed draws its own, with a feasible row among them."""
    setting = cell.setting
    if setting.options.rows is None:
        return loaded(setting.job, setting.options)
    for draw in range(_DRAWS):
        try:
            return loaded(setting.job, setting.options, RowSample(setting.options.rows, _DRAWS * cell.seed + draw))
        except InputError:  # no row that was drawn keeps the limits
            continue
    raise InputError(f"{setting.job}: no {setting.options.rows:.0%} of its rows keep its limits; give a larger share.")


@lru_cache(maxsize=64)
def loaded(job: str, options: OptionsSpec, rows: RowSample | None = None) -> ReplayJob:
    """A job with options; cached, because hundreds of cells share it."""
    deadline, budget = options.deadline, options.budget
    return load_job(
        job,
        deadline_quantile=None if deadline is None else deadline.quantile,
        deadline_fastest=None if deadline is None else deadline.fastest,
        budget=None if budget is None else budget.usd,
        budget_means=None if budget is None else budget.means,
        where=options.where,
        history=options.history,
        rows=rows,
        price=options.price,
        objective=options.objective,
        time=options.time,
        billing=None if options.billing is None else replace(options.billing.billing(), warm=options.warm or ()),
    )


def limited(job: ReplayJob, trials: int | None) -> ReplayJob:
    """The job with a limit on the number of trials."""
    if trials is None:
        return job
    problem = job.problem
    return replace(job, problem=replace(problem, budget=replace(problem.budget, trials=trials)))


def made_world(spec: WorldSpec | None) -> World | None:
    """The world that a document describes; measured noise is not a world, but part of the table."""
    if spec is None:
        return None
    kinds: Mapping[str, Any] = {
        "noise": Noise,
        "failures": Failures,
        "slow_boots": SlowBoots,
        "interruptions": Interruptions,
    }
    given = [make(value) for name, make in kinds.items() if (value := getattr(spec, name)) not in (None, "measured")]
    return Stacked(tuple(given)) if given else None
