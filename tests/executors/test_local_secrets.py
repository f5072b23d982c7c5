"""Secrets of local jobs: masked wherever they appear."""

from pathlib import Path

from local_runs import MakeBench, contains, files_below
from lynceus.executors.supervisor import files


def test_secrets_are_masked_and_not_on_disk(bench: MakeBench, tmp_path: Path) -> None:
    secret = "hunter2-and-more"
    halves = 'printf "${TOKEN%and-more}"; sleep 0.1; echo "${TOKEN#hunter2-}"'
    one = bench(f'{halves}; echo "$TOKEN" >&2; exit 1', secrets={"TOKEN": secret})
    outcome = one.outcome()
    assert (one.output(), one.output("stderr")) == (b"***\n", b"***\n")
    assert outcome.detail == "exit code 1: ***"
    assert [path for path in files_below(tmp_path) if contains(path, secret)] == []


def test_secrets_are_masked_wherever_a_job_puts_them(bench: MakeBench, tmp_path: Path) -> None:
    secret = "correct horse\nbattery-staple"
    script = """
    printf '%s\n' "{\\"$(echo "$TOKEN" | tail -1)\\": 1}" "refused $TOKEN" > "$LYNCEUS_RESULT"
    echo "::lynceus {\\"x\\": \\"$(echo "$TOKEN" | head -1)\\"}"; echo "$TOKEN" | tail -1 >&2; exit 5
    """
    outcome = bench(script, secrets={"TOKEN": secret}).outcome()
    assert "exit code 5: ***" in outcome.detail
    assert list(outcome.metrics) == ["***"]
    words = ("correct horse", "battery-staple")
    kept = [path for path in files_below(tmp_path) if path.name != files.RESULT]
    assert [(path, word) for path in kept for word in words if contains(path, word)] == []
    assert [word for word in words if word in repr(outcome)] == []


def test_a_secret_in_a_command_that_cannot_be_started_is_masked(bench: MakeBench) -> None:
    outcome = bench(("/no/such/battery-staple",), secrets={"TOKEN": "battery-staple"}).outcome()
    assert outcome.detail == "'/no/such/***' cannot be started: No such file or directory"
