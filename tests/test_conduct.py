import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.conduct import CONFIRMS, LARGEST_SHARE, RESERVED_SHARE, Conduct, as_seen, failing, held_back_usd, typical
from lynceus.errors import InputError
from lynceus.history import End, Observation, Order, Outcome, Plan, Reason, Told
from lynceus.policy import Because, preset
from lynceus.problem import Budget, Limit, Problem
from lynceus.situation import Situation
from lynceus.space import Integer, Space
from lynceus.study import Study


def problem_of(usd: float = 1000.0) -> Problem:
    space = Space.build([Integer("n", 1, 6)], price=3600.0)  # a dollar per second
    return Problem(space, limits=(Limit.parse("runtime <= 100s"),), budget=Budget(usd=usd))


def run(row: int, end: End | Reason, seconds: float = 10.0, number: int = 0, why: str = "") -> Observation:
    order = Order(number, row, 100.0, 100.0, Plan(row, why))
    if isinstance(end, Reason):
        return Observation(order, Outcome(End.FAILED, seconds, seconds, reason=end, detail="it broke"), None)
    return Observation(order, Outcome(end, seconds, seconds), Told(seconds))


histories = st.lists(
    st.builds(run, st.integers(0, 5), st.sampled_from([End.FINISHED, End.CAPPED, *Reason])), max_size=12
).map(tuple)


@given(histories, st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))
def test_a_row_is_open_again_exactly_while_its_tries_last(
    history: tuple[Observation, ...], infra: int, job: int, preempted: int
) -> None:
    conduct = Conduct(retries_infra=infra, retries_job=job, retries_preempted=preempted)
    open_rows = Situation.present(problem_of(), as_seen(history, conduct)).open
    for row in range(6):
        mine = [seen.outcome for seen in history if seen.row == row]
        machines = sum(one.reason is Reason.INFRA for one in mine)
        interruptions = sum(one.reason is Reason.PREEMPTED for one in mine)
        its_fault = sum(one.reason in (Reason.JOB, Reason.OOM) for one in mine)
        over = any(one.end is not End.FAILED or one.reason is Reason.USER for one in mine)
        assert open_rows[row] == (not over and machines <= infra and interruptions <= preempted and its_fault <= job)


@given(histories)
def test_facts_stay_as_they_are(history: tuple[Observation, ...]) -> None:
    seen = as_seen(history, Conduct())
    assert [(one.order, one.outcome.charged_usd, one.told) for one in seen] == [
        (one.order, one.outcome.charged_usd, one.told) for one in history
    ]


def test_a_study_pauses_after_many_failures_and_goes_on_when_told_to() -> None:
    study = Study(problem_of(), preset("sweep"), conduct=Conduct(max_failures=3, retries_infra=9))
    for _ in range(3):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, state="FAIL", reason="infra", detail="the disk is on fire")
    assert study.ask() is None
    assert study.stopped is not None
    assert study.stopped.because is Because.PAUSED
    assert (
        study.reason == "the last 3 trials failed (3 infra); the last: the disk is on fire; look at them, then resume"
    )
    study.resume()
    trial = study.ask()
    assert trial is not None
    study.tell(trial, state="FAIL", reason="infra")
    assert study.ask() is not None  # failures before the pause no longer count


def test_a_success_ends_the_row_of_failures() -> None:
    history = (*(run(0, Reason.INFRA) for _ in range(4)), run(1, End.FINISHED))
    assert failing(history, 0, Conduct(max_failures=5)) is None
    assert failing((*history, *history[:4]), 0, Conduct(max_failures=5)) is None
    assert failing(history[:4] * 2, 0, Conduct(max_failures=5)) is not None
    assert failing(history[:4] * 2, 0, Conduct(max_failures=0)) is None
    assert failing(tuple(run(0, Reason.USER) for _ in range(9)), 0, Conduct()) is None


def test_a_failure_by_itself_is_never_suggested_again_and_others_are() -> None:
    study = Study(problem_of(), preset("sweep"), conduct=Conduct(max_failures=0, retries_infra=1, retries_preempted=2))
    asked: list[tuple[object, str]] = []
    reasons = {1: "job", 2: "oom", 3: "infra", 4: "preempted"}
    while (trial := study.ask()) is not None:
        n = trial.params["n"]
        asked.append((n, ""))
        assert isinstance(n, int)
        if n in reasons:
            study.tell(trial, state="FAIL", reason=reasons[n], runtime=1)
        else:
            study.tell(trial, runtime=50.0 - n)
    counts = {n: sum(one == n for one, _ in asked) for n in range(1, 7)}
    assert counts == {1: 1, 2: 1, 3: 2, 4: 3, 5: 1, 6: 1}
    assert study.spent_usd == pytest.approx(1 + 1 + 2 + 3 + 45 + 44)


