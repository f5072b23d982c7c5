"""What `check` says about scratch directories, and about files that parallel trials share."""

from __future__ import annotations

from pathlib import Path

import pytest

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from lynceus.jobfile.written_files import written_files

SHELLS = ("sh", "bash")
JOB = "name: files\nspace: {threads: [1, 2], level: [3]}\nprice: 1\nbudget: 1\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("import os; print(os.environ['LYNCEUS_PARAM_LEVEL'])")
    (tmp_path / "out").symlink_to("/etc")
    return tmp_path


def notes(folder: Path, run: str, trial: str, more: str = "") -> list[str]:
    return list(prepare(Job.parse(f"{JOB}run: {run}\ntrial: {trial}\n{more}", folder)).notes)


@pytest.mark.parametrize(
    ("trial", "sentence"),
    [
        ("{scratch: dir}", "job.yaml:6: trial.scratch: got 'dir'; known are none, env, cwd."),
        ("{scratch: true}", "job.yaml:6: trial.scratch: got true; known are none, env, cwd."),
        ("{scratch: cwd, copy: train.py}", "job.yaml:6: trial.copy: got 'train.py'; expected a list: ['train.py']."),
        ("{scratch: cwd, copy: [7]}", "job.yaml:6: trial.copy.0: got 7; write a path or a pattern such as 'data/*.csv'."),
        ("{scratch: cwd, link: ['']}", "job.yaml:6: trial.link.0: got ''; write a path or a pattern"),
        ("{scratch: cwd, copy: [train.py, a/../../b]}", "job.yaml:6: trial.copy.1: got 'a/../../b'; files are brought in from"),
        ("{scratch: cwd, link: [/etc]}", "job.yaml:6: trial.link.0: got '/etc'; files are brought in from the working directory only"),
        ("{scratch: cwd, link: [~/data]}", "job.yaml:6: trial.link.0: got '~/data'; files are brought in from the working"),
        ("{scratch: cwd, copy: [nope.py]}", "job.yaml:6: trial.copy.0: nothing in "),
        ("{scratch: cwd, link: [out]}", "job.yaml:6: trial.link.0: 'out' leads out of "),
        ("{scratch: cwd, copy: ['out/*']}", "job.yaml:6: trial.copy.0: 'out/"),
        ("{copy: [train.py]}", "job.yaml:6: trial: 'copy' brings files into the directory that a trial is started in, which scratch: env"),
        ("{scratch: none, link: [train.py]}", "which scratch: none does not give it; add scratch: cwd."),
        ("{scratch: none, keep_scratch: true}", "job.yaml:6: trial: 'keep_scratch' keeps nothing with scratch: none"),
        ("{scratch: cwd, copi: [train.py]}", "job.yaml:6: trial.copi: there is no field 'copi'; did you mean 'copy'?"),
    ],
)  # fmt: skip
def test_a_bad_value_is_one_sentence_with_place_and_fix(folder: Path, trial: str, sentence: str) -> None:
    with pytest.raises(InputError) as raised:
        notes(folder, "[python3, train.py]", trial)
    assert sentence in str(raised.value)
    assert str(raised.value).count("\n") == 0


def test_directories_on_nodes_cannot_be_kept(folder: Path) -> None:
    with pytest.raises(InputError, match=r"job.yaml:6: trial.keep_scratch: the nodes of ray are left clean"):
        notes(folder, "[python3, train.py]", "{keep_scratch: true}", "executor: ray")


def test_setup_may_create_what_is_brought_in(folder: Path) -> None:
    (note,) = notes(
        folder, "[python3, train.py]", "{scratch: cwd, copy: [train.py], link: [model]}", "setup: make model"
    )
    assert "matches 'model'; setup has to create it." in note


def test_files_that_the_command_names_have_to_be_brought_in(folder: Path) -> None:
    for run in ("[python3, ./train.py]", "'python3 train.py --level=$level'"):
        (note,) = notes(folder, run, "{scratch: cwd}")
        assert "train.py is in the working directory" in note
        assert notes(folder, run, "{scratch: cwd, copy: ['*.py']}") == []


