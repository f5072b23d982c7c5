"""A job that replaces files of its run directory by something else ends like any other, and readers neither block nor follow."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_runs import Bench, eventually, problem_of
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import ResourceKind
from lynceus.trial.outcome import End

NAMES = ("outcome.json", "outcome.room", "alive", "cancel", "started.json", ".lynceus-run", "stderr")
KINDS = {"pipe": 'mkfifo "$f"', "link": 'ln -s /dev/zero "$f"', "folder": 'mkdir "$f"'}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    script = 'f="$(dirname "$LYNCEUS_RESULT")/$(echo "$word" | cut -d: -f1)"; rm -rf "$f"; ' + "; ".join(
        f'case "$word" in *:{kind}) {command};; esac' for kind, command in KINDS.items()
    )
    words = tuple(f"{name}:{kind}" for name in NAMES for kind in KINDS)
    made = Bench(tmp_path / "runs", JobCommand(script, workdir=tmp_path), problem_of(words))
    yield made
    made.executor.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_run_ends_whatever_has_the_name_of_its_files(bench: Bench, name: str, kind: str) -> None:
    words = list(bench.problem.space.columns["word"])
    outcome = bench.outcome(row=words.index(f"{name}:{kind}"), timeout_s=30.0)
    assert outcome.end in (End.FINISHED, End.FAILED)
    assert 0 < outcome.seconds < 30.0
    assert outcome.charged_usd > 0
    eventually(lambda: all(one.kind is ResourceKind.DIRECTORY for one in bench.executor.owned_resources()))
    for one in bench.executor.owned_resources():
        bench.executor.remove(one)
    assert not os.path.exists(bench.root / "study-id" / "0")
