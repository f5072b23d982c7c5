"""`lynceus status` computes from sums of the database: they agree with the trials, and load nothing that only policies need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lynceus.analysis.documents.json import to_json
from lynceus.analysis.overview import overview
from lynceus.analysis.progress import progress
from lynceus.jobfile.prepared_study import prepare_file
from lynceus.library.open_study import OpenStudy, create_or_open
from lynceus.library.overview import stored_overview
from lynceus.library.study_context import study_context
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, FailureReason, Observation, Outcome, TrainingTarget

JOB = """\
name: toy
run: "true"
space: {threads: [1, 2, 4], level: [1, 2, 3, 4, 5]}
price: 3.6 * threads
metrics: {quality: 'quality: (.*)'}
constraints: ["runtime <= 1m", "quality >= 0.3"]
budget: {cost: 100 USD}
policy: sweep
trial: {timeout: none}
baseline: {threads: 4, level: 1}
"""


def opened(folder: Path, more: str = "") -> OpenStudy:
    file = folder / "job.yaml"
    file.write_text(JOB + more)
    return create_or_open(prepare_file(file), f"sqlite:///{folder}/studies.db")


@pytest.mark.parametrize("objective", ["cost", "time", "maximize quality"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_overview_of_the_database_is_that_of_the_trials(tmp_path: Path, objective: str, seed: int) -> None:
    """Also when configurations are run again, and some of these runs are stopped or fail."""
    one = opened(tmp_path, f"objective: {objective}\n")
    study, rng = one.study, np.random.default_rng(seed)
    rows, best_trials = len(study.problem.space), set()
    for number in range(3 * rows):
        # Coarse times make equal values likely: then the first run stays the incumbent.
        seconds = 10.0 * float(rng.integers(1, 8))
        end = [End.TIMEOUT, End.FAILED, End.FINISHED][min(int(rng.integers(8)), 2)]
        order = Order(number, int(rng.integers(rows)), 60.0, 0.1, Plan(0, why="a test"))
        reason = FailureReason.JOB if end is End.FAILED else None
        outcome = Outcome(end, seconds, 0.01, {"quality": round(float(rng.random()), 1)}, reason=reason)
        study.journal.ordered(order, {})
        study.runs.settle(order, outcome)
        found, wanted = stored_overview(one.storage, one.storage.load_study("toy"), ()), overview(study_context(one))
        assert to_json(found) | {"worker_seen_s": None, "spent_usd": None} == to_json(wanted) | {
            "worker_seen_s": None,
            "spent_usd": None,
        }
        assert found.spent_usd == pytest.approx(study.spent_usd)
        last = progress(study.problem, study.observations)[-1]
        assert found.best_trial == last.best_trial
        best_trials.add(last.best_trial)
    assert len(best_trials) > 2
    one.storage.close()


def test_status_loads_no_policy_and_nothing_that_policies_compute_with(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    with create_or_open(prepare_file(tmp_path / "job.yaml"), f"sqlite:///{tmp_path}/lynceus.db").storage as storage:
        seen = Observation(
            Order(0, 0, 60.0, 0.1, Plan(0, why="…")), Outcome(End.FINISHED, 9.0, 0.1), TrainingTarget(9.0)
        )
        storage.journal("toy").imported([seen], [{}])
    script = (
        "import sys, atexit; sys.argv = ['lynceus', 'status', '-o', 'json']\n"
        "heavy = ('scipy', 'sklearn', 'lynceus.policy', 'lynceus.models.state', 'alembic', 'rich.console')\n"
        "atexit.register(lambda: print([name for name in heavy if name in sys.modules], file=sys.stderr))\n"
        "from lynceus.cli import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)[0]["trials"] == 1
    assert done.stderr.strip() == "[]"
