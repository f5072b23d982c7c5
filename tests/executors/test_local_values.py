"""What local jobs receive, and what is read from them."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from local_runs import Bench, MakeBench, problem_of, python
from lynceus.errors import InputError
from lynceus.executors.command import JobCommand
from lynceus.problem.objective import Objective
from lynceus.trial.outcome import End, FailureReason

ODD_VALUES = (
    "two words",
    "'single' \"double\"",
    "a; touch pwned",
    "$(touch pwned) `touch pwned`",
    "line\nbreak\ttab",
    "naïve – ünïcode ✓ 日本",
    "${word} $HOME %s \\n *",
    "--looks=like -an option",
    " leading and trailing ",
)


@pytest.mark.parametrize("row", range(len(ODD_VALUES)))
def test_jobs_receive_values_unchanged(bench: MakeBench, tmp_path: Path, row: int) -> None:
    code = (
        "import json, os, sys; seen = [sys.argv[1], os.environ['LYNCEUS_PARAM_WORD'], "
        "json.load(open(os.environ['LYNCEUS_PARAMS']))['word']]; open('seen', 'w').write(json.dumps(seen))"
    )
    assert bench((*python(code), "${word}"), ODD_VALUES).outcome(row).end is End.FINISHED
    assert json.loads((tmp_path / "seen").read_text()) == [ODD_VALUES[row]] * 3
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("row", range(len(ODD_VALUES)))
@pytest.mark.parametrize("shell", [True, False])
def test_scripts_receive_values_unchanged(bench: MakeBench, tmp_path: Path, row: int, shell: bool) -> None:
    script = "printf '%s' ${word} > seen" if shell else "printf '%s' \"$word\" > seen"
    assert bench(script, ODD_VALUES, shell=shell).outcome(row).end is End.FINISHED
    assert (tmp_path / "seen").read_bytes() == ODD_VALUES[row].encode()
    assert not (tmp_path / "pwned").exists()


def test_a_nul_byte_is_refused(bench: MakeBench) -> None:
    with pytest.raises(InputError, match="a character that cannot be stored"):
        bench(("echo", "${word}"), ("a\0b",)).launch()


def test_metrics_are_read_from_the_result_file_marked_lines_and_expressions(bench: MakeBench) -> None:
    script = """
    echo '{"accuracy": 0.5, "progress": 0.1}' >> "$LYNCEUS_RESULT"
    echo '{"accuracy": 0.9, "progress": 1}' >> "$LYNCEUS_RESULT"
    echo '::lynceus {"loss": 0.25}'
    echo 'epoch 1 f1=0.7' >&2; echo 'epoch 2 f1=0.8' >&2
    """
    outcome = bench(script, metrics={"f1": r"f1=([\d.]+)"}).outcome()
    assert outcome.metrics == {"accuracy": 0.9, "loss": 0.25, "f1": 0.8}
    assert [progress for _, progress in outcome.trace] == [0.1, 1.0]


def test_the_report_function(bench: MakeBench) -> None:
    code = "from lynceus.client.report import report; report(accuracy=0.75, progress=1)"
    outcome = bench((sys.executable, "-c", code)).outcome()
    assert (outcome.metrics, outcome.end) == ({"accuracy": 0.75}, End.FINISHED)


def test_invalid_reports_are_noted_but_not_fatal(bench: MakeBench) -> None:
    script = """
    printf '%s\n' '{"a": 1}' 'garbage' '[1]' '{"b": "x"}' '{"c": NaN}' '{"d": {}}' '{"e": 1e999}' '{"a": 2' > "$LYNCEUS_RESULT"
    head -c 300000 /dev/urandom >> "$LYNCEUS_RESULT"
    """
    outcome = bench(script).outcome()
    assert (outcome.end, outcome.metrics) == (End.FINISHED, {"a": 1.0})
    assert "one report was ignored (not a JSON object: garbage)" in outcome.detail


def test_a_job_that_does_not_report_its_objective_has_failed(tmp_path: Path) -> None:
    problem = replace(problem_of(), objective=Objective.parse("minimize loss"))
    bench = Bench(tmp_path / "runs", JobCommand("echo '::lynceus {\"lass\": 3}'", workdir=tmp_path), problem)
    outcome = bench.outcome()
    bench.executor.close()
    assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.JOB)
    assert outcome.detail.startswith("the job finished but did not report loss: call lynceus.report, or")


def test_the_beginning_and_the_end_of_long_output_are_kept(bench: MakeBench) -> None:
    one = bench(python("import sys\nfor i in range(20000): print(f'line {i:06}')"), output_bytes=10_000)
    assert one.outcome().end is End.FINISHED
    output = one.output()
    assert output.startswith(b"line 000000\n")
    assert output.endswith(b"line 019999\n")
    assert b"bytes left out" in output
    assert len(output) <= 10_050


@pytest.mark.parametrize(
    "script",
    ["printf 'boom \\000\\n' >&2; exit 3", "printf 'boom \\033[2J\\302\\205\\377\\n' >&2; exit 3"],
)
def test_odd_bytes_of_a_job_do_not_reach_the_outcome(bench: MakeBench, script: str) -> None:
    detail = bench(script).outcome().detail
    assert detail.startswith("exit code 3: boom")
    assert detail.isprintable()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"run": ()}, "there is no command"),
        ({"run": ("a",), "shell": True}, "needs a script, not a list"),
        ({"run": "x", "metrics": {"m": "(["}}, "is not a valid regular expression"),
        ({"run": "x", "metrics": {"m": "abc"}}, "has 0 groups"),
        ({"run": "x", "grace_s": -1.0}, "grace must not be negative"),
    ],
)
def test_invalid_commands_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        JobCommand(**options)  # type: ignore[arg-type]
