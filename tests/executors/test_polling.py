"""How often a cluster is asked."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from lynceus.executors import polling
from lynceus.executors.polling import PolledAnswer, RetryPauses


class DownError(Exception):
    """The service does not answer."""


class Service:
    """Answers with the number of the question."""

    def __init__(self) -> None:
        self.asked, self.is_down = 0, False

    def answer(self) -> int:
        self.asked += 1
        if self.is_down:
            raise DownError
        return self.asked


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The time, in seconds, which moves only when a test says so."""
    clock = SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(polling, "time", SimpleNamespace(monotonic=lambda: clock.now_s))
    return clock


def test_a_service_is_asked_at_intervals_or_when_something_changed(clock: SimpleNamespace) -> None:
    polled = PolledAnswer(Service().answer, 2.0, DownError)
    assert [polled.get(), polled.get()] == [1, 1]
    clock.now_s += 2.0
    assert [polled.get(), polled.get()] == [2, 2]
    polled.expire()
    assert [polled.get(), polled.get()] == [3, 3]
    assert polled.get(at_once=True) == 4


def test_a_service_that_is_down_is_asked_less_and_less_often_and_at_once_again(clock: SimpleNamespace) -> None:
    service = Service()
    polled = PolledAnswer(service.answer, 2.0, DownError)
    service.is_down, times = True, []
    for _ in range(600):
        asked = service.asked
        assert polled.get() is None
        times += [clock.now_s] if service.asked > asked else []
        clock.now_s += 0.1
    assert not polled.is_answering
    assert [round(later - sooner) for sooner, later in itertools.pairwise(times)][:5] == [3, 5, 9, 10, 10]
    service.is_down = False
    polled.expire()
    assert polled.get() == service.asked
    assert polled.is_answering


def test_other_errors_are_not_swallowed() -> None:
    polled = PolledAnswer(lambda: 1 // 0, 2.0, DownError)
    with pytest.raises(ZeroDivisionError):
        polled.get()


@pytest.mark.parametrize(("answered", "longest_s"), [(True, 30.0), (False, 8.0)])
def test_pauses_grow_up_to_a_limit(clock: SimpleNamespace, answered: bool, longest_s: float) -> None:
    pauses, waited = RetryPauses(), []
    assert pauses.is_due("a")
    for _ in range(8):
        pauses.failed("a", answered=answered)
        began = clock.now_s
        while not pauses.is_due("a"):
            clock.now_s += 0.5
        waited.append(clock.now_s - began)
    assert waited[:3] == [1.0, 2.0, 4.0]
    assert max(waited) == waited[-1] == longest_s
    pauses.failed("a", answered=answered)
    assert pauses.is_due("b")
    pauses.forget("a")
    assert pauses.is_due("a")
