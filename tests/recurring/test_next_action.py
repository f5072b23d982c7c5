"""The decider: it acts on what changed, within its rules, and on nothing else."""

from __future__ import annotations

from lynceus.recurring.action import ActionKind
from lynceus.recurring.next_action import next_action
from recurring_jobs import adopted, noisy, now_s, problem, true_seconds, with_runs

QUIET = true_seconds({"vm": "small", "nodes": 4}, 100.0)


def test_noise_alone_changes_nothing() -> None:
    record = with_runs(adopted(), noisy(60, 0.05, 1, QUIET))
    assert next_action(problem(), record, now_s(record), 100.0).kind is ActionKind.KEEP


def test_a_price_change_needs_no_run() -> None:
    record = with_runs(adopted(), noisy(20, 0.03, 1, QUIET))
    action = next_action(problem({"large": 0.3}), record, now_s(record), 100.0)
    assert action.kind is ActionKind.REPRICE
    assert action.params is not None
    assert action.params["vm"] == "large"
    assert action.effect.saving_usd > 0
