"""Job files that are sent to the API. They may not make the server read its own files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import PreparedStudy, prepare
from lynceus.jobfile.sections.job_file import JobFile
from lynceus.jobfile.yaml.document import Document
from lynceus.jobfile.yaml.lines import Tree
from lynceus.space.column import is_storable

_YAML = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/plain")


def uploaded_job(body: bytes, content_type: str, folder: Path) -> PreparedStudy:
    """A job from the body of a request: YAML text as in a job file, or the same fields as JSON."""
    kind = content_type.partition(";")[0].strip().lower()
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("body: this is not UTF-8 text; send a job file, or its fields as JSON.") from None
    if kind == "application/json":
        job = _from_json(text, folder)
    elif kind in _YAML:
        document = Document.parse(text, "job")
        job = _checked(document, folder)
    else:
        raise InputError(f"Content-Type is {kind[:60]!r}; send application/yaml or application/json.")
    _refuse_files(job)
    _refuse_unstorable(job.stored())
    return prepare(job)


def _from_json(text: str, folder: Path) -> Job:
    try:
        values = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"body: this is not JSON: {error}.") from None
    if not isinstance(values, dict):
        raise InputError("body: this is not a JSON object; send the fields of a job file.")
    _refuse_unstorable(values)
    return _checked(Document("job", Tree(values, {(): 1})), folder)


def _checked(document: Document, folder: Path) -> Job:
    """A job; without `run`, programs run its trials (ask and tell)."""
    return Job(document.check(JobFile), document, folder.resolve())


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not a JSON number")


def _refuse_files(job: Job) -> None:
    """A request must not make the server read its own files, or write outside its folder."""
    for name, derived in job.spec.derived.items():
        if derived.table is not None:
            with job.at("derived", name, "table"):
                raise InputError("the API cannot read tables on the server; write the values with map.")
    if job.spec.prices is not None:
        with job.at("prices", "file"):
            raise InputError("the API cannot read catalogs on the server; write the prices with price.")
    for entry, past in enumerate(job.spec.history if isinstance(job.spec.history, list) else []):
        if past.file is not None or past.storage is not None:
            with job.at("history", entry):
                raise InputError("the API reads no files and no other storages; name a study of this server.")
    if job.spec.notify is not None:
        with job.at("notify"):
            raise InputError("the API cannot use secrets on the server; run the study from a job file.")
    for place, text in (
        (("workdir",), job.spec.workdir),
        (("executor", "run_directory"), getattr(job.spec.executor, "run_directory", ".lynceus")),
    ):
        path = PurePosixPath(text)
        if path.is_absolute() or ".." in path.parts or text.startswith("~"):
            with job.at(*place):
                raise InputError(f"{text[:100]!r} is outside the server's folder; give a path below it.")


def _refuse_unstorable(value: Any, depth: int = 0) -> None:
    """Databases store neither NUL, nor half a surrogate pair, nor infinity and NaN."""
    if depth > 100:
        raise InputError("body: values are nested too deeply.")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _refuse_unstorable(key, depth + 1)
            _refuse_unstorable(inner, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            _refuse_unstorable(inner, depth + 1)
    elif isinstance(value, str):
        if not is_storable(value):
            raise InputError("body: a text has a character that cannot be stored (NUL, or half a surrogate pair).")
    elif isinstance(value, float) and value - value != 0.0:
        raise InputError("body: a number is infinite or NaN; give finite numbers.")
