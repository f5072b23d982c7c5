"""The JSON Schema of job files, for editors."""

from __future__ import annotations

import json
from typing import Any

from lynceus.job.model import JobFile
from lynceus.plugins import BUILT_IN, executor_plugin


def job_schema() -> str:
    """The schema as JSON text, the same on every call."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **JobFile.model_json_schema()}
    schema["title"] = "Lynceus job file"
    _add_executors(schema)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _add_executors(schema: dict[str, Any]) -> None:
    """What each executor that comes with Lynceus reads besides; plugins of other packages check their fields themselves."""
    section = schema["$defs"]["ExecutorSection"]
    cases = []
    for name in BUILT_IN:
        options = executor_plugin(name).options.model_json_schema()
        for defined, definition in options.get("$defs", {}).items():
            schema["$defs"].setdefault(defined, definition)
        kind = {"properties": {"kind": {"const": name}}, "required": ["kind"]}
        cases.append({"if": kind, "then": {"properties": options.get("properties", {})}})
    section["allOf"] = cases
    schema["$defs"]["ExecutorSection"] = {
        "anyOf": [{"type": "string", "description": "the kind alone"}, section],
        "description": section.pop("description", ""),
    }
