"""`lynceus status` reads sums; they must tell what the trials tell, and load nothing that only policies need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lynceus.cli.glance import glance
from lynceus.cli.opened import create_or_open
from lynceus.history import End, Observation, Order, Outcome, Plan, Told
from lynceus.insight import steps

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
"""


@pytest.mark.parametrize("objective", ["cost", "time", "maximize quality"])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_incumbent_is_that_of_the_last_step(tmp_path: Path, objective: str, seed: int) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(JOB + f"objective: {objective}\n")
    one = create_or_open(str(file), f"sqlite:///{tmp_path}/studies.db")
    study, rng = one.study, np.random.default_rng(seed)
    while (order := study.order()) is not None:
        # Coarse times make equal values likely: then the first run stays the incumbent.
        seconds, end = 10.0 * float(rng.integers(1, 8)), End.CAPPED if rng.random() < 0.2 else End.FINISHED
        study.settle(order, Outcome(end, seconds, 0.01, {"quality": round(float(rng.random()), 1)}))
        last, facts = steps(study.problem, study.history)[-1], glance(one.storage, one.record)
        assert facts["best_trial"] == last.incumbent
        if last.incumbent is not None:
            row = next(seen.row for seen in study.history if seen.order.number == last.incumbent)
            assert (facts["best"], facts["best_params"]) == (last.best, study.problem.space.point(row))
        assert (facts["trials"], facts["spent_usd"]) == (len(study.history), pytest.approx(study.spent_usd))
    assert len(study.history) > 3
    one.storage.close()


def test_status_loads_no_policy_and_nothing_that_policies_compute_with(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    with create_or_open(str(tmp_path / "job.yaml"), f"sqlite:///{tmp_path}/lynceus.db").storage as storage:
        seen = Observation(Order(0, 0, 60.0, 0.1, Plan(0, why="…")), Outcome(End.FINISHED, 9.0, 0.1), Told(9.0))
        storage.ledger("toy").imported([seen], [{}])
    script = (
        "import sys, atexit; sys.argv = ['lynceus', 'status', '-o', 'json']\n"
        "heavy = ('scipy', 'sklearn', 'lynceus.policy', 'lynceus.situation', 'alembic', 'rich.console')\n"
        "atexit.register(lambda: print([name for name in heavy if name in sys.modules], file=sys.stderr))\n"
        "from lynceus.cli import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)[0]["trials"] == 1
    assert done.stderr.strip() == "[]"
