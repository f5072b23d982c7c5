"""The machine has teeth: it finds bugs that are put in on purpose, and shrinks them to a few steps."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from attack.fast_machine import MemoryMachine
from lynceus.study.runs import StudyRuns

_settle_all = StudyRuns.settle_all


def _charge_failures_twice(self: StudyRuns, order: Any, outcome: Any) -> Any:
    factor = 2.0 if outcome.reason is not None else 1.0
    return _settle_all(self, order, replace(outcome, charged_usd=outcome.charged_usd * factor))


def _settle_at_once(self: Any, ticket: str) -> Any:
    run = self.runs[int(ticket.rpartition("/")[2])]
    return self._outcome(run.request.number, replace(run, cancelled_s=run.began_s))


BUGS: dict[str, tuple[str, Callable[..., Any]]] = {
    "failures are charged twice": ("lynceus.study.runs.StudyRuns.settle_all", _charge_failures_twice),
    "runs settle while they run": ("attack.virtual_world.World.collect", _settle_at_once),
}


pytestmark = pytest.mark.filterwarnings("ignore::lynceus.errors.OverrunWarning")


def _found(bug: str, phases: list[Phase]) -> AssertionError:
    where, instead = BUGS[bug]
    limits = settings(
        max_examples=200,
        stateful_step_count=20,
        database=None,
        phases=phases,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with mock.patch(where, instead), pytest.raises(AssertionError) as found:
        run_state_machine_as_test(MemoryMachine, settings=limits)
    return found.value


@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found(bug: str) -> None:
    _found(bug, [Phase.generate])


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_shrunk_to_a_few_steps(bug: str) -> None:
    story = "\n".join(_found(bug, [Phase.generate, Phase.shrink]).__notes__)
    taken = [line for line in story.splitlines() if line.startswith("state.") and "holds" not in line]
    assert len(taken) <= 6, story  # creation, teardown, and the few steps that matter
