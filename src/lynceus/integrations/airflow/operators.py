"""Operators for recurring jobs: run one, or read the configuration that it is to have."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lynceus.errors import MissingExtraError
from lynceus.library.recurring.execution import Watcher, ended_text, execute, task_run_id
from lynceus.library.recurring.recurring_job import RecurringJob, load_job
from lynceus.storage.sql.storage import DEFAULT_URL
from lynceus.trial.outcome import End

try:
    from airflow.exceptions import AirflowException
    from airflow.sdk import BaseOperator
except ImportError:
    raise MissingExtraError("Operators for Airflow", "airflow") from None

if TYPE_CHECKING:
    from lynceus.library.recurring.run_config import RunConfig


class LynceusRun(BaseOperator):
    """Run a recurring job once with its adopted configuration, on the executor of its job file, and record the run.

    A worker that is killed loses nothing: the job goes on under its supervisor, and the next try of the task waits for that run instead
    of starting another. A try after a run that failed starts a new run. The result (an XCom) is the recorded run.
    """

    template_fields: Sequence[str] = ("job", "storage", "input", "arguments")

    def __init__(
        self,
        *,
        job: str,
        storage: str | None = None,
        input: float | str | None = None,
        arguments: Sequence[str] = (),
        **task: Any,
    ) -> None:
        """`input` is the size of the input (`120GB`); `arguments` are appended to a `run` in list form; `task` are Airflow's own."""
        super().__init__(**task)
        self.job, self.storage, self.input, self.arguments = job, storage, input, list(arguments)
        self._stopped = False

    def execute(self, context: Any) -> dict[str, Any]:
        """Run it, or wait for the run of a former try."""
        found = load_job(self.job, storage=_storage(self.storage))
        done = execute(
            found,
            input=self.input,
            run_id=run_id_of(found, context["ti"]),
            extra=self.arguments,
            watcher=Watcher(output=self._print, note=self.log.info, stopped=lambda: self._stopped),
        )
        if done.run.end is not End.FINISHED:
            raise AirflowException(f"{self.job}: the run {ended_text(done.run)}; its output is in the log above.")
        run = done.run
        told = {"run_id": run.run_id, "version": run.version, "runtime_s": run.seconds, "cost_usd": run.cost_usd}
        return {**told, "recorded": done.recorded, "params": dict(done.config.params)}

    def on_kill(self) -> None:
        """Airflow wants the task to end: so does its run."""
        self._stopped = True

    def _print(self, stream: str, text: str) -> None:
        for line in text.splitlines():
            self.log.info("%s: %s", stream, line)


class LynceusConfig(BaseOperator):
    """The configuration with which a recurring job is to run now, for tasks that start the job themselves.

    The result (an XCom) has `params`, the version, and the run's id; report the run with `lynceus record` or `RecurringJob.record`. With
    `to` it also has a `text` in one of the formats of `lynceus config`. In mode `apply` the run may be a canary: stop it after `timeout_s`.
    """

    template_fields: Sequence[str] = ("job", "storage", "input")

    def __init__(
        self,
        *,
        job: str,
        storage: str | None = None,
        input: float | str | None = None,
        to: str | None = None,
        **task: Any,
    ) -> None:
        """`to`: env, json, args, skypilot or spark; `task` are Airflow's own."""
        super().__init__(**task)
        self.job, self.storage, self.input, self.to = job, storage, input, to

    def execute(self, context: Any) -> dict[str, Any]:
        """Read it; while the storage is away, the last version that this host saw."""
        found = load_job(self.job, storage=_storage(self.storage))
        config: RunConfig = found.config(run_id=run_id_of(found, context["ti"]), input=self.input)
        told = {
            "job": config.job,
            "version": config.version,
            "params": dict(config.params),
            "run_id": config.run_id,
            "canary": config.canary,
            "timeout_s": config.timeout_s if config.canary else None,
        }
        return told if self.to is None else {**told, "text": found.config_text(self.to, config)}


def run_id_of(job: RecurringJob, task: Any) -> str:
    """The run that this try of a task is about: the same one until it has failed.

    `task` is Airflow's task instance: its DAG, task, DAG run and place among mapped tasks name the first run, numbers the later ones.
    """
    name = f"{task.dag_id}/{task.task_id}/{task.run_id}" + (f"/{task.map_index}" if task.map_index >= 0 else "")
    return task_run_id(job, name)


def _storage(given: str | None) -> str:
    return given or os.environ.get("LYNCEUS_STORAGE") or DEFAULT_URL
