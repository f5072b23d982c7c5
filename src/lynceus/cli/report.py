"""`lynceus report`: a study as one HTML file."""

from __future__ import annotations

import importlib.metadata
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lynceus.cli.output import StorageOption, StudyArgument
from lynceus.errors import InputError
from lynceus.plain import finite

if TYPE_CHECKING:
    from lynceus.cli.opened import Opened


def report(
    study: StudyArgument = None,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; NAME.html by default.")
    ] = None,
    storage: StorageOption = None,
) -> None:
    """Write one self-contained HTML file with interactive plots; it needs no network."""
    from lynceus.cli.opened import open_study
    from lynceus.report_page import page

    one = open_study(study, storage)
    target = file or Path(f"{one.name}.html")
    text = page(f"{one.name} · Lynceus", finite(report_facts(one)))
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{target}: the file cannot be written: {error.strerror}; choose another place.") from None
    typer.echo(f"{target} is written.")


def report_facts(one: Opened) -> dict[str, Any]:
    """Everything that the page shows."""
    from lynceus.cli.answers import verdict_facts, verdict_lines
    from lynceus.insight import calibration, finished_points, importance, pareto_front, steps, verdict
    from lynceus.insight.records import trial_records
    from lynceus.view.glance import glance

    study, known = one.study, one.known
    problem = study.problem
    other_limits = problem.with_limits(tuple(limit for limit in problem.limits if limit.metric != "time"))
    kept = {
        seen.order.number
        for seen in study.history
        if other_limits.meets_limits(seen.row, seen.outcome.seconds, seen.outcome.metrics)
    }
    rows = trial_records(problem, study.history, study.pending)
    found = verdict(problem, study.policy, known, all_runs=study.history, baseline=one.baseline, seed=study.seed)
    seen = calibration(problem, study.history)
    front = pareto_front(point for point in finished_points(other_limits, known) if point.keeps_limits)
    return glance(one.storage, one.record) | {
        "trials": [row | {"keeps_other_limits": row["number"] in kept} for row in rows],
        "configurations": len(problem.space),
        "parameters": [parameter.name for parameter in problem.space.parameters],
        "deadline_s": problem.deadline_s,
        "steps": steps(problem, study.history),
        "front": front,
        "importance": importance(problem, study.policy, known, seed=study.seed),
        "calibration": {
            "coverage": seen.coverage,
            "typical_factor": seen.typical_factor,
            "predictions": seen.predictions,
        },
        "verdict": None if found is None else verdict_facts(one, found) | {"lines": verdict_lines(one, problem, found)},
        "version": importlib.metadata.version("lynceus"),
        "written": time.strftime("%Y-%m-%d %H:%M"),
    }
