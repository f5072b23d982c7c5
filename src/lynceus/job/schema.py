"""The JSON Schema of job files, for editors."""

from __future__ import annotations

import json

from lynceus.job.model import JobFile


def job_schema() -> str:
    """The schema as JSON text, the same on every call."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **JobFile.model_json_schema()}
    schema["title"] = "Lynceus job file"
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
