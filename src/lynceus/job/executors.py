"""The section `executor` of a job file: which plugin runs the trials, and its options, checked by the plugin's own model."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from lynceus.document.complaint import complaint, hint
from lynceus.errors import InputError
from lynceus.executor.plugin import Plugin
from lynceus.job.job import Job
from lynceus.job.sections import ExecutorSection
from lynceus.plugins import executor_plugin
from lynceus.space import Space


def executor_section(job: Job) -> tuple[Plugin, BaseModel]:
    """The plugin that a job names, and its options."""
    section = job.spec.executor
    with job.at("executor", "kind"):
        plugin = executor_plugin(section.kind)
    return plugin, _options(job, plugin, dict(section.model_extra or {}))


def checked_executor(job: Job, space: Space) -> None:
    """Refuse an unknown executor, and options that do not fit it or the space."""
    plugin, options = executor_section(job)
    if plugin.check is not None:
        with job.at("executor"):
            plugin.check(options, space)


def _options(job: Job, plugin: Plugin, given: dict[str, Any]) -> BaseModel:
    try:
        return plugin.options.model_validate(given)
    except ValidationError as error:
        path, message = complaint(error, plugin.options, given)
        if len(path) == 1 and path[0] not in plugin.options.model_fields:
            known = [*ExecutorSection.model_fields, *plugin.options.model_fields]
            message = f"there is no field '{path[0]}'{hint(str(path[0]), known)}"
        raise InputError(f"{job.document.at('executor', *path)}: {message}") from None
