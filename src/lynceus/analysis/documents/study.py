"""A study as its page shows it: facts only, no model is asked, so that it is quick at any size."""

from __future__ import annotations

import time

from lynceus.analysis.documents.json import Document, page_document, to_json
from lynceus.analysis.documents.trial_columns import trial_columns
from lynceus.analysis.ordered_run import ordered_run
from lynceus.analysis.overview import overview
from lynceus.analysis.study_context import StudyContext
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.trial.record import OpenRun


def study_document(context: StudyContext, since: int = 0, now_s: float | None = None) -> Document:
    """The overview, open trials, and the settled trials from position `since` on: a page asks only for those it does not have.

    When `since` is beyond the end, the page shows another study of this name: it gets all trials, and `trials.first` is 0.
    """
    study = context.study
    problem, observations = study.problem, study.observations
    first = since if 0 <= since <= len(observations) else 0
    fields = {
        "name": study.name,
        "identity": study.record.identity,
        "now_s": time.time() if now_s is None else now_s,
        "settled": len(observations),
        "head": overview(context),
        "limits": [limit_of(constraint) for constraint in problem.constraints],
        "open": [open_trial(problem, run) for run in study.record.open_runs],
    }
    columns = trial_columns(problem, observations, context.progress.points, first)
    document = page_document("study", fields) | {"trials": columns}
    return document if first else document | {"space": space_of(problem)}


def space_of(problem: Problem) -> Document:
    """The parameters with their values, in order; trial columns hold positions in these lists."""
    return {
        "states": ["COMPLETE", "TIMEOUT", "FAIL"],
        "parameters": [
            {"name": parameter.name, "kind": type(parameter).__name__.lower(), "values": list(parameter.values)}
            for parameter in problem.space.parameters
        ],
    }


def limit_of(constraint: Constraint) -> Document:
    """A constraint as a line in a chart of its metric: `time` in seconds, `cost` in dollars."""
    return {
        "text": str(constraint),
        "metric": constraint.metric,
        "bound": constraint.bound,
        "at_least": constraint.at_least,
    }


def open_trial(problem: Problem, run: OpenRun) -> Document:
    """A trial in progress; its page counts down to its timeout."""
    document: Document = to_json(ordered_run(problem, run.order))
    return document | {
        "ordered_s": run.ordered_s,
        "launched_s": run.launched_s,
        "heartbeat_s": run.heartbeat_s,
        "worker": worker_host(run.worker),
        "cancel_requested": run.cancel_requested,
    }


def worker_host(worker: str | None) -> str | None:
    """The machine of a worker, without its process."""
    return None if worker is None else worker.split("/")[0]
