"""From a job file to space, problem, policy, limits of trials, commands and exports."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.jobfile.command_line import command_line
from lynceus.jobfile.executor import executor_of, job_command
from lynceus.jobfile.init_template import Answers, job_template
from lynceus.jobfile.job import Job
from lynceus.jobfile.json_schema import job_schema
from lynceus.jobfile.prepared_study import prepare
from lynceus.jobfile.secrets import hidden, secrets_of
from lynceus.jobfile.sections.values import memory_gib
from lynceus.jobfile.winner_export import env_file, skypilot_task, spark_defaults
from lynceus.policy.policy_file import compose, describe
from lynceus.policy.timeouts.at_most import AtMost
from lynceus.space.parameter import Categorical, Float, Integer, Ordinal

ROOT = Path(__file__).parents[2]
HEAD = "name: x\nrun: 'true'\nbudget: 1\n"


def space_of(text: str):
    return prepare(Job.parse(HEAD + text)).problem.space


def test_kinds_of_parameters() -> None:
    space = space_of(
        """price: 1
space:
  words: [a, b]
  flags: [true, false]
  numbers: [1, 2, 8]
  doubling: {choice: [1, 2, 8], log: true}
  order: {ordinal: [small, large]}
  range: {int: [1, 9], step: 4}
  log: {int: [16, 64], log: true, steps: 3}
  share: {float: [0.2, 0.6], step: 0.2}
  depends: {choice: [x, y], when: "words == 'a'"}
"""
    )
    kinds = {one.name: (type(one), one.values) for one in space.parameters}
    assert kinds["words"] == (Categorical, ("a", "b"))
    assert kinds["flags"] == (Categorical, (True, False))
    assert kinds["numbers"] == (Ordinal, (1, 2, 8))
    assert kinds["doubling"] == (Integer, (1, 2, 8))
    assert kinds["order"] == (Ordinal, ("small", "large"))
    assert kinds["range"] == (Integer, (1, 5, 9))
    assert kinds["log"] == (Integer, (16, 32, 64))
    assert kinds["share"] == (Float, (0.2, 0.4, 0.6))
    assert "depends" not in space.point(space.row({**space.point(len(space) - 1)}))


def test_derived_columns_prices_and_resources(tmp_path: Path) -> None:
    (tmp_path / "machines.csv").write_text("vm,gb,usd\nsmall,2,0.1\nlarge,8,0.3\n")
    text = """space: {vm: [small, large], nodes: [1, 2]}
derived:
  machine: {join: vm, table: machines.csv}
  weight: {map: nodes, values: {1: 10, 2: 20}}
  total_gb: nodes * gb
