"""The progress of a study that grows: trials that were looked at once are not looked at again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lynceus.analysis.documents.study import study_document
from lynceus.analysis.progress import ProgressTrail, progress
from lynceus.problem.problem import Problem
from lynceus.server.study_cache import StudyCache
from lynceus.storage.sql.storage import Storage
from lynceus.trial.incumbents import incumbent
from sample_studies import large_study


def test_a_trail_tells_the_same_in_pieces(tmp_path: Path) -> None:
    one = large_study(tmp_path, "own", 200)
    problem, observations = one.study.problem, one.study.observations
    trail = ProgressTrail(problem)
    for end in (0, 1, 70, 70, 200):
        found = trail.after(observations[:end])
        assert list(found.points[:end]) == list(progress(problem, observations[:end]))
        assert found.best == incumbent(problem, observations[:end])


def test_one_more_trial_is_judged_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page asks for what is new after every trial: that must not judge thousands of trials again."""
    large_study(tmp_path, "own", 400).storage.close()
    with Storage(f"sqlite:///{tmp_path}/studies.db") as storage:
        cache = StudyCache(storage)
        assert study_document(cache.snapshot("own").context())["settled"] == 400
        writer = cache.writable("own").study
        trial = writer.ask()
        assert trial is not None
        writer.tell(trial, runtime=600.0, accuracy=0.9)
        calls: Counter[str] = Counter()
        judge = Problem.meets_constraints

        def counted(self: Problem, *given: Any) -> bool:
            calls["judged"] += 1
            return judge(self, *given)

        monkeypatch.setattr(Problem, "meets_constraints", counted)
        document = study_document(cache.snapshot("own").context(), 400)
    assert (document["settled"], len(document["trials"]["number"])) == (401, 1)
    assert calls["judged"] < 10
