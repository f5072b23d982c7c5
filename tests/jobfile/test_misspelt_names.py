"""Misspelt names: the error suggests the nearest known one; a name that may be intended only gets a note."""

from __future__ import annotations

import pytest

from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare

JOB = "version: 1\nname: words\nrun: [echo, '${n}']\nspace: {n: [1, 2]}\nprice: 1\nbudget: {cost: 1 USD}\n"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("constraints: [runtim <= 30s]", "Did you mean 'runtime'"),
        ("policy: lynceu", "Did you mean 'lynceus'"),
        ("policy: rondom", "Did you mean 'random'"),
        ("trial: {timeout: liner}", "Did you mean 'linear'"),
    ],
)
def test_errors_suggest_the_nearest_name(more: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        prepare(Job.parse(JOB + more))


@pytest.mark.parametrize(
    ("more", "hints"),
    [
        ("constraints: [runtim <= 30]", ["'runtime'"]),
        ("constraints: [acuracy >= 0.8]\nmetrics: {accuracy: 'a=(.*)'}", ["'accuracy'"]),
        ("objective: minimize duraton", ["'duration'"]),
        ("constraints: [throughput >= 3]", []),
        ("constraints: [timer <= 3]\nmetrics: {timer: 't=(.*)'}", []),
    ],
)
def test_an_undeclared_metric_that_looks_misspelt_gets_a_note(more: str, hints: list[str]) -> None:
    notes = prepare(Job.parse(JOB + more)).notes
    assert len(notes) == len(hints)
    assert all(f"Did you mean {hint}?" in note for note, hint in zip(notes, hints, strict=True))
