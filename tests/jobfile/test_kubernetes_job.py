"""The best configuration as a Kubernetes Job."""

import pytest
import yaml

from kubernetes_bench import checked
from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.kubernetes_job import kubernetes_job
from lynceus.jobfile.prepared_study import prepare

JOB = """
name: Nightly_train
run: [python, train.py, --batch, "${batch}"]
secrets: [TOKEN]
space: {batch: [32, 64], version: ["1.8"]}
price: 1
resources: {cpus: 4}
constraints: ["runtime <= 20m"]
budget: 1
"""
EXECUTOR = """
executor:
  kind: kubernetes
  image: "registry/train:${version}"
  volumes: [{claim: lynceus, path: /lynceus}]
  run_directory: /lynceus/runs
  workdir: /app
  memory: 2 GB
  queue: trials
  node_selector: {zone: a}
"""


def test_the_winner_runs_as_it_did_in_the_search() -> None:
    text = kubernetes_job(prepare(Job.parse(JOB + EXECUTOR)), 1, "nightly: measured")
    assert text.startswith("# nightly: measured\n")
    job = yaml.safe_load(text)
    checked(job, "V1Job")
    pod = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert job["metadata"]["name"] == "nightly-train"
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "trials"
    assert container["image"] == "registry/train:1.8"
    assert container["command"] == ["/bin/sh", "-c", "python train.py --batch 64"]
    assert container["resources"]["limits"] == {"cpu": "4", "memory": "2048Mi"}
    assert container["workingDir"] == "/app"
    assert {"name": "LYNCEUS_PARAM_BATCH", "value": "64"} in container["env"]
    secret = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "nightly-train", "key": "TOKEN"}}}
    assert secret in container["env"]
    assert pod["activeDeadlineSeconds"] == 2400
    assert pod["nodeSelector"] == {"zone": "a"}


def test_other_executors_need_an_image() -> None:
    prepared = prepare(Job.parse(JOB))
    with pytest.raises(InputError, match="--image registry/name:tag"):
        kubernetes_job(prepared, 0, "why")
    job = yaml.safe_load(kubernetes_job(prepared, 0, "why", image="mine:1"))
    checked(job, "V1Job")
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "mine:1"
