"""The JSON Schema of job files, for editors."""

from __future__ import annotations

import json
from typing import Any

from lynceus.executors.registry import BUILT_IN, executor_plugin
from lynceus.jobfile.sections.job_file import JobFile


def job_schema() -> str:
    """The schema as JSON text, the same on every call."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **JobFile.model_json_schema()}
    schema["title"] = "Lynceus job file"
    _require_command(schema)
    _add_executors(schema)
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _require_command(schema: dict[str, Any]) -> None:
    """A file always names a command or a server; only the API accepts jobs without one."""
    run = schema["properties"]["run"]
    (command,) = [one for one in run.pop("anyOf") if one != {"type": "null"}]
    schema["properties"]["run"] = {**command, "description": run["description"], "title": run["title"]}
    serve = schema["properties"]["serve"]
    (section,) = [one for one in serve.pop("anyOf") if one != {"type": "null"}]
    schema["properties"]["serve"] = {**section, "description": serve["description"]}
    schema["oneOf"] = [{"required": ["run"]}, {"required": ["serve"]}]


def _add_executors(schema: dict[str, Any]) -> None:
    """The fields of each executor that comes with Lynceus; plugins of other packages validate their own."""
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
