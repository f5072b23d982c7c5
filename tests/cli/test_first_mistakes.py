"""Mistakes of a first job file that used to be found late, or were explained in words that did not help."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from cli_jobs import JOB

pytestmark = pytest.mark.usefixtures("here")


def test_a_price_over_a_parameter_that_does_not_exist_everywhere_says_where(lynceus, here: Path) -> None:
    job = JOB.replace("baseline: {threads: 4, level: 1}\n", "").replace(
        "level: [1, 2]}", "level: [1, 2], extra: {ordinal: [1, 2], when: threads > 1}}"
    )
    (here / "job.yaml").write_text(job.replace("36.0 * threads", "36.0 * extra"))
    code, _, err = lynceus("check", "job.yaml")
    assert (
        code,
        "where extra does not exist; give both cases, such as '0.1 * extra if threads > 1 else 0.1'" in err,
    ) == (
        2,
        True,
    ), err
    (here / "job.yaml").write_text(job.replace("36.0 * threads", "36.0 * extra if threads > 1 else 36.0"))
    assert lynceus("check", "job.yaml")[0] == 0


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            'constraints: ["runtime <= 1m", "quality >= 9"]',
            "constraints: runtime <= 1m",
            "expected a list: ['runtime <= 1m'].",
        ),
        ("grace: 100ms", "retries: 3", "trial.retries: got 3; expected a mapping of fields: infra, preempted, job."),
    ],
)
def test_what_should_be_a_list_or_a_mapping_is_written_out(
    lynceus, here: Path, before: str, after: str, said: str
) -> None:
    (here / "job.yaml").write_text(JOB.replace(before, after))
    code, _, err = lynceus("check", "job.yaml")
    assert (code, said in err) == (2, True), err


@pytest.mark.parametrize("command", ["check", "plan"])
def test_history_that_is_not_there_is_named(lynceus, here: Path, command: str) -> None:
    lynceus("run", "job.yaml", "-y")
    past = "history: [tou, toy, {file: nothere.csv}]\n"
    (here / "next.yaml").write_text(JOB.replace("name: toy", "name: next") + past)
    code, out, _ = lynceus(command, "next.yaml")
    said = " ".join(out.split())
    assert code == 0
    assert "history: there is no study 'tou' in the storage, so it will not be used. Did you mean 'toy'?" in said
    assert "history: there is no file 'nothere.csv'; it will not be used." in said
    assert said.count("history: ") == 2
    assert len(json.loads(lynceus(command, "next.yaml", "-o", "json")[1])["notes"]) == 2


def test_init_without_a_terminal_says_which_options_answer(lynceus, here: Path, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    code, _, err = lynceus("init", "new.yaml")
    assert (code, "init: nobody answers the questions; use a terminal, or add -y" in err) == (2, True), err
    code, _, err = lynceus("init", "new.yaml", "-y", "-p", "level=1..x")
    assert (code, "The parameter 'level' is '1..x'; write a range as '1..9'" in err) == (2, True), err
    assert not (here / "new.yaml").exists()


def test_adopt_takes_the_answer_of_the_study_of_a_job_file(lynceus, here: Path) -> None:
    code, _, err = lynceus("adopt", "nightly", "--from", "job.yaml")
    assert (code, "is not in sqlite" in err or "there is no such file" in err) == (2, True), err
    lynceus("run", "job.yaml", "-y")
    code, out, _ = lynceus("adopt", "nightly", "--from", "job.yaml")
    assert (code, "nightly: version 1 is in production" in out) == (0, True)
    code, _, err = lynceus("adopt", "other", "--from", "to")
    assert (code, "Did you mean 'toy'?" in err) == (2, True), err
    code, _, err = lynceus("adopt", "other", "--from", "nothere.yaml")
    assert (code, "nothere.yaml: there is no such file" in err) == (2, True), err


def test_an_executor_whose_package_is_missing_gets_a_note_before_the_run(lynceus, here: Path, monkeypatch) -> None:
    (here / "job.yaml").write_text(JOB + "executor: {kind: ray}\n")
    monkeypatch.setitem(sys.modules, "ray", None)
    out = " ".join(lynceus("check", "job.yaml")[1].split())
    assert "note: executor: Trials on Ray need an optional package: pip install" in out
    (here / "job.yaml").write_text(JOB)
    assert "optional package" not in lynceus("check", "job.yaml")[1]


@pytest.mark.parametrize("command", [("exec", "nightly"), ("record", "nightly", "--runtime", "3s"), ("best", "toy")])
def test_the_size_of_an_input_needs_its_unit_everywhere(lynceus, here: Path, command: tuple[str, ...]) -> None:
    (here / "job.yaml").write_text(JOB + "input: {size: 40 MB}\n")
    lynceus("run", "job.yaml", "-y")
    lynceus("adopt", "nightly", "--from", "job.yaml")
    code, _, err = lynceus(*command, "--input", "50")
    said = "size is '50', its unit is missing; write '50 MB', or '50 B' if it is bytes."
    assert (code, said in err, err.count("\n")) == (2, True, 1), err
    assert json.loads(lynceus("job", "nightly", "-o", "json")[1])["runs"] == []
    assert "unit" not in lynceus(*command, "--input", "50 MB")[2]


def test_a_number_without_a_unit_is_no_size_in_a_job_file(lynceus, here: Path) -> None:
    (here / "job.yaml").write_text(JOB + "input:\n  size: 50\n")
    code, _, err = lynceus("check", "job.yaml")
    line = len(JOB.splitlines()) + 2
    assert (code, f"job.yaml:{line}: input.size: size is '50', its unit is missing" in err) == (2, True), err
    assert err.endswith("See docs/input-size.md\n")
    (here / "job.yaml").write_text(JOB + "input: {size: 50000000}\n")
    assert lynceus("check", "job.yaml")[0] == 0


@pytest.mark.parametrize(
    ("run", "noted"),
    [
        ("[sleep, '1']", True),
        ("[sleep, '${threads}']", False),
        ("python3 -c 'import os; print(os.environ[\"LYNCEUS_PARAM_LEVEL\"])'", False),
        ("[sh, reads.sh]", False),
        ("[sh, ignores.sh]", True),
        ("|\n  sh ignores.sh", True),
    ],
)
def test_a_command_that_names_no_parameter_gets_a_note(lynceus, here: Path, run: str, noted: bool) -> None:
    (here / "reads.sh").write_text('sleep "$LYNCEUS_PARAM_THREADS"\n')
    (here / "ignores.sh").write_text("sleep 1\n")
    (here / "job.yaml").write_text(f"name: toy\nrun: {run}\n" + JOB[JOB.index("space:") :])
    for command in ("check", "plan"):
        code, out, err = lynceus(command, "job.yaml")
        assert code == 0, err
        said = "run: it names no parameter, so all configurations do the same" in " ".join(out.split())
        assert said is noted, out
