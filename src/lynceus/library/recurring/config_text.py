"""The configuration of a recurring job in the formats that schedulers read."""

from __future__ import annotations

import contextlib
import enum
import math
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lynceus.errors import InputError, LynceusError

if TYPE_CHECKING:  # most calls print a text that was made before, and load none of this
    from lynceus.jobfile.prepared_study import PreparedStudy
    from lynceus.library.recurring.run_config import RunConfig


class ConfigFormat(enum.StrEnum):
    """What `lynceus config --to` writes."""

    ENV = "env"
    JSON = "json"
    ARGS = "args"
    SKYPILOT = "skypilot"
    SPARK = "spark"

    @classmethod
    def parse(cls, name: str) -> ConfigFormat:
        """A format by its name."""
        try:
            return cls(name)
        except ValueError:
            raise InputError(f"config: the format is {name!r}; use one of {', '.join(cls)}.") from None


def config_texts(name: str, document: Mapping[str, Any], number: int, params: Mapping[str, Any]) -> dict[str, str]:
    """A configuration in every format that its job allows, but for JSON; a format that it does not allow is missing."""
    from lynceus.library.recurring.job_problem import prepared_job

    prepared = prepared_job(name, document)
    texts = {}
    for to in set(ConfigFormat) - {ConfigFormat.JSON}:
        with contextlib.suppress(LynceusError):
            texts[str(to)] = _text(prepared, to, f"{name}: version {number}", params)
    return texts


def run_variables(config: RunConfig) -> str:
    """Lines for `env` that say which version a run has, and of a canary when it must be stopped."""
    values = {"LYNCEUS_JOB": config.job, "LYNCEUS_JOB_VERSION": str(config.version)}
    if config.run_id is not None:
        values["LYNCEUS_RUN_ID"] = config.run_id
    if config.canary and math.isfinite(config.timeout_s):
        values["LYNCEUS_TIMEOUT_S"] = f"{config.timeout_s:.0f}"
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items())


def _text(prepared: PreparedStudy, to: ConfigFormat, heading: str, params: Mapping[str, Any]) -> str:
    from lynceus.executors.placeholders import as_text
    from lynceus.jobfile.command_line import quoted
    from lynceus.jobfile.winner_export import env_file, skypilot_task, spark_defaults

    if to is ConfigFormat.ARGS:
        return " ".join(quoted(f"--{key}={as_text(value)}") for key, value in params.items()) + "\n"
    row = prepared.problem.space.row(dict(params))
    write = {ConfigFormat.ENV: env_file, ConfigFormat.SKYPILOT: skypilot_task, ConfigFormat.SPARK: spark_defaults}
    return write[to](prepared, row, heading)
