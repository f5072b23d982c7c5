"""One cell of an experiment: a job, a competitor, a seed. It is plain data, so that it travels to any process or machine."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

from lynceus.executor.worlds import Failures, Interruptions, Noise, SlowBoots, Stacked, World
from lynceus.lab.code import fingerprint, provenance
from lynceus.lab.peers import peer_named, replay_peer, versions
from lynceus.lab.spec import OptionsSpec, WorldSpec
from lynceus.policy.compose import compose
from lynceus.problem import Tariff
from lynceus.replay import Replay, ReplayJob, load_job, replay
from lynceus.replay.run import Until


@dataclass(frozen=True)
class Setting:
    """Everything about a cell but its seed. Its fingerprint names the folder of its traces, so experiments share equal settings."""

    job: str
    """The name of a replay job, or the path of its file."""
    policy: str
    """The parts of the policy as JSON (`lynceus.policy.compose.describe`), or `peer:NAME`."""
    options: OptionsSpec = field(default_factory=OptionsSpec)
    world: WorldSpec | None = None
    until: Until = "optimum"
    trials: int | None = None
    parallel: int = 1

    @property
    def fingerprint(self) -> str:
        """A short name that differs when anything differs.

        >>> Setting("a", "{}").fingerprint == Setting("a", "{}").fingerprint != Setting("b", "{}").fingerprint
        True
        """
        return hashlib.sha256(json.dumps(self.written(), sort_keys=True).encode()).hexdigest()[:16]

    def written(self) -> dict[str, Any]:
        """Plain data, without what is not set."""
        data = {**asdict(self), "options": self.options.model_dump(exclude_none=True)}
        data["world"] = None if self.world is None else self.world.model_dump(exclude_none=True)
        data["policy"] = self.policy if self.peer else json.loads(self.policy)
        return {key: value for key, value in data.items() if value not in (None, {})}

    @property
    def code(self) -> str:
        """The fingerprint of the sources and tables that its traces depend on, as they are now."""
        return fingerprint(self.policy, self.job)

    @property
    def peer(self) -> str | None:
        """The name of the peer library; nothing for a policy of ours."""
        return self.policy.removeprefix("peer:") if self.policy.startswith("peer:") else None


@dataclass(frozen=True)
class Cell:
    """One replay that is to be made."""

    setting: Setting
    seed: int


@dataclass(frozen=True)
class Done:
    """A cell with its replay."""

    cell: Cell
    replay: Replay
    wall_s: float
    made: Mapping[str, Any] = field(default_factory=provenance)
    """When, with what and on which machine: a cell may run far from where its trace is kept."""


def run_cell(cell: Cell) -> Done:
    """Make the replay. A pure function of the cell, but for the times of decisions."""
    setting, began = cell.setting, time.perf_counter()
    job = limited(loaded(setting.job, setting.options), setting.trials)
    made = provenance()
    if setting.peer is not None:
        peer = peer_named(setting.peer)
        done = replay_peer(job, peer, cell.seed, until=setting.until)
        made["libraries"] = dict(versions(peer))
    else:
        done = replay(
            job,
            compose(json.loads(setting.policy)),
            cell.seed,
            until=setting.until,
            parallel=setting.parallel,
            world=made_world(setting.world),
        )
    return Done(cell, done, time.perf_counter() - began, made)


@lru_cache(maxsize=64)
def loaded(job: str, options: OptionsSpec) -> ReplayJob:
    """A job under options; kept, because hundreds of cells share it."""
    deadline, budget, billing = options.deadline, options.budget, options.billing
    tariff = None if billing is None else Tariff(billing.granularity, billing.minimum, billing.boot, billing.fee)
    return load_job(
        job,
        deadline_quantile=None if deadline is None else deadline.quantile,
        deadline_fastest=None if deadline is None else deadline.fastest,
        budget=None if budget is None else budget.usd,
        budget_means=None if budget is None else budget.means,
        where=options.where,
        tariff=tariff,
    )


def limited(job: ReplayJob, trials: int | None) -> ReplayJob:
    """The job with a largest number of trials."""
    if trials is None:
        return job
    problem = job.problem
    return replace(job, problem=replace(problem, budget=replace(problem.budget, trials=trials)))


def made_world(spec: WorldSpec | None) -> World | None:
    """The misfortunes that a document names."""
    if spec is None:
        return None
    kinds: Mapping[str, Any] = {
        "noise": Noise,
        "failures": Failures,
        "slow_boots": SlowBoots,
        "interruptions": Interruptions,
    }
    given = [make(value) for name, make in kinds.items() if (value := getattr(spec, name)) is not None]
    return Stacked(tuple(given)) if given else None
