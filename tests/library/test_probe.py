"""Probes: small samples of a real job on this machine before its study begins."""

from __future__ import annotations

from pathlib import Path

import pytest

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from lynceus.library.open_study import create_or_open
from lynceus.policy.presets import preset
from lynceus.storage.sql.storage import Storage

SCRIPT = """\
import os, sys, time
share = float(os.environ["share"])
with open("ran.txt", "a") as log:
    log.write(f"{share}\\n")
if share > 0.5:
    sys.exit("a probe never runs more than a sample")
held = bytearray(int(400e6 * share))
held[::4096] = b"x" * len(held[::4096])
time.sleep(0.05)
"""
JOB = """\
name: sampled
run: python3 job.py
space: {memory_mb: [50, 100, 200, 400, 800], share: [0.5, 1.0]}
fraction: {column: share, answer: full}
price: 0.001 * memory_mb
constraints: ["runtime <= 10m"]
budget: {max_trials: 5}
probe: {shares: [0.4, 0.1, 0.2]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job.py").write_text(SCRIPT)
    return tmp_path


def open_job(folder: Path, text: str = JOB):
    return create_or_open(prepare(Job.parse(text, folder)), f"sqlite:///{folder}/lynceus.db")


def test_a_probe_runs_samples_and_its_need_is_history(folder: Path) -> None:
    one = open_job(folder)
    assert (folder / "ran.txt").read_text().split() == ["0.1", "0.2", "0.4"]
    (past,) = one.study.problem.history
    assert past.name == "the probe"
    assert one.study.policy.choose != preset("lynceus").choose  # it learns from history
    assert one.note is not None
    assert "probe: the whole input needs about 4" in one.note  # 400 MB, and what Python needs itself
    seconds = dict(zip(past.columns["memory_mb"], past.seconds, strict=False))
    assert seconds[50] > seconds[400] > seconds[800]
    assert one.study.spent_usd == 0
    assert not list(folder.glob(".lynceus/*probe*"))
    again = open_job(folder)
    assert (folder / "ran.txt").read_text().count("\n") == 3  # it is stored with the study
    assert len(again.study.problem.history) == 1
    with Storage(f"sqlite:///{folder}/lynceus.db") as storage:
        assert storage.load_study("sampled").document["history"][0]["name"] == "the probe"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("held = bytearray", "sys.exit('no such file')\nheld = bytearray", "of the input did not finish: "),
        ("400e6 * share", "80e6 - 100e6 * share", "does not grow in a straight line"),
    ],
)
def test_a_probe_that_tells_nothing_costs_nothing(folder: Path, before: str, after: str, said: str) -> None:
    (folder / "job.py").write_text(SCRIPT.replace(before, after))
    one = open_job(folder)
    assert one.note is not None
    assert said in one.note
    assert "it is not used" in one.note
    assert one.study.problem.history == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (JOB.replace("fraction: {column: share, answer: full}\n", ""), "no 'fraction' names the parameter"),
        (JOB.replace("[0.4, 0.1, 0.2]", "[0.1]"), "give 2 to 10 different shares"),
        (JOB.replace("[0.4, 0.1, 0.2]", "[0.1, 1.5]"), "1.5"),
    ],
)
def test_mistakes_are_one_sentence(folder: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        Job.parse(text, folder)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
