"""Sixty nights of a job through the storage, with the real decider: its input grows past what the first version can do in time."""

from __future__ import annotations

import math
import random

import lynceus
from lynceus.analysis.documents.job import job_document
from lynceus.library.recurring.job_record import known_job
from lynceus.library.recurring.recurring_job import adopt_job
from lynceus.recurring.action import Action, ActionKind
from lynceus.recurring.settings import Mode
from lynceus.storage.sql.storage import Storage
from recurring_jobs import DAY_S, START_S, problem, true_seconds

NIGHTS, DEADLINE_S = 60, 600.0


def test_a_job_is_kept_on_time_while_its_input_grows() -> None:
    now, space = [START_S], problem().space
    with Storage("sqlite://", now=lambda: now[0]) as storage:
        study = lynceus.create_study(
            space=space, constraints=["runtime <= 10m"], budget="$100", study_name="search", storage=storage
        )
        points = [space.point(row) for row in range(len(space))]
        study.add_trials([(point, true_seconds(point, 100.0), {}) for point in points])
        job = adopt_job("etl", source="search", storage=storage, by="ana")
        job.set(mode=Mode.APPLY, allowance_usd=50.0, exclude=("sat", "sun"), by="ana")
        noise, first = random.Random(0), job.config().params
        for night in range(NIGHTS):
            now[0], size = now[0] + DAY_S, 100.0 * 1.02**night
            config = job.config(run_id=f"r{night}", input=size)
            seconds = true_seconds(config.params, size) * math.exp(noise.gauss(0.0, 0.05))
            stopped = config.canary and seconds > config.timeout_s
            assert not (config.canary and job.history.settings.excludes(now[0]))
            seconds, state = (config.timeout_s, "TIMEOUT") if stopped else (seconds, "COMPLETE")
            job.record(seconds, input=size, run_id=f"r{night}", state=state)
            assert job.history.open_canary is None
            job.review()
        record = job.history
        assert true_seconds(first, size) > DEADLINE_S, "the first version would be late by now"
        assert sum(run.seconds > DEADLINE_S for run in record.runs) <= 2
        assert record.adopted is not None
        assert true_seconds(record.adopted.params, size) < DEADLINE_S
        changes = [one for one in record.changes if one.by == "lynceus"]
        assert {"canary", "adopt"} <= {one.kind for one in changes}
        assert all(one.reason for one in changes)
        adopted = [one for one in changes if one.kind == "adopt"]
        assert all(one.expected["cost_usd"] > 0 and one.evidence["before"] for one in adopted)
        found = known_job(job.store, "etl")
        document = job_document(found.record, found.problem, Action(ActionKind.KEEP, "fine"), now[0])
        assert document["totals"]["canaries"] == sum(run.canary for run in record.runs) > 0
        brought = [one["brought"] for one in document["changes"] if one["kind"] == "adopt" and one["by"] == "lynceus"]
        assert any(one is not None and one["runs"] > 5 for one in brought), "what the change really brought"
