"""The trials of a study as a pandas data frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lynceus.errors import MissingExtraError
from lynceus.problem.problem import Problem
from lynceus.trial.trial import TrialSummary

if TYPE_CHECKING:
    from pandas import DataFrame


def trials_frame(problem: Problem, trials: Sequence[TrialSummary]) -> DataFrame:
    """One row per trial. Columns have Optuna's names where Optuna has them; what is not known is missing."""
    try:
        import pandas  # heavy, and only needed here
    except ImportError:
        raise MissingExtraError("Data frames", "pandas") from None
    metrics = dict.fromkeys(name for trial in trials for name in (*problem.metrics, *trial.metrics))
    moments = {
        "datetime_start": [trial.started_s for trial in trials],
        "datetime_complete": [trial.ended_s for trial in trials],
    }
    return pandas.DataFrame(
        {
            "number": [trial.number for trial in trials],
            "value": pandas.Series([_value(problem, trial) for trial in trials], dtype="float64"),
            **{
                name: pandas.to_datetime(pandas.Series(at_s, dtype="float64"), unit="s", utc=True)
                for name, at_s in moments.items()
            },
            "duration": pandas.to_timedelta(
                pandas.Series([trial.runtime_s for trial in trials], dtype="float64"), unit="s"
            ),
            **{
                f"params_{one.name}": [trial.params.get(one.name) for trial in trials]
                for one in problem.space.parameters
            },
            **{
                f"metrics_{name}": pandas.Series([trial.metrics.get(name) for trial in trials], dtype="float64")
                for name in metrics
            },
            "cost_usd": pandas.Series([trial.cost_usd for trial in trials], dtype="float64"),
            "charged_usd": pandas.Series([trial.charged_usd for trial in trials], dtype="float64"),
            "keeps_constraints": pandas.array([trial.keeps_constraints for trial in trials], dtype="boolean"),
            "reason": [trial.reason for trial in trials],
            "state": [str(trial.state) for trial in trials],
        }
    )


def _value(problem: Problem, trial: TrialSummary) -> float | None:
    """The objective of a run that completed: dollars, seconds, the metric, or the value of a formula."""
    if trial.cost_usd is None or trial.runtime_s is None or not problem.goal.told_by(trial.metrics):
        return None
    if problem.goal.formula is not None:
        return problem.objective.sign * problem.value(problem.space.row(trial.params), trial.runtime_s, trial.metrics)
    if problem.kind == "metric":
        return trial.metrics[problem.objective.metric]
    return trial.cost_usd if problem.kind == "cost" else trial.runtime_s
