"""Names, values, folders and options that look like commands of sbatch or of a shell are only text."""

import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from lynceus.executors.command import JobCommand
from lynceus.executors.interface import Request
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.slurm.command import tool_environment
from lynceus.executors.slurm.executor import SlurmExecutor
from lynceus.executors.slurm.options import SlurmOptions
from lynceus.problem.budget import Budget
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical
from lynceus.space.table import Space
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.trial.outcome import End
from slurm_bench import SlurmBench

EVIL = "x\n#SBATCH --array=1-9\n#SBATCH --wrap=id\n$(touch pwned) `touch pwned` ; touch pwned | 日本 '\" \\ %j ${word} --wrap=id"


def test_hostile_text_is_not_interpreted(slurm: SlurmBench, tmp_path: Path) -> None:
    folder = tmp_path / "a folder\n#SBATCH --array=1-9\n'; touch pwned"
    folder.mkdir()
    space = Space.build([Categorical("word", (EVIL, "--wrap=id"))], price=3600.0)
    code = "import os, sys; open('seen', 'ab').write(os.fsencode(sys.argv[1]) + b'\\n--\\n')"
    job = JobCommand((sys.executable, "-c", code, "${word}"), workdir=folder, env={"ODD": EVIL})
    options = SlurmOptions.model_validate({"python": sys.executable, "poll": 0.2})
    context = ExecutorContext(Problem(space, budget=Budget(usd=100.0)), job, folder / "runs")
    executor, harness = SlurmExecutor(context, options), ExecutorHarness(lambda *_: executor, tmp_path)
    for row, word in enumerate((EVIL, "--wrap=id")):
        ticket = executor.launch(Request(EVIL, row, row, {"word": word}, 60.0, False, "0f"))
        (owned,) = [one for one in executor.owned_resources() if one.kind == "job" and one.number == row] or [None]
        assert owned is None or (owned.study, owned.number) == (EVIL, row)
        outcome = harness.wait(executor, ticket)
        assert outcome.end is End.FINISHED, outcome
    assert (folder / "seen").read_bytes() == b"".join(word.encode() + b"\n--\n" for word in (EVIL, "--wrap=id"))
    assert not list(tmp_path.rglob("pwned"))
    assert "_" not in slurm.command("squeue", "--noheader", "--states=all", "--format=%i"), "an array was submitted"
    executor.close()


@pytest.mark.parametrize(
    "word", ["--wrap=id", "--wra=id", "--arr=1-9", "-a1-9", "-o/etc/motd", "--outp=/etc/motd", "--", "-", "--=x", "-\n"]
)
def test_options_that_the_executor_sets_cannot_be_set_again(word: str) -> None:
    with pytest.raises(ValidationError, match=r"is set by Lynceus|expected an option in one piece"):
        SlurmOptions.model_validate({"extra": [word]})
    SlurmOptions.model_validate({"extra": ["--mail-type=FAIL", "--nice=5", "-q", "--wait-all-nodes=1", "--time-min=5"]})


def test_variables_of_sbatch_that_change_what_is_submitted_are_not_passed_on() -> None:
    given = {"SBATCH_ARRAY_INX": "1-9", "SBATCH_WAIT": "1", "SBATCH_EXPORT": "ALL", "SBATCH_ACCOUNT": "a"}
    assert tool_environment(given) == {"SBATCH_ACCOUNT": "a"}
