"""One trial: what was planned, what happened, what the model learned from it, and what it printed."""

from __future__ import annotations

import time
from collections.abc import Mapping

from lynceus.analysis.documents.json import Document, page_document, to_json
from lynceus.analysis.documents.study import worker_host
from lynceus.analysis.ordered_run import ordered_run
from lynceus.analysis.study_context import StudyContext
from lynceus.analysis.trial_rows import used
from lynceus.problem.problem import Problem
from lynceus.storage.sql.rows import TrialRecord
from lynceus.trial.outcome import End, Outcome
from lynceus.trial.trial import STATES, TrialState

MOST_OUTPUT = 200_000
"""Characters of a stream in the document: the last ones, because errors come last."""


def trial_document(
    context: StudyContext, record: TrialRecord, output: Mapping[str, str] | None = None, now_s: float | None = None
) -> Document:
    """Everything that is written down about a trial, and its output where this machine has it."""
    study, outcome = context.study, record.outcome
    problem = study.problem
    fields = {
        "study": study.name,
        "now_s": time.time() if now_s is None else now_s,
        "objective": str(problem.objective),
        "constraints": [str(constraint) for constraint in problem.constraints],
        "state": str(TrialState.RUNNING if outcome is None else STATES[outcome.end]),
        "trials": study.record.started,
        **to_json(ordered_run(problem, record.order)),
        "boots": record.order.boots,
        "input": None if record.order.input is None else record.order.input.record(),
        "ordered_s": record.ordered_s,
        "launched_s": record.launched_s,
        "heartbeat_s": record.heartbeat_s,
        "settled_s": record.settled_s,
        "cancel_requested": record.cancel_requested,
        "worker": worker_host(record.worker),
        "command": None if context.command is None else context.command(problem.space.point(record.order.row)),
        **_results(problem, record.order.row, outcome),
        "training_target": record.target,
        "output": None if output is None else {name: shown_output(text) for name, text in output.items()},
    }
    return page_document("trial", fields)


def _results(problem: Problem, row: int, outcome: Outcome | None) -> Document:
    """What happened; cost and constraints only for a run that finished."""
    if outcome is None:
        return {"outcome": None, "cost_usd": None, "keeps_constraints": None}
    seconds, done = outcome.seconds, outcome.end is End.FINISHED
    facts = {
        "runtime_s": seconds,
        "charged_usd": outcome.charged_usd,
        "metrics": outcome.metrics,
        "trace": outcome.trace,
        "reason": outcome.reason,
        "detail": outcome.detail,
        "usage": used(outcome),
    }
    return {
        "outcome": facts,
        "cost_usd": problem.cost(row, seconds) if done else None,
        "keeps_constraints": problem.meets_constraints(row, seconds, outcome.metrics) if done else None,
    }


def shown_output(text: str) -> Document:
    """The end of a stream, and how many characters before it are left out."""
    left_out = max(len(text) - MOST_OUTPUT, 0)
    return {"text": text[left_out:], "left_out": left_out}
