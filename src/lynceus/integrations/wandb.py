"""Trials as runs of Weights & Biases: one group per study, one run per trial."""

from __future__ import annotations

from typing import Any

from lynceus.errors import MissingExtraError
from lynceus.integrations.trial_facts import trial_facts
from lynceus.study.view import StudyView
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observation


class WandbTracker:
    """Logs trials to a project. Environment variables of W&B hold: WANDB_API_KEY, WANDB_MODE=offline, WANDB_DIR."""

    def __init__(self, project: str) -> None:
        try:
            import wandb
        except ImportError:
            raise MissingExtraError("Runs of Weights & Biases", "wandb") from None
        self._wandb: Any = wandb
        entity, _, self._project = project.rpartition("/")
        self._entity = entity or None

    def ordered(self, study: StudyView, order: Order, now_s: float, deciding_s: float) -> None:
        """Nothing: a run is logged when it has ended, whole."""

    def settled(self, study: StudyView, seen: Observation, now_s: float) -> None:
        """Log a trial. Its id follows from the study and its number, so that it is never there twice."""
        facts = trial_facts(study, seen, now_s)
        run = self._wandb.init(
            project=self._project,
            entity=self._entity,
            group=study.name,
            name=facts.name,
            id=f"{study.record.identity}-{seen.order.number}",
            config=facts.params,
            tags=[facts.texts["state"]],
            notes=facts.texts.get("detail"),
            resume="allow",
            reinit="create_new",
            settings=self._wandb.Settings(silent=True, console="off", x_disable_stats=True, disable_git=True),
        )
        run.log(facts.numbers)
        run.summary.update({f"lynceus_{name}": text for name, text in facts.texts.items()})
        run.finish(exit_code=1 if facts.texts["state"] == "FAIL" else 0)

    def close(self) -> None:
        """Everything was sent already."""
