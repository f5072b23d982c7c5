"""What an outcome record becomes: true times, the charge, text that is safe."""

from typing import Any

import pytest

from local_runs import problem_of
from lynceus.executors.run_directory import to_outcome
from lynceus.executors.supervisor.outcome_record import OutcomeRecord, failed, finished, timed_out
from lynceus.trial.outcome import End, Outcome

REQUEST: dict[str, Any] = {"row": 0, "boots": False, "cap_s": 2.0}
"""A dollar per second."""


def outcome(record: OutcomeRecord, extra_s: float = 0.0) -> Outcome:
    return to_outcome(problem_of(), REQUEST, record, extra_s=extra_s)


@pytest.mark.parametrize("record", [finished(5.0), timed_out(5.0)])
def test_a_run_beyond_its_timeout_is_stopped_and_charged_in_full(record: OutcomeRecord) -> None:
    found = outcome(record)
    assert (found.end, found.seconds, found.charged_usd) == (End.TIMEOUT, 5.0, 5.0)


def test_the_time_to_stop_is_charged_but_not_running_time() -> None:
    found = outcome({**failed("cancelled", reason="user", seconds=1.0), "stopping_s": 0.5}, extra_s=0.25)
    assert (found.seconds, found.charged_usd) == (1.0, 1.75)


def test_records_of_earlier_versions_are_read() -> None:
    found = outcome({"v": 1, "end": "finished", "seconds": 1.5, "metrics": {"x": 2.0}, "trace": [(1.0, 0.5)]})  # type: ignore[typeddict-item]
    assert (found.end, found.seconds, found.charged_usd, found.detail) == (End.FINISHED, 1.5, 1.5, "")


def test_text_of_a_node_is_cleaned() -> None:
    found = outcome({**failed("a\x00b\x1b[2J\ud800"), "metrics": {"m\x00": 1.0}})
    assert found.detail.isprintable()
    assert all(name.isprintable() for name in found.metrics)


@pytest.mark.parametrize("seconds", [-18755.8, float("nan"), float("inf")])
def test_a_time_that_makes_no_sense_is_not_charged_as_if_it_did(seconds: float) -> None:
    with pytest.raises(ValueError, match="makes no sense"):
        outcome(finished(seconds))
