"""schemathesis over the whole OpenAPI document: the server answers every request as documented, and never with an internal error."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS

from dashboards import JOB, WRITE, Dashboard, served

LIVE = ("/api/v1/events", "/api/v1/studies/{name}/events")
"""Streams that do not end; `test_live.py` tests them."""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A server with a new, a running and a finished study."""
    folder: Path = tmp_path_factory.mktemp("schema")
    with served(f"sqlite:///{folder}/s.db", folder) as running:
        for name in ("new", "busy", "done"):
            assert running.post("studies", JOB | {"name": name, "policy": "bo", "trial": {}}).status == 201
        for name, trials in (("busy", 3), ("done", 8)):
            for number in range(trials):
                running.post(f"studies/{name}/ask")
                running.post(f"studies/{name}/trials/{number}/tell", {"runtime": 50 + 10 * number})
        running.post("studies/busy/ask")
        yield running


def document() -> dict[str, Any]:
    """The OpenAPI document with the names of existing studies, so that not every request ends with 'no such study'."""
    from lynceus.server.app import create_app

    app = create_app("sqlite://")
    whole = app.openapi()
    app.state.context.storage.close()
    for path, operations in list(whole["paths"].items()):
        if path in LIVE:
            del whole["paths"][path]
            continue
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in ("name", "a", "b"):
                    parameter["schema"] = {"enum": ["new", "busy", "done", "unknown"]}
                if parameter["name"] == "number":
                    parameter["schema"] = {"enum": [0, 1, 2, 3, 7, 99]}
    return whole


def loaded(*, every_edge: bool) -> Any:
    """The schema with valid and invalid requests; `every_edge` also tests the boundaries of each field."""
    schema = schemathesis.openapi.from_dict(document())
    schema.config.generation.update(modes=list(schemathesis.GenerationMode))
    schema.config.phases.coverage.enabled = every_edge
    return schema


quick, thorough = loaded(every_edge=False), loaded(every_edge=True)
CONFORMANCE = [
    one
    for one in CHECKS.get_all()
    if one.__name__
    in ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")
]


def check(case: Any, target: Dashboard) -> None:
    headers = {"Authorization": f"Bearer {WRITE}"}
    case.call_and_validate(base_url=target.url, headers=headers, checks=CONFORMANCE, timeout=60)


def limited(examples: int) -> Any:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@quick.parametrize()
@limited(12)
def test_the_server_conforms_to_its_schema(case: Any, target: Dashboard) -> None:
    check(case, target)


@pytest.mark.slow
@thorough.parametrize()
@limited(300)
def test_the_server_conforms_to_its_schema_thoroughly(case: Any, target: Dashboard) -> None:
    check(case, target)
