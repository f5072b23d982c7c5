"""One trial with everything that was written down about it, and what it wrote itself."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lynceus.history import End
from lynceus.ledger.rows import TrialRecord
from lynceus.plain import Document, finite
from lynceus.trial import STATES
from lynceus.view.study import VERSION, ordered
from lynceus.view.subject import Subject

if TYPE_CHECKING:
    from lynceus.cli.opened import Opened

MOST_OUTPUT = 200_000
"""Characters of a stream that a page is given: the last ones, where errors stand."""


def trial_view(
    subject: Subject, record: TrialRecord, output: Mapping[str, str] | None = None, now_s: float | None = None
) -> Document:
    """A trial: what was planned, what happened, what the model was told, and its output where it can be read."""
    problem, outcome = subject.study.problem, record.outcome
    row = record.order.row
    done = outcome is not None and outcome.end is End.FINISHED
    facts: Document = finite(
        {
            "v": VERSION,
            "kind": "trial",
            "study": subject.study.name,
            "now_s": time.time() if now_s is None else now_s,
            "objective": str(problem.goal),
            "limits": [str(limit) for limit in problem.limits],
            "state": "RUNNING" if outcome is None else str(STATES[outcome.end]),
            "last": subject.study.history[-1].order.number if subject.study.history else 0,
            "trials": len(subject.study.history) + len(subject.study.pending),
            **ordered(problem, record.order),
            "boots": record.order.boots,
            "ordered_s": record.ordered_s,
            "launched_s": record.launched_s,
            "heartbeat_s": record.heartbeat_s,
            "settled_s": record.settled_s,
            "unwanted": record.unwanted,
            "worker": None if record.worker is None else record.worker.split("/")[0],
            "command": None if subject.command is None else subject.command(problem.space.point(row)),
            "outcome": None
            if outcome is None
            else {
                "end": str(outcome.end),
                "runtime_s": outcome.seconds,
                "charged_usd": outcome.charged_usd,
                "metrics": dict(outcome.metrics),
                "trace": [list(pair) for pair in outcome.trace],
                "reason": None if outcome.reason is None else str(outcome.reason),
                "detail": outcome.detail,
            },
            "cost_usd": problem.cost(row, outcome.seconds) if outcome is not None and done else None,
            "keeps_limits": problem.meets_limits(row, outcome.seconds, outcome.metrics)
            if outcome is not None and done
            else None,
            "told": record.told,
        }
    )
    return facts | {"output": None if output is None else {name: shown_output(text) for name, text in output.items()}}


def shown_output(text: str) -> Document:
    """The end of a stream, and how many characters before it are left out."""
    left_out = max(len(text) - MOST_OUTPUT, 0)
    return {"text": text[left_out:], "left_out": left_out}


def trial_output(one: Opened, number: int) -> dict[str, str] | None:
    """What a trial wrote as far as it is kept on this machine, secrets hidden; nothing when it is not here."""
    from lynceus.job.execution import study_folder
    from lynceus.job.secrets import hidden, known_secrets
    from lynceus.supervisor.output import read_output

    folder: Path = study_folder(one.prepared.job, one.study) / str(number)
    if not folder.is_dir():
        return None
    secrets = known_secrets(one.prepared.job)
    return {
        name: hidden(read_output(str(folder / name)).decode("utf-8", "replace"), secrets)
        for name in ("stdout", "stderr")
    }
