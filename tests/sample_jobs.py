"""A recurring job for tests of pages, the API and documents: half a year of runs whose input grows, with canaries and a rollback."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import lynceus
from lynceus.library.recurring.recurring_job import RecurringJob, adopt_job
from lynceus.recurring.record import Change, ProductionRun, Version
from lynceus.storage.sql.storage import Storage
from lynceus.trial.outcome import End, FailureReason

DAY_S = 86_400.0
START_S = 1_790_000_000.0
NODES = (1, 2, 4, 8)


def seconds_of(nodes: int, size: float) -> float:
    """A serial part, and one that the nodes share; `size` in bytes."""
    return 60.0 + 20.0 * size / 1e9 / nodes**0.9


def search(storage: Storage | str, name: str = "search") -> Any:
    """A study that has measured every configuration at 120 GB."""
    space = lynceus.Space.build([lynceus.Ordinal("nodes", list(NODES))], price="0.6 * nodes")
    study = lynceus.create_study(
        space=space, constraints=["runtime <= 30m"], budget="$10", study_name=name, storage=storage
    )
    study.add_trials([({"nodes": nodes}, seconds_of(nodes, 120e9), {}) for nodes in NODES])
    return study


def sample_job(folder: Path, name: str = "nightly", runs: int = 90) -> RecurringJob:
    """A job with three versions, one of them only tried, in `folder/s.db`."""
    storage = Storage(f"sqlite:///{folder}/s.db", now=lambda: START_S + (runs + 1) * DAY_S)
    search(storage)
    job = adopt_job(name, source="search", params={"nodes": 4}, storage=storage, by="ana", reason="as until now")
    job.set(mode="suggest", allowance_usd=20.0, exclude=("sat", "sun"), by="ana", reason="see what it says")
    rng, made = random.Random(7), []
    for number in range(runs):
        size = 120e9 * 1.006**number
        version, nodes = (1, 4) if number < 30 else (2, 2) if number == 30 else (1, 4) if number < 45 else (3, 8)
        seconds = seconds_of(nodes, size) * math.exp(rng.gauss(0.0, 0.04))
        ended, price = START_S + number * DAY_S, 0.6 * nodes
        failed = number in (12, 50)
        made.append(
            ProductionRun(
                f"2026-{number:03d}",
                version,
                seconds / 3 if failed else seconds,
                ended,
                size=size,
                cost_usd=seconds * price / 3600,
                price_usd_per_hour=price,
                started_s=ended - seconds,
                end=End.FAILED if failed else End.FINISHED,
                reason=FailureReason.INFRA if failed else None,
                canary=number == 30,
                detail="the node was lost" if failed else "",
            )
        )
    with job.store.changing(name) as writer:
        expected = {"runtime_s": 1280.0, "cost_usd": 0.43, "saving_usd": 0.06, "late_chance": 0.03}
        tried = writer.add_version(
            Version(0, {"nodes": 2}, 0.0, "lynceus", "inputs have grown", "canary", {}, expected)
        )
        writer.note(Change(0.0, "canary", tried.number, by="lynceus", reason="inputs have grown", expected=expected))
        reason = "the canary of version 2 was late; version 1 goes on"
        writer.note(Change(0.0, "return", 1, by="lynceus", reason=reason, evidence={"canary": 2}))
        larger = writer.add_version(Version(0, {"nodes": 8}, 0.0, "bo", "twice the input by summer", "adopt"))
        writer.set_current(larger.number, Change(0.0, "adopt", by="bo", reason="twice the input by summer"))
        for run in made:
            writer.add_run(run)
    return job
