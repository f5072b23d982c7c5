"""The decider: it acts on what changed, within its rules, and on nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lynceus.problem.objective import Constraint
from lynceus.recurring.action import Action, ActionKind
from lynceus.recurring.canary_rules import allowance_left
from lynceus.recurring.next_action import next_action
from lynceus.recurring.record import Change, JobRecord, OpenCanary, Version
from lynceus.recurring.settings import Mode
from lynceus.recurring.watch import watch
from lynceus.trial.outcome import End, FailureReason
from recurring_jobs import DAY_S, START_S, adopted, noisy, now_s, problem, true_seconds, with_run, with_runs

ADOPTED = {"vm": "small", "nodes": 4}
QUIET = true_seconds(ADOPTED, 100.0)


def grown(**settings: Any) -> JobRecord:
    """A job whose input has doubled: soon it is too late for the adopted configuration."""
    sizes = np.concatenate([np.full(10, 100.0), np.linspace(100.0, 175.0, 30)])
    rng = np.random.default_rng(3)
    times = [true_seconds(ADOPTED, size) * math.exp(0.03 * rng.standard_normal()) for size in sizes]
    return with_runs(adopted(**{"deadline_s": 680.0, **settings}), times, sizes)


def tried(record: JobRecord, action: Action, seconds: float, **run: Any) -> JobRecord:
    """The record after the canary that an action asked for."""
    assert action.params is not None
    number = record.versions[-1].number + 1
    version = Version(number, action.params, now_s(record), source="canary", basis=action.basis)
    record = replace(record, versions=(*record.versions, version))
    return with_run(record, seconds, 178.0, version=number, canary=True, instead_usd=action.instead_usd, **run)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    variation=st.sampled_from([0.0, 0.02, 0.05, 0.1]),
    runs=st.integers(0, 60),
    failures=st.lists(st.integers(0, 59), max_size=6),
)
def test_noise_and_failures_of_the_infrastructure_change_nothing(
    seed: int, variation: float, runs: int, failures: list[int]
) -> None:
    record = adopted()
    for place, seconds in enumerate(noisy(runs, variation, seed, QUIET)):
        if place in failures:
            reason = (FailureReason.INFRA, FailureReason.PREEMPTED)[place % 2]
            record = with_run(record, float(seconds) / 3, end=End.FAILED, reason=reason)
        record = with_run(record, float(seconds))
    assert next_action(problem(), record, now_s(record), 100.0).kind is ActionKind.KEEP


@pytest.mark.parametrize("runs", [12, 25, 60])
def test_an_estimate_that_no_late_run_bears_out_changes_nothing(runs: int) -> None:
    record = with_runs(adopted(deadline_s=1.02 * QUIET, late_chance=0.02), noisy(runs, 0.003, 1, QUIET))
    seen = watch(record, 100.0)
    assert [one.kind for one in seen.findings] == ["late"]  # the message is sent all the same
    assert (seen.late_chance or 0) > 3 * 0.02
    assert next_action(problem(), record, now_s(record), 100.0).kind is ActionKind.KEEP
    for _ in range(2):
        record = with_run(record, 1.03 * QUIET)
    assert next_action(problem(), record, now_s(record), 100.0).kind is ActionKind.CANARY


@pytest.mark.parametrize("seed", range(4))
def test_inputs_that_vary_are_no_reason_to_look_again(seed: int) -> None:
    sizes = 100.0 * noisy(40, 0.1, seed, 1.0)
    times = [true_seconds(ADOPTED, size) for size in sizes]
    for count in range(2, 40, 3):
        record = with_runs(adopted(size=112.0), times[:count], sizes)
        action = next_action(problem(), record, now_s(record), float(sizes[count]))
        assert action.reason == "nothing has changed since the configuration was chosen"
    record = with_runs(with_runs(adopted(size=112.0), times, sizes), [true_seconds(ADOPTED, 200.0)] * 4, [200.0] * 4)
    assert next_action(problem(), record, now_s(record), 200.0).reason.startswith("inputs are")


def test_it_is_pure() -> None:
    record = grown()
    first, second = (next_action(problem(), record, now_s(record), 178.0) for _ in range(2))
    assert first.kind is ActionKind.CANARY
    assert (first.kind, first.params, first.timeout_s, first.reason) == (
        second.kind, second.params, second.timeout_s, second.reason,
    )  # fmt: skip


def test_before_a_larger_input_is_late_a_faster_configuration_is_tried() -> None:
    action = next_action(problem(), grown(), now_s(grown()), 178.0)
    assert action.kind is ActionKind.CANARY
    assert action.effect.late_chance < action.effect.late_chance_before
    assert action.timeout_s <= 680.0


def test_a_canary_that_is_on_time_is_adopted() -> None:
    record = grown()
    action = next_action(problem(), record, now_s(record), 178.0)
    assert action.params is not None
    record = tried(record, action, true_seconds(action.params, 178.0))
    decided = next_action(problem(), record, now_s(record), 179.0)
    assert decided.kind is ActionKind.ADOPT
    assert decided.version == record.versions[-1].number


@pytest.mark.parametrize(
    "ended",
    [
        {"end": End.TIMEOUT},
        {"end": End.FAILED, "reason": FailureReason.OOM},
        {"end": End.FAILED, "reason": FailureReason.JOB},
    ],
)
def test_a_canary_that_failed_is_given_up_and_not_tried_again(ended: dict[str, Any]) -> None:
    record = grown()
    action = next_action(problem(), record, now_s(record), 178.0)
    assert action.params is not None
    record = tried(record, action, 500.0, **ended)
    decided = next_action(problem(), record, now_s(record), 178.0)
    assert (decided.kind, decided.version) == (ActionKind.RETURN, 1)
    change = Change(now_s(record), "return", 1, len(record.runs), evidence=decided.evidence)
    again = next_action(problem(), replace(record, changes=(change,)), now_s(record), 178.0)
    assert again.params != action.params


def test_a_canary_that_the_infrastructure_ended_may_run_again() -> None:
    record = grown()
    action = next_action(problem(), record, now_s(record), 178.0)
    record = tried(record, action, 100.0, end=End.FAILED, reason=FailureReason.INFRA)
    again = next_action(problem(), record, now_s(record), 178.0)
    assert (again.kind, again.params) == (ActionKind.CANARY, action.params)


def test_a_late_run_soon_after_an_adoption_brings_the_last_good_version_back() -> None:
    record = with_runs(adopted(deadline_s=2 * QUIET), noisy(20, 0.03, 1, QUIET))
    version = Version(2, {"vm": "large", "nodes": 1}, now_s(record), source="canary", adopted_s=now_s(record))
    change = Change(now_s(record), "adopt", 2, len(record.runs))
    record = replace(record, versions=(*record.versions, version), current=2, changes=(change,))
    record = with_run(record, 2.5 * QUIET, ended_s=now_s(record) + 60.0)
    action = next_action(problem(), record, now_s(record) + DAY_S, 100.0)
    assert (action.kind, action.version) == (ActionKind.RETURN, 1)


@pytest.mark.parametrize(
    ("settings_given", "kind"),
    [
        ({"mode": Mode.OBSERVE}, ActionKind.KEEP),
        ({"held": True}, ActionKind.KEEP),
        ({"mode": Mode.SUGGEST}, ActionKind.SUGGEST),
        ({"exclude": ("mon-sun",)}, ActionKind.KEEP),
        ({"allowance_usd": 0.0}, ActionKind.KEEP),
    ],
)
def test_what_the_user_does_not_allow_is_not_done(settings_given: dict[str, Any], kind: ActionKind) -> None:
    record = grown(**settings_given)
    assert next_action(problem(), record, now_s(record), 178.0).kind is kind


def test_a_suggestion_says_what_it_would_do_and_what_that_brings() -> None:
    record = grown(mode=Mode.SUGGEST)
    action = next_action(problem(), record, now_s(record), 178.0)
    assert action.evidence["would"] == "canary"
    assert action.effect.record()["late_chance"] is not None
    assert "deadline" in action.reason


def test_only_one_canary_at_a_time() -> None:
    record = replace(grown(), open_canary=OpenCanary(1, "other", START_S))
    assert next_action(problem(), record, now_s(record), 178.0).kind is ActionKind.KEEP


def test_a_price_change_needs_no_run() -> None:
    record = with_runs(adopted(), noisy(20, 0.03, 1, QUIET))
    action = next_action(problem({"large": 0.3}), record, now_s(record), 100.0)
    assert action.kind is ActionKind.REPRICE
    assert action.params is not None
    assert action.params["vm"] == "large"
    assert action.effect.saving_usd > 0


@pytest.mark.parametrize(("accuracy", "tried"), [(0.95, True), (0.8, False), (None, False)])
def test_only_what_kept_the_limits_on_metrics_in_a_search_is_tried(accuracy: float | None, tried: bool) -> None:
    """Production runs report no metrics, so they cannot tell that another configuration breaks a limit."""
    record = grown()
    trials = tuple(
        replace(one, metrics={} if accuracy is None else {"accuracy": accuracy}) if dict(one.params) != ADOPTED else one
        for one in record.trials
    )
    limited = problem().with_constraints([Constraint.parse("accuracy >= 0.9")])
    action = next_action(limited, replace(record, trials=trials), now_s(record), 178.0)
    assert (action.kind is ActionKind.CANARY) is tried


def test_nothing_known_raises_nothing() -> None:
    empty = replace(adopted(), trials=())
    failed = with_run(
        with_run(empty, 10.0, end=End.FAILED, reason=FailureReason.OOM), 10.0, end=End.FAILED, reason=FailureReason.OOM
    )
    for record in (empty, failed, replace(failed, current=None)):
        assert next_action(problem(), record, now_s(record), 100.0).kind in (
            ActionKind.KEEP,
            ActionKind.RETUNE,
            ActionKind.CANARY,
        )


@settings(max_examples=30, deadline=None)
@given(
    size=st.floats(100.0, 260.0),
    deadline_s=st.floats(330.0, 1500.0),
    allowance_usd=st.floats(0.0, 1.0),
    spent_usd=st.floats(0.0, 1.0),
    large=st.floats(0.2, 3.0),
    hour=st.integers(0, 23),
)
def test_a_canary_never_breaks_its_rules(
    size: float, deadline_s: float, allowance_usd: float, spent_usd: float, large: float, hour: int
) -> None:
    sizes = np.linspace(100.0, size, 30)
    record = adopted(deadline_s=deadline_s, allowance_usd=allowance_usd, exclude=("08:00-18:00",))
    record = with_runs(record, [true_seconds(ADOPTED, one) for one in sizes], sizes)
    moment = math.floor(now_s(record) / DAY_S) * DAY_S + hour * 3600.0
    change = Change(moment - 60.0, "retune", None, 0, cost_usd=spent_usd)
    record = replace(record, changes=(change,))
    action = next_action(problem({"large": large}), record, moment, size)
    if action.kind is ActionKind.CANARY:
        assert not 8 <= hour < 18
        assert action.reserved_usd <= allowance_left(record, moment) + 1e-9
        assert action.timeout_s <= deadline_s
        assert action.params != ADOPTED
    if action.kind is ActionKind.RETUNE:
        assert action.budget_usd <= allowance_left(record, moment)


def test_what_a_search_gives_back_belongs_to_the_month_in_which_it_was_taken() -> None:
    """A search takes its whole budget when it starts, and gives back what is left when it ends, perhaps a month later."""
    november, december = 1_795_000_000.0, 1_796_200_000.0
    taken = Change(november, "retune", evidence={"study": "etl-retune-1"}, cost_usd=80.0)
    back = Change(december, "retune", evidence={"study": "etl-retune-1"}, cost_usd=-50.0)
    other = Change(december, "retune", evidence={"study": "etl-retune-2"}, cost_usd=20.0)
    record = replace(adopted(), changes=(taken, back, other))
    assert [allowance_left(record, moment) for moment in (november, december)] == [20.0, 80.0]
    at_once = replace(record, changes=(taken, replace(back, at_s=november)))
    assert allowance_left(at_once, november) == 70.0
