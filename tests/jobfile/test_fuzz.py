"""Whatever a job file holds, reading it gives a study or one sentence, soon and in little memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzzing import JOB, demand_an_answer, jobs, read_job
from lynceus.errors import InputError
from lynceus.jobfile.job import Job

HEAD = "name: x\nrun: [a]\nbudget: 1\nprice: 1\n"
CASES = {
    "aliases": HEAD
    + "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c]\n",
    "an alias of itself": HEAD + "space: &a {n: *a}\n",
    "a long range": HEAD + "space: {n: {int: [1, 1000000000]}}\n",
    "a long product": HEAD + "space: {a: {int: [1, 9999]}, b: {int: [1, 9999]}, c: {int: [1, 9999]}}\n",
    "very many parameters": HEAD + "space: {" + ", ".join(f"p{n}: [1, 2]" for n in range(2000)) + "}\n",
    "very many values": HEAD + "space: {n: [" + ", ".join(map(str, range(100_000))) + "]}\n",
    "secrets that are lists": HEAD + "space: {n: [1]}\nsecrets: [[a], {b: c}]\n",
    "tiny steps": HEAD + "space: {n: {float: [0, 1], step: 1.0e-300}}\n",
    "long texts for every configuration": HEAD
    + "space: {n: {int: [1, 50000]}}\nderived: {t: \"str(n) + '"
    + "x" * 9000
    + "'\"}\n",
    "a power of powers": HEAD + "space: {n: [1, 2]}\nforbid: ['9 ** 9 ** 9 ** n > 1']\n",
    "a deep pattern": HEAD + f"space: {{n: [1]}}\nmetrics: {{m: '{'(' * 20000}'}}\n",
    "a pattern that repeats for ever": HEAD + "space: {n: [1]}\nmetrics: {m: '(a{9999999999})'}\n",
    "an unknown home": HEAD + "space: {n: [1]}\nworkdir: ~nobody-has-this-name/x\n",
    "a device as a table": HEAD + "space: {n: [1]}\nderived: {t: {join: n, table: /dev/zero}}\n",
    "a device as a catalog": HEAD.replace("price: 1\n", "")
    + "space: {instance_type: [a]}\nprices: {file: /dev/zero}\n",
    "a long script": HEAD.replace("[a]", "|\n" + "  echo ${thread} $x 'y\n" * 10000) + "space: {threads: [1]}\n",
}


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "long-enough")


def test_the_job_that_is_fuzzed_is_valid() -> None:
    read_job(str(JOB))


@pytest.mark.parametrize("case", CASES)
def test_a_hostile_job_file_is_answered(case: str) -> None:
    demand_an_answer(read_job, CASES[case])


@given(jobs())
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_any_job_file_is_answered(text: str) -> None:
    demand_an_answer(read_job, text)


@pytest.mark.slow
@given(jobs())
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))
def test_very_many_job_files_are_answered(text: str) -> None:
    demand_an_answer(read_job, text)


@given(data=st.binary(max_size=200))
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_any_bytes_in_a_file_are_answered(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / "bytes.yaml"
    file.write_bytes(data)
    with pytest.raises(InputError):
        Job.read(file)


def test_large_and_endless_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "huge.yaml").open("wb") as file:
        file.write(b"#" * (2 << 20))
        file.truncate(10 << 30)  # sparse: it takes no room
    for path, said in (
        ("pipe", "this is a pipe"),
        ("huge.yaml", "more than 1,048,576 bytes"),
        (".", "this is a folder"),
    ):
        with pytest.raises(InputError, match=said):
            Job.read(tmp_path / path)
    with pytest.raises(InputError, match="this is a pipe, a device"):
        Job.read("/dev/zero")
