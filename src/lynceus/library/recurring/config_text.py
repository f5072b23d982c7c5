"""The configuration of a recurring job in the formats that schedulers read."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lynceus.errors import InputError, LynceusError

if TYPE_CHECKING:  # most calls print a text that was made before, and load none of this
    from lynceus.jobfile.prepared_study import PreparedStudy


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
    """A configuration in every format that its job allows; a format that it does not allow is missing."""
    from lynceus.library.recurring.job_problem import prepared_job

    prepared = prepared_job(name, document)
    texts = {}
    for to in ConfigFormat:
        try:
            texts[str(to)] = _text(prepared, to, f"{name}: version {number}", params)
        except LynceusError:
            if to in (ConfigFormat.JSON, ConfigFormat.ARGS):
                raise
    return texts


def _text(prepared: PreparedStudy, to: ConfigFormat, heading: str, params: Mapping[str, Any]) -> str:
    from lynceus.executors.placeholders import as_text
    from lynceus.jobfile.command_line import quoted
    from lynceus.jobfile.winner_export import env_file, skypilot_task, spark_defaults

    if to is ConfigFormat.JSON:
        return json.dumps(dict(params), ensure_ascii=False) + "\n"
    if to is ConfigFormat.ARGS:
        return " ".join(quoted(f"--{key}={as_text(value)}") for key, value in params.items()) + "\n"
    row = prepared.problem.space.row(dict(params))
    write = {ConfigFormat.ENV: env_file, ConfigFormat.SKYPILOT: skypilot_task, ConfigFormat.SPARK: spark_defaults}
    return write[to](prepared, row, heading)