forbid: ["total_gb > 8"]
price: usd * nodes
resources: {cpus: nodes, memory: gb}
baseline: {vm: large, nodes: 1}
"""
    prepared = prepare(Job.parse(HEAD + text, tmp_path))
    space = prepared.problem.space
    assert len(space) == 3
    assert prepared.problem.price[prepared.problem.baseline.row] * 3600 == pytest.approx(0.3)
    assert {"weight", "total_gb", "gb"} <= set(space.feature_names)
    row = space.row({"vm": "small", "nodes": 2})
    assert (prepared.cpus[row], prepared.memory_gib[row]) == (2.0, 2.0)
    assert space.column("weight")[row] == 20


def test_prices_come_from_a_catalog(tmp_path: Path) -> None:
    (tmp_path / "aws.csv").write_text(
        "InstanceType,vCPUs,MemoryGiB,Price,SpotPrice,Region\nm.large,2,8,0.1,0.03,eu\nm.xlarge,4,16,0.2,0.06,eu\n"
    )
    text = (
        "space: {instance_type: [m.large, m.xlarge], num_workers: [1, 2]}\n"
        "prices: {file: aws.csv, spot: true}\nprice: price_usd_per_hour * num_workers\n"
    )
    prepared = prepare(Job.parse(HEAD + text, tmp_path))
    row = prepared.problem.space.row({"instance_type": "m.xlarge", "num_workers": 2})
    assert prepared.problem.price[row] * 3600 == pytest.approx(0.12)


def test_max_duration_also_limits_the_first_runs() -> None:
    text = HEAD + "space: {a: [1, 2]}\nprice: 1\ntrial: {max_duration: 90s, timeout: none}\n"
    policy = prepare(Job.parse(text)).policy
    assert isinstance(policy.timeout.rule, AtMost)
    assert policy.timeout.rule.seconds == 90.0
    assert compose(describe(policy)) == policy


def test_a_composed_policy_and_its_errors() -> None:
    text = HEAD + "space: {a: [1, 2]}\nprice: 1\npolicy: {name: mine, choose: [by-price]}\n"
    assert prepare(Job.parse(text)).policy.name == "mine"
    with pytest.raises(InputError, match=r"job.yaml:6: policy\.choose\.0"):
        prepare(Job.parse(text.replace("by-price", "by-prize")))


def test_a_stored_job_is_the_same_job(tmp_path: Path) -> None:
    job = Job.parse(HEAD + "space: {a: [1, 2]}\nprice: 1\nsecrets: [TOKEN]\n", tmp_path)
    again = Job.from_stored(job.stored())
    assert again.spec == job.spec
    assert again.folder == job.folder
    assert job.spec.secrets == {"TOKEN": "env:TOKEN"}


def test_secrets_are_read_and_hidden(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("file-secret\n")
    job = Job.parse(HEAD + "space: {a: [1]}\nprice: 1\nsecrets: {A: env:HERE, B: file:key}\n", tmp_path)
    found = secrets_of(job, {"HERE": "env-secret"})
    assert found == {"A": "env-secret", "B": "file-secret"}
    assert hidden("x env-secret y file-secret", found) == "x ••• y •••"
    assert not any(value in repr(job_command(job, found)) for value in found.values())
    with pytest.raises(InputError, match=r"secrets\.A: the variable HERE is not set"):
        secrets_of(job, {})


SPECIAL_CHARACTERS = ["a b", "it's", '"', ";", "$(reboot)", "`x`", "é", "\\", "*", "a\nb"]


@pytest.mark.parametrize("value", SPECIAL_CHARACTERS)
def test_command_lines_are_quoted(value: str) -> None:
    for run, shell in (
        ("['printf', '%s', '${a}']", "false"),
        ("'printf %s \"${a}\"'", "false"),
        ("'printf %s ${a}'", "true"),
    ):
        text = (
            HEAD.replace("'true'", run)
            + f"shell: {shell}\nspace:\n  a: {json.dumps([value, 'other'], ensure_ascii=False)}\nprice: 1\n"
        )
        job = Job.parse(text)
        prepare(job)
        line = command_line(job, {"a": value})
        assert subprocess.run(["sh", "-c", line], capture_output=True, check=True).stdout.decode() == value


@pytest.mark.parametrize("value", SPECIAL_CHARACTERS)
def test_the_environment_file_preserves_values(value: str) -> None:
    text = (
        HEAD + f"space:\n  a: {json.dumps([value, 'other'], ensure_ascii=False)}\nprice: 1\nenvs: {{WITH: 'x${{a}}'}}\n"
    )
    prepared = prepare(Job.parse(text))
    content = env_file(prepared, 0, "heading")
    script = content + '\nprintf "%s|%s" "$LYNCEUS_PARAM_A" "$WITH"'
    assert subprocess.run(["sh", "-c", script], capture_output=True, check=True).stdout.decode() == f"{value}|x{value}"


def test_the_best_configuration_for_other_tools() -> None:
    text = HEAD.replace("'true'", "[spark-submit, '--num=${executors}', job.py]") + (
        "space: {executors: [2, 4], executor_memory: [2g], instance_type: [m.large], num_nodes: [3], "
        "spark.locality.wait: [1s], other: [z]}\n"
        "price: 1\nsecrets: [TOKEN]\nsetup: pip install x\n"
    )
    prepared = prepare(Job.parse(text))
    task = yaml.safe_load(skypilot_task(prepared, 1, "why"))
    assert task["resources"] == {"instance_type": "m.large"}
    assert task["num_nodes"] == 3
    assert task["secrets"] == {"TOKEN": None}
    assert task["run"] == "spark-submit --num=4 job.py"
    assert task["envs"]["LYNCEUS_PARAM_EXECUTORS"] == "4"
    defaults = spark_defaults(prepared, 1, "why").splitlines()
    assert defaults == [
        "# why", "spark.executor.instances 4", "spark.executor.memory 2g", "# instance_type m.large", "# num_nodes 3",
        "spark.locality.wait 1s", "# other z",
    ]  # fmt: skip


def test_limits_reach_the_executor(tmp_path: Path) -> None:
    prepared = prepare(
        Job.parse(HEAD + "space: {a: [1, 2]}\nprice: 1\nresources: {cpus: a, memory: 512 MB}\n", tmp_path)
    )
    with executor_of(prepared, {}) as executor:
        resources = executor._resources(prepared.problem.space.row({"a": 2}))
    assert (resources.cpus, resources.memory_bytes) == (2.0, 512 << 20)


@given(st.floats(0.1, 1e6))
def test_memory_in_any_unit(amount: float) -> None:
    assert memory_gib(f"{amount:.6f} GB") == pytest.approx(float(f"{amount:.6f}"))
    assert memory_gib(f"{amount:.6f}MiB") == pytest.approx(float(f"{amount:.6f}") / 1024)


def test_the_template_is_valid() -> None:
    prepared = prepare(Job.parse(job_template(Answers())))
    assert len(prepared.problem.space) == 27


WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters=",", exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]),
    min_size=1,
    max_size=8,
)


@given(st.lists(WORDS, min_size=1, max_size=4, unique=True))
def test_the_template_keeps_any_values(values: list[str]) -> None:
    text = job_template(Answers(command="run ${p}", parameters={"p": ", ".join(values)}, price="0.1"))
    space = prepare(Job.parse(text)).problem.space
    written = [str(value) for value in space.parameters[0].values]
    if not any(value.replace("..", "-").replace("to", "-").strip("0123456789-") == "" for value in values):
        assert written == values


def test_the_published_schema_is_current() -> None:
    published = (ROOT / "docs" / "job.schema.json").read_text(encoding="utf-8")
    assert published == job_schema(), "regenerate it with: lynceus check --schema > docs/job.schema.json"


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*/job.yaml")), ids=lambda path: path.parent.name)
def test_the_examples_are_valid(path: Path) -> None:
    prepared = prepare(Job.read(path))
    assert prepared.problem.baseline is not None
    assert [note for note in prepared.notes if "prices of aws are" not in note] == []  # embedded prices are old
