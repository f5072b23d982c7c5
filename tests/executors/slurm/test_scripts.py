"""The options, arguments and scripts that are sent to Slurm."""

import subprocess
from pathlib import Path

import pytest
from pydantic import ValidationError

from lynceus.errors import InputError
from lynceus.executors.resources import Resources
from lynceus.executors.slurm.options import SlurmOptions, check_options, requested
from lynceus.executors.slurm.scripts import batch_script, comment, owned_job, sbatch_arguments
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space

REQUEST = {"study": "night ly/é", "identity": "0f", "number": 7, "run": "abc", "cap_s": 90.0, "grace_s": 5.0}


def options(**given: object) -> SlurmOptions:
    return SlurmOptions.model_validate(given)


def test_options_depend_on_the_configuration() -> None:
    asked = options(
        partition="${p}", nodes="${n}", memory="${mem} GB", constraint="${vm}&ib", exclusive=True, extra=["--nice=5"]
    )
    values = {"p": "gpu", "n": 4, "mem": 3.5, "vm": "m5.large"}
    assert sbatch_arguments(asked, values, Resources(2.5, 8 << 30), REQUEST) == [
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


def test_without_a_timeout_there_is_no_time_limit() -> None:
    found = sbatch_arguments(options(), {}, Resources(memory_bytes=3 << 30), {**REQUEST, "cap_s": None})
    assert not [word for word in found if word.startswith("--time")]
    assert "--mem=3072M" in found


def test_machines_of_a_catalog_become_nodes_and_cpus() -> None:
    values = {"instance_type": "m6.large", "num_nodes": 3, "vcpus": 2.0, "memory_gib": 8.0}
    found = sbatch_arguments(options(constraint="${instance_type}"), values, Resources(6.0, 24 << 30), REQUEST)
    assert [word for word in found if word.startswith(("--nodes", "--cpus", "--mem", "--constraint"))] == [
        "--nodes=3",
        "--cpus-per-task=2",
        "--constraint=m6.large",
    ]
    found = sbatch_arguments(options(tasks_per_node=2, nodes=1), values, Resources(6.0, 24 << 30), REQUEST)
    assert [word for word in found if word.startswith(("--nodes", "--cpus", "--ntasks"))] == [
        "--nodes=1",
        "--ntasks-per-node=2",
    ]


def test_an_inactive_parameter_sets_no_option() -> None:
    assert requested(options(gpus="${gpus}", nodes=2), {"gpus": None}) == {"nodes": "2"}


def test_a_comment_identifies_its_run() -> None:
    found = owned_job(comment(REQUEST), "12", "PENDING")
    assert found is not None
    assert (found.kind, found.name, found.study, found.identity, found.number) == ("job", "12", "night ly/é", "0f", 7)


@pytest.mark.parametrize("text", ["", "(null)", "lynceus", "lynceus/a/b/c/d", "other/a/b/1/d", "lynceus/a/b/1/d/e"])
def test_other_comments_are_ignored(text: str) -> None:
    assert owned_job(text, "1", "RUNNING") is None


def test_special_characters_in_folders_are_quoted(tmp_path: Path) -> None:
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
    ("given", "message"),
    [
        ({"nodes": "${nods}"}, r"nodes: \$\{nods\} is not a column of the space. Did you mean 'nodes'\?"),
        ({"nodes": "${vm}"}, "nodes: got 'a'; expected a whole number of at least 1."),
        ({"cpus": 0.5}, "cpus: got '0.5'; expected a whole number of at least 1."),
        ({"memory": "lots"}, "memory: got 'lots'; expected an amount such as 4 GB."),
        ({"extra": ["--mail-user=${who}"]}, r"extra: \$\{who\} is not a column"),
    ],
)
def test_options_that_do_not_fit_the_space(given: dict[str, object], message: str) -> None:
    space = Space.build([Integer("nodes", 1, 3), Categorical("vm", ("a", "b"))], price=1.0)
    with pytest.raises(InputError, match=message):
        check_options(options(**given), space)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"extra": ["--time=5"]}, "--time is set by Lynceus: remove it."),
        ({"extra": ["--mail-user", "x"]}, "got 'x'; expected an option in one piece"),
        ({"poll": 0}, "give a duration above 0"),
        ({"partitoin": "a"}, "Extra inputs are not permitted"),
    ],
)
def test_invalid_options(given: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        options(**given)
