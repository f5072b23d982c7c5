"""Local runs for the tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_runs import Bench, MakeBench, problem_of, processes_below
from lynceus.executors.command import JobCommand


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[MakeBench]:
    made: list[Bench] = []

    def make(run: tuple[str, ...] | str, values: tuple[str, ...] = ("a", "b"), **options: object) -> Bench:
        resources = options.pop("resources", None)
        job = JobCommand(run, workdir=tmp_path, **options)  # type: ignore[arg-type]
        made.append(Bench(tmp_path / "runs", job, problem_of(values), resources))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.executor.close()
    assert processes_below(tmp_path) == set()
