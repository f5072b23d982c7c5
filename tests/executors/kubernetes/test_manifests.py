"""The manifests of deploy/kubernetes: objects of Kubernetes that name each other rightly, ask for the rights that are used, and no more."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from kubernetes_bench import checked, fake_kubernetes
from lynceus.cli import exit_codes
from lynceus.cli.app import app
from lynceus.executors.interface import ResourceKind
from lynceus.executors.kubernetes.executor import KubernetesExecutor
from lynceus.executors.kubernetes.options import KubernetesOptions
from lynceus.executors.plugin import ExecutorContext
from lynceus.testing.executor_harness import ExecutorHarness
from readers import ROOT

FILE = ROOT / "deploy" / "kubernetes" / "lynceus.yaml"
TEXT = FILE.read_text(encoding="utf-8")
OBJECTS: list[dict[str, Any]] = list(yaml.safe_load_all(TEXT))
TEMPLATES = {one["metadata"]["name"]: one["spec"]["template"] for one in OBJECTS if "template" in one.get("spec", {})}
CONTAINERS = {name: template["spec"]["containers"][0] for name, template in TEMPLATES.items()}


def names(kind: str) -> set[str]:
    return {one["metadata"]["name"] for one in OBJECTS if one["kind"] == kind}


@pytest.mark.parametrize("one", OBJECTS, ids=lambda one: f"{one['kind']} {one['metadata']['name']}")
def test_every_document_is_an_object_of_kubernetes(one: dict[str, Any]) -> None:
    """It survives the official client's models unchanged."""
    checked(one, f"V1{one['kind']}")


def test_objects_name_each_other() -> None:
    assert set(TEMPLATES) == {"lynceus", "lynceus-postgres", "lynceus-worker"}
    kept = set(re.findall(r"--from-literal=(\w+)=", TEXT))
    for template in TEMPLATES.values():
        spec = template["spec"]
        claims = {one["name"]: one["persistentVolumeClaim"]["claimName"] for one in spec["volumes"]}
        assert set(claims.values()) <= names("PersistentVolumeClaim")
        assert {spec.get("serviceAccountName", "lynceus")} <= names("ServiceAccount")
        (container,) = spec["containers"]
        assert {one["name"] for one in container["volumeMounts"]} == set(claims)
        secrets = [one["valueFrom"]["secretKeyRef"] for one in container["env"] if "valueFrom" in one]
        assert {one["name"] for one in secrets} <= {"lynceus"}
        assert {one["key"] for one in secrets} <= kept, "the command in the first lines makes them"
    for one in OBJECTS:
        selector = one["spec"].get("selector", {}) if "spec" in one else {}
        labels = selector.get("matchLabels", selector)
        assert not labels or any(
            labels.items() <= template["metadata"]["labels"].items() for template in TEMPLATES.values()
        )
    assert set(re.findall(r"@([\w-]+)/", TEXT)) <= names("Service")


@pytest.mark.parametrize("name", ["lynceus", "lynceus-worker"])
def test_containers_call_commands_that_exist(name: str) -> None:
    program, word, *words = CONTAINERS[name]["command"]
    command = typer.main.get_command(app).commands[word]  # type: ignore[attr-defined]
    known = {option for param in command.params for option in param.opts}
    assert program == "lynceus"
    assert {one for one in words if one.startswith("-")} <= known


def test_a_search_that_is_over_is_not_started_again() -> None:
    (worker,) = [one for one in OBJECTS if one["metadata"]["name"] == "lynceus-worker"]
    assert (worker["kind"], worker["spec"]["template"]["spec"]["restartPolicy"]) == ("Job", "Never")
    final, disrupted = worker["spec"]["podFailurePolicy"]["rules"]
    assert final["onExitCodes"]["containerName"] == CONTAINERS["lynceus-worker"]["name"]
    assert set(final["onExitCodes"]["values"]) == {exit_codes.INPUT, exit_codes.INFEASIBLE, exit_codes.SHARED_BUDGET}
    assert (final["action"], disrupted["action"]) == ("FailJob", "Ignore")


def test_the_role_has_the_rights_that_the_executor_uses(tmp_path: Path) -> None:
    """Start a trial, look at it, and remove its Job as `lynceus gc` does."""
    (role,) = [one for one in OBJECTS if one["kind"] == "Role"]
    granted = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    volumes = [{"path": str(tmp_path), "claim": "runs"}]
    options = KubernetesOptions.model_validate(
        {"image": "job:1", "volumes": volumes, "python": sys.executable, "poll": 0.1}
    )
    harness = ExecutorHarness(
        lambda problem, job, root: KubernetesExecutor(ExecutorContext(problem, job, root), options), tmp_path, 30.0
    )
    with fake_kubernetes(tmp_path) as cluster:
        with harness.executor(harness.job('touch "$FOLDER/ready"; sleep 1000')) as executor:
            ticket = executor.launch(harness.request())
            harness.wait_for_file(executor, ticket, "ready")
            (job,) = [one for one in executor.owned_resources() if one.kind is ResourceKind.JOB]
            executor.remove(job)
            harness.wait(executor, ticket)
        assert cluster.rights == granted
