"""One problem with told run times, for every way in which Lynceus can be asked."""

from __future__ import annotations

from collections.abc import Mapping

import lynceus

JOB = {
    "version": 1,
    "name": "told",
    "space": {"vm": {"ordinal": ["small", "large"]}, "nodes": {"int": [1, 8]}},
    "derived": {"usd": {"map": "vm", "values": {"small": 0.1, "large": 0.25}, "feature": False}},
    "price": "usd * nodes",
    "constraints": ["runtime <= 20m"],
    "budget": {"cost": "2 USD"},
    "policy": "lynceus",
    "seed": 3,
}


def seconds_of(params: Mapping[str, object]) -> float:
    """How long a run takes."""
    return 100.0 + 4000.0 / (float(str(params["nodes"])) * (1.0 if params["vm"] == "small" else 2.2))


def space() -> lynceus.Space:
    return lynceus.Space.build(
        [lynceus.Ordinal("vm", ["small", "large"]), lynceus.Integer("nodes", 1, 8)],
        derived=[lynceus.Mapped("usd", "vm", {"small": 0.1, "large": 0.25}, feature=False)],
        price="usd * nodes",
    )


def study(seed: int = 3) -> lynceus.Study:
    return lynceus.create_study(space=space(), constraints=["runtime <= 20m"], budget="2 USD", seed=seed)


Told = tuple[dict[str, object], str, float]


def told(study: lynceus.Study | lynceus.RemoteStudy) -> list[Told]:
    """Every trial: configuration, state, seconds."""
    return [(dict(one.params), str(one.state), round(one.runtime_s or 0.0, 6)) for one in study.trials]


def local(seed: int = 3) -> list[Told]:
    """The trials of the study in Python."""
    one = study(seed)
    one.optimize(lambda trial: min(seconds_of(trial.params), trial.timeout or 1e9))
    return told(one)