def test_the_best_is_run_again_before_it_is_recommended() -> None:
    """The first run of the seemingly best was lucky; two more runs tell."""
    study = Study(problem_of(), preset("random"), conduct=Conduct(confirm_best=2))
    runs: dict[object, list[float]] = {n: [50.0, 50.0, 50.0] for n in range(1, 7)}
    runs[3] = [20.0, 60.0, 60.0]
    runs[5] = [40.0, 41.0, 42.0]
    while (trial := study.ask()) is not None:
        seconds = runs[trial.params["n"]].pop(0)
        if trial.timeout is not None and seconds > trial.timeout:
            study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            study.tell(trial, runtime=seconds)
    confirmed = [seen.row + 1 for seen in study.history if seen.order.plan.why.startswith(CONFIRMS)]
    assert confirmed == [3, 5]
    advice = study.recommend()
    assert advice is not None
    assert advice.params == {"n": 5}
    assert study.best_params == {"n": 5}
    assert (advice.trials, advice.spent_usd) == (len(study.history), study.spent_usd)


def test_money_is_held_back_for_the_confirmation() -> None:
    problem = problem_of(usd=200.0)
    conduct = Conduct(confirm_best=2)
    assert held_back_usd(problem, (), conduct) == RESERVED_SHARE * 200.0
    one = (run(0, End.FINISHED, 10.0),)
    assert held_back_usd(problem, one, conduct) == 2 * 1.5 * 10.0
    assert held_back_usd(problem, (run(0, End.FINISHED, 90.0),), conduct) == LARGEST_SHARE * 200.0
    assert held_back_usd(problem, (*one, run(0, End.FINISHED, why=CONFIRMS)), conduct) == 1.5 * 10.0
    assert held_back_usd(problem, one, Conduct()) == 0.0


@given(st.lists(st.floats(1, 99), min_size=6, max_size=30), st.floats(20, 400), st.integers(0, 3))
def test_confirmation_never_overdraws(times: list[float], usd: float, confirm: int) -> None:
    study = Study(problem_of(usd), preset("random"), conduct=Conduct(confirm_best=confirm), seed=len(times))
    left = list(times)
    while (trial := study.ask()) is not None:
        assert study.spent_usd + study.reserved_usd <= usd * (1 + 1e-9)
        seconds = left.pop(0) if left else 50.0
        capped = trial.timeout is not None and seconds >= trial.timeout
        if capped:
            assert trial.timeout is not None
            study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            study.tell(trial, runtime=seconds)
    assert study.spent_usd <= usd * (1 + 1e-9)
    assert sum(seen.order.plan.why.startswith(CONFIRMS) for seen in study.history) <= confirm


@given(histories)
def test_a_typical_history_has_each_row_once(history: tuple[Observation, ...]) -> None:
    seen = typical(history)
    for row in range(6):
        finished = [one.outcome.seconds for one in seen if one.row == row and one.outcome.end is End.FINISHED]
        assert len(finished) <= 1


def test_the_typical_run_is_the_median_and_a_stopped_one_counts_as_slow() -> None:
    def times(*runs: Observation) -> list[float]:
        return [one.outcome.seconds for one in typical(runs) if one.outcome.end is End.FINISHED]

    fast, middle, slow = (run(0, End.FINISHED, seconds) for seconds in (10.0, 20.0, 60.0))
    stopped = run(0, End.CAPPED, 30.0)
    assert times(fast) == [10.0]
    assert times(fast, slow) == [60.0]
    assert times(slow, fast, middle) == [20.0]
    assert times(fast, stopped) == []
    assert times(fast, middle, stopped) == [20.0]


@pytest.mark.parametrize("field", ["retries_infra", "retries_job", "max_failures", "confirm_best"])
def test_negative_numbers_are_refused(field: str) -> None:
    with pytest.raises(InputError, match=f"{field} is -1; give 0 or more"):
        Conduct(**{field: -1})
