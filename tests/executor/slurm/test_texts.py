"""What is sent to Slurm, word for word."""

import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from lynceus.errors import InputError
from lynceus.executor.shape import Shape
from lynceus.executor.slurm.options import SlurmOptions, check_options, chosen
from lynceus.executor.slurm.text import batch_script, belonging, comment, sbatch_arguments
from lynceus.space import Categorical, Integer, Space

REQUEST = {"study": "night ly/é", "identity": "0f", "number": 7, "run": "abc", "cap_s": 90.0, "grace_s": 5.0}


def options(**given: object) -> SlurmOptions:
    return SlurmOptions.model_validate(given)


def test_the_configuration_chooses() -> None:
    asked = options(
        partition="${p}", nodes="${n}", memory="${mem} GB", constraint="${vm}&ib", exclusive=True, extra=["--nice=5"]
    )
    values = {"p": "gpu", "n": 4, "mem": 3.5, "vm": "m5.large"}
    assert sbatch_arguments(asked, values, Shape(2.5, 8 << 30), REQUEST) == [
        "--parsable",
        "--no-requeue",
        "--job-name=lynceus-night_ly__-7-abc",
        "--comment=lynceus/night%20ly%2F%C3%A9/0f/7/abc",
        "--export=ALL",
        "--chdir=/",
        "--input=/dev/null",
        "--output=/dev/null",
        "--error=/dev/null",
        "--cpus-per-task=3",
        "--mem=3584M",
        "--partition=gpu",
        "--constraint=m5.large&ib",
        "--nodes=4",
        "--exclusive",
        "--time=3",
        "--nice=5",
    ]


def test_without_a_cap_there_is_no_limit() -> None:
    found = sbatch_arguments(options(), {}, Shape(memory_bytes=3 << 30), {**REQUEST, "cap_s": None})
    assert not [word for word in found if word.startswith("--time")]
    assert "--mem=3072M" in found


def test_machines_of_a_catalog_are_asked_for_by_number_and_processors() -> None:
    values = {"instance_type": "m6.large", "num_nodes": 3, "vcpus": 2.0, "memory_gib": 8.0}
    found = sbatch_arguments(options(constraint="${instance_type}"), values, Shape(6.0, 24 << 30), REQUEST)
    assert [word for word in found if word.startswith(("--nodes", "--cpus", "--mem", "--constraint"))] == [
        "--nodes=3",
        "--cpus-per-task=2",
        "--constraint=m6.large",
    ]
    found = sbatch_arguments(options(tasks_per_node=2, nodes=1), values, Shape(6.0, 24 << 30), REQUEST)
    assert [word for word in found if word.startswith(("--nodes", "--cpus", "--ntasks"))] == [
        "--nodes=1",
        "--ntasks-per-node=2",
    ]


def test_an_inactive_parameter_asks_for_nothing() -> None:
    assert chosen(options(gpus="${gpus}", nodes=2), {"gpus": None}) == {"nodes": "2"}


def test_a_comment_names_its_run_again() -> None:
    found = belonging(comment(REQUEST), "12", "PENDING")
    assert found is not None
    assert (found.kind, found.name, found.study, found.identity, found.number) == ("job", "12", "night ly/é", "0f", 7)


@pytest.mark.parametrize("text", ["", "(null)", "lynceus", "lynceus/a/b/c/d", "other/a/b/1/d", "lynceus/a/b/1/d/e"])
def test_a_comment_of_somebody_else_is_none_of_ours(text: str) -> None:
    assert belonging(text, "1", "RUNNING") is None


def test_odd_folders_are_quoted(tmp_path: Path) -> None:
    folder = tmp_path / "it's a $(touch pwned) folder; `id`"
    folder.mkdir()
    (folder / "request.json").touch()
    runner = folder / "runner.pyz"
    runner.write_text("import sys; print(sys.argv)")
    script = batch_script("python3", str(runner), str(folder))
    done = subprocess.run(["sh"], input=script, text=True, capture_output=True, cwd=tmp_path, check=True)
    assert done.stdout == f"{[str(runner), 'run', str(folder), f'{folder}/environment.json']}\n"
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"nodes": "${nods}"}, r"nodes: \$\{nods\} names no column of the space. Did you mean 'nodes'\?"),
        ({"nodes": "${vm}"}, "nodes: 'a' came, but a whole number from 1 on is needed."),
        ({"cpus": 0.5}, "cpus: '0.5' came, but a whole number from 1 on is needed."),
        ({"memory": "lots"}, "memory: 'lots' came, but an amount such as 4 GB is needed."),
        ({"extra": ["--mail-user=${who}"]}, r"extra: \$\{who\} names no column"),
    ],
)
def test_options_that_do_not_fit_the_space(given: dict[str, object], words: str) -> None:
    space = Space.build([Integer("nodes", 1, 3), Categorical("vm", ("a", "b"))], price=1.0)
    with pytest.raises(InputError, match=words):
        check_options(options(**given), space)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"extra": ["--time=5"]}, "--time is set by Lynceus itself: remove it."),
        ({"extra": ["--mail-user", "x"]}, "'x' is no argument of its own"),
        ({"poll": 0}, "the controller cannot be asked all the time"),
        ({"partitoin": "a"}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_nobody_can_mean(given: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        options(**given)
