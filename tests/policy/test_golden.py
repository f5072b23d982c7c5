"""Golden traces: the rows that two policies choose on a small job. A change of behaviour appears as a diff of a file.

After an intended change, rewrite the files and review the diff before you commit it:

    LYNCEUS_RENEW_GOLDEN=1 pytest tests/policy/test_golden.py
"""

import json
import os
from pathlib import Path

import pytest

from lynceus.models import _kernel
from lynceus.policy.presets import preset
from lynceus.problem.budget import Budget
from lynceus.testing.job import small_job
from simulated_search import explore

GOLDEN = Path(__file__).parents[1] / "golden"


def trace(policy: str, seed: int) -> list[dict[str, object]]:
    job = small_job("runtime <= 30m", "accuracy >= 0.87", budget=Budget(usd=5.0))
    search = explore(job, preset(policy), seed=seed)
    return [
        {
            "row": one.row,
            "params": dict(job.problem.space.point(one.row)),
            "end": str(one.outcome.end),
            "seconds": round(one.outcome.seconds, 3),
            "charged_usd": round(one.outcome.charged_usd, 6),
            "why": one.order.plan.why,
        }
        for one in search.observations
    ]


@pytest.mark.skipif(
    not _kernel.compiled, reason="the Python implementation is slow; other tests compare it with the kernel"
)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("policy", ["lynceus-2020", "bo"])
def test_the_trace_equals_the_recorded_one(policy: str, seed: int) -> None:
    path = GOLDEN / f"{policy}-{seed}.json"
    found = trace(policy, seed)
    if os.environ.get("LYNCEUS_RENEW_GOLDEN"):
        lines = ",\n".join("  " + json.dumps(step) for step in found)
        path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    recorded = json.loads(path.read_text(encoding="utf-8"))
    rows = [step["row"] for step in recorded]
    assert [step["row"] for step in found] == rows, (
        f"{policy} with seed {seed} chose other rows than {path.name}; if this is intended, rewrite the file as the docstring says"
    )
    assert found == recorded, f"same rows, other details than {path.name}; if this is intended, rewrite the file"
    assert len(rows) > 6
