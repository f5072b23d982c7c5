"""The best server as a deployment: what is exported starts the server that was measured."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
import yaml

from lynceus.errors import InputError
from lynceus.jobfile.deployment_export import kubernetes_manifest, skypilot_service, vllm_arguments
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare

VLLM = """\
name: My_chat.v2
serve:
  command: [vllm, serve, "org/model name", --port, "${port}", --max-num-seqs, "${seqs}", --tensor-parallel-size, "${tp}"]
  ready: {path: /health, within: 95s}
  load: {rate: 1}
space: {seqs: [64], tp: [2], gpu: [L4], replicas: [3]}
envs: {VLLM_USE_V1: "1"}
secrets: {HF_TOKEN: "env:HF_TOKEN"}
price: 1
resources: {cpus: 4, memory: 1536 MB}
budget: {cost: 1 USD}
"""


def test_vllm_arguments_are_one_command_without_surprises() -> None:
    heading, line = vllm_arguments(prepare(Job.parse(VLLM)), 0, "My_chat: because").splitlines()
    assert heading == "# My_chat: because"
    assert shlex.split(line) == [
        *("vllm", "serve", "org/model name", "--port", "8000"),
        *("--max-num-seqs", "64", "--tensor-parallel-size", "2"),
    ]


def test_a_module_becomes_vllm_serve() -> None:
    text = VLLM.replace(
        'vllm, serve, "org/model name"', "python3, -m, vllm.entrypoints.openai.api_server, --model, org/m"
    )
    line = vllm_arguments(prepare(Job.parse(text)), 0, "why").splitlines()[1]
    assert line.startswith("vllm serve org/m --port 8000")


def test_another_server_is_not_vllm() -> None:
    text = VLLM.replace('vllm, serve, "org/model name"', "python3, server.py")
    with pytest.raises(InputError, match=r"the server of study 'My_chat.v2' is 'python3', not 'vllm serve'"):
        vllm_arguments(prepare(Job.parse(text)), 0, "why")


def test_a_skypilot_service_has_probe_port_replicas_and_gpus() -> None:
    found = yaml.safe_load(skypilot_service(prepare(Job.parse(VLLM)), 0, "why"))
    assert found["service"] == {"readiness_probe": {"path": "/health", "initial_delay_seconds": 95}, "replicas": 3}
    assert found["resources"] == {"cpus": "4+", "memory": "1.5+", "ports": 8000, "accelerators": "L4:2"}
    assert "--port 8000" in found["run"]
    assert found["secrets"] == {"HF_TOKEN": None}


def test_a_kubernetes_manifest_is_a_deployment_and_a_service() -> None:
    deployment, service = yaml.safe_load_all(kubernetes_manifest(prepare(Job.parse(VLLM)), 0, "why"))
    assert (deployment["kind"], deployment["metadata"]["name"]) == ("Deployment", "my-chat-v2")
    assert deployment["spec"]["replicas"] == 3
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "vllm/vllm-openai:latest"
    assert container["command"][:5] == ["vllm", "serve", "org/model name", "--port", "8000"]
    assert container["resources"]["limits"] == {"cpu": "4", "memory": "1536Mi", "nvidia.com/gpu": "2"}
    assert container["startupProbe"]["failureThreshold"] == 10, "95 s in probes of 10 s"
    variables = {one["name"]: one for one in container["env"]}
    assert variables["VLLM_USE_V1"]["value"] == "1"
    assert variables["HF_TOKEN"]["valueFrom"]["secretKeyRef"] == {"name": "my-chat-v2", "key": "HF_TOKEN"}
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == labels == deployment["spec"]["selector"]["matchLabels"]
    assert service["spec"]["ports"] == [{"port": 80, "targetPort": 8000}]


def test_an_unknown_server_needs_an_image() -> None:
    prepared = prepare(Job.parse(VLLM.replace('vllm, serve, "org/model name"', "./serve")))
    with pytest.raises(InputError, match=r"Say it with --image"):
        kubernetes_manifest(prepared, 0, "why")
    deployment, _ = yaml.safe_load_all(kubernetes_manifest(prepared, 0, "why", image="mine:1"))
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "mine:1"


def test_a_script_finds_its_port_and_values(tmp_path: Path) -> None:
    text = VLLM.replace(
        'command: [vllm, serve, "org/model name", --port, "${port}", --max-num-seqs, "${seqs}", --tensor-parallel-size, "${tp}"]',
        'command: "my-server --port $port --seqs $seqs"',
    )
    deployment, _ = yaml.safe_load_all(kubernetes_manifest(prepare(Job.parse(text)), 0, "why", image="mine:1"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["command"][-1].endswith("my-server --port $port --seqs $seqs")
    variables = {one["name"]: one.get("value") for one in container["env"]}
    assert (variables["port"], variables["seqs"]) == ("8000", "64")


def test_a_study_without_a_server_has_none_to_deploy() -> None:
    job = Job.parse("name: plain\nrun: 'true'\nspace: {x: [1]}\nprice: 1\nbudget: 1\n")
    for export in (vllm_arguments, skypilot_service, kubernetes_manifest):
        with pytest.raises(InputError, match=r"has a command and no server \(section 'serve'\)"):
            export(prepare(job), 0, "why")