def test_parallel_trials_are_warned_of_shared_files(folder: Path) -> None:
    writes, plain = "'gzip -$level -c data > out.gz'", "[python3, train.py]"
    assert notes(folder, writes, "{parallel: 1}") == []
    (warned,) = notes(folder, writes, "{parallel: 2}")
    assert "2 trials at a time would all write out.gz" in warned
    (warned,) = notes(folder, writes, "{parallel: 2, scratch: none}")
    assert "out.gz" in warned
    assert notes(folder, writes, "{parallel: 2, scratch: cwd}") == []
    (warned,) = notes(folder, "'sort --parallel=$threads data > /tmp/sorted'", "{parallel: 2, scratch: cwd}")
    assert "/tmp/sorted" in warned
    (advice,) = notes(folder, plain, "{parallel: 2}")
    assert "with trial.scratch: cwd" in advice
    assert notes(folder, plain, "{parallel: 2, scratch: env}") == []
    assert notes(folder, """'sort --parallel=$threads data > "$LYNCEUS_SCRATCH/x"'""", "{parallel: 2}") == []


@pytest.mark.parametrize(
    ("run", "files"),
    [
        ("a > out.txt", ["out.txt"]),
        ("a >out.txt 2> err.txt", ["out.txt", "err.txt"]),
        ("a | b >| 'my file'", ["my file"]),
        ("a &> all.log && b | tee copy.log", ["all.log", "copy.log"]),
        ("if a; then b > x.bin; fi\nc \\\n  > y.bin", ["x.bin", "y.bin"]),
        ("cc -o prog main.c; sort -o sorted data", ["prog", "sorted"]),
        ("train --output=model.bin --out report.html", ["model.bin", "report.html"]),
        (["train", "-o", "model"], ["model"]),
        (["bash", "-c", "train > out.txt"], ["out.txt"]),
        (["env", "bash", "-o", "pipefail", "-ec", "a | b > out.txt"], ["out.txt"]),
        ("cat > conf.ini <<EOF\nlevel > 3\nEOF\na", ["conf.ini"]),
        ("#!/bin/bash\na > out.txt", ["out.txt"]),
        ("cd build\na > out.txt", ["out.txt"]),
        ("cd \"$LYNCEUS_SCRATCH\"; a > out.txt; b > /tmp/shared", ["/tmp/shared"]),
    ],
)  # fmt: skip
def test_fixed_names_are_found(run: str | list[str], files: list[str]) -> None:
    assert written_files(run, SHELLS) == files


@pytest.mark.parametrize(
    "run",
    [
        "a > /dev/null 2>&1",
        "a 2>&1 | b >&2",
        "a >> log.txt | tee -a log.txt",
        'a > "$LYNCEUS_SCRATCH/x" > out-$level.txt > ${threads}.txt > "$(mktemp)" > `mktemp`',
        "awk '$1 > 3' data; python3 -c 'print(1 > 0)'; echo \"a > b\"; echo a \\> b",
        "# a > b\na # > c",
        "[ 2 -gt 1 ] -o x; [[ a > b ]]; (( 2 > 1 )); test a -o b",
        "set -o pipefail; grep -o a.b data; ssh -o Ciphers=x host; ps -o pid; find . -name a.b -o -name c.d",
        "tool -o json | other --output yaml --out=-",
        "a > >(cat); diff <(a) <(b)",
        "cat <<'EOF'\na > b\nEOF\n",
        "#!/usr/bin/env python3\nx = 2 > y",
        'cd "$LYNCEUS_SCRATCH" && a > out.txt',
        ["train", "--output", "${threads}.bin", "-o"],
        ["sh", "-c", 'train > "$LYNCEUS_SCRATCH/out"', ">", "x"],
        ["cmp", ">", "x"],
    ],
)  # fmt: skip
def test_there_are_no_false_alarms(run: str | list[str]) -> None:
    assert written_files(run, SHELLS) == []
