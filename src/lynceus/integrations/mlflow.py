"""Trials as runs of MLflow: one experiment per study, one run per trial."""

from __future__ import annotations

import re
from typing import Any

from lynceus.errors import MissingExtraError
from lynceus.integrations.trial_facts import trial_facts
from lynceus.study.view import StudyView
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observation

_STATUS = {"COMPLETE": "FINISHED", "TIMEOUT": "KILLED", "FAIL": "FAILED"}
_UNFIT = re.compile(r"[^\w\-. :/]")
"""What MLflow does not allow in names."""


class MlflowTracker:
    """Logs trials to a tracking server or database. A trial that was logged before is not logged again."""

    def __init__(self, uri: str) -> None:
        try:
            from mlflow import MlflowClient
        except ImportError:
            raise MissingExtraError("Runs of MLflow", "mlflow") from None
        self._client: Any = MlflowClient(tracking_uri=uri)
        self._experiments: dict[str, str] = {}

    def ordered(self, study: StudyView, order: Order, now_s: float, deciding_s: float) -> None:
        """Nothing: a run is logged when it has ended, whole."""

    def settled(self, study: StudyView, seen: Observation, now_s: float) -> None:
        """Log a trial."""
        experiment = self._experiment(study)
        number, identity = str(seen.order.number), study.record.identity
        ours = f"tags.`lynceus.trial` = '{number}' and tags.`lynceus.study` = '{identity}'"
        found = self._client.search_runs([experiment], ours, max_results=1)
        if found and found[0].info.status != "RUNNING":
            return
        facts = trial_facts(study, seen, now_s)
        tags = {"lynceus.trial": number, "lynceus.study": identity}
        tags |= {f"lynceus.{name}": text for name, text in facts.texts.items()}
        # A run that is still open was begun by a worker that was killed.
        run = found[0] if found else self._client.create_run(experiment, int(facts.started_s * 1000), tags, facts.name)
        for name, value in facts.params.items():
            self._client.log_param(run.info.run_id, _name(name), value)
        for name, number_ in facts.numbers.items():
            self._client.log_metric(run.info.run_id, _name(name), number_, int(facts.ended_s * 1000))
        self._client.set_terminated(run.info.run_id, _STATUS[facts.texts["state"]], int(facts.ended_s * 1000))

    def close(self) -> None:
        """Everything was sent already."""

    def _experiment(self, study: StudyView) -> str:
        if study.name not in self._experiments:
            known = self._client.get_experiment_by_name(study.name)
            found = self._client.create_experiment(study.name) if known is None else known.experiment_id
            self._experiments[study.name] = str(found)
        return self._experiments[study.name]


def log_study(study: StudyView, uri: str) -> None:
    """Log all trials of a study that have ended, and have not been logged yet."""
    tracker = MlflowTracker(uri)
    for seen in study.observations:
        tracker.settled(study, seen, seen.ended_s or 0.0)


def _name(text: str) -> str:
    return _UNFIT.sub("_", text)
