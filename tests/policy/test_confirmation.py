"""Confirmation: the incumbent runs again before it is recommended, paid from a reserved part of the budget."""

from hypothesis import given
from hypothesis import strategies as st

from lynceus.policy.confirmation import LARGEST_SHARE, RESERVED_SHARE, reserved_for_confirmation
from lynceus.policy.presets import preset
from lynceus.policy.retries import RetryRules
from lynceus.study.study import Study
from lynceus.trial.order import Purpose
from lynceus.trial.outcome import End
from retry_cases import problem_of, run


def test_the_incumbent_is_confirmed_before_it_is_recommended() -> None:
    """The first incumbent had one fast run by chance; confirmation runs replace it."""
    study = Study(problem_of(), preset("random"), retry_rules=RetryRules(confirm_best=2))
    runs: dict[object, list[float]] = {n: [50.0, 50.0, 50.0] for n in range(1, 7)}
    runs[3] = [20.0, 60.0, 60.0]
    runs[5] = [40.0, 41.0, 42.0]
    while (trial := study.ask()) is not None:
        seconds = runs[trial.params["n"]].pop(0)
        if trial.timeout is not None and seconds > trial.timeout:
            study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            study.tell(trial, runtime=seconds)
    confirmed = [seen.row + 1 for seen in study.observations if seen.order.plan.purpose is Purpose.CONFIRM]
    assert confirmed == [3, 5]
    answer = study.recommend()
    assert answer is not None
    assert answer.params == {"n": 5}
    assert study.best_params == {"n": 5}
    assert (answer.trials, answer.spent_usd) == (len(study.observations), study.spent_usd)


def test_budget_is_reserved_for_confirmation() -> None:
    problem = problem_of(usd=200.0)
    retry_rules = RetryRules(confirm_best=2)
    assert reserved_for_confirmation(problem, (), retry_rules) == RESERVED_SHARE * 200.0
    one = (run(0, End.FINISHED, 10.0),)
    assert reserved_for_confirmation(problem, one, retry_rules) == 2 * 1.5 * 10.0
    assert reserved_for_confirmation(problem, (run(0, End.FINISHED, 90.0),), retry_rules) == LARGEST_SHARE * 200.0
    assert (
        reserved_for_confirmation(problem, (*one, run(0, End.FINISHED, purpose=Purpose.CONFIRM)), retry_rules)
        == 1.5 * 10.0
    )
    assert reserved_for_confirmation(problem, one, RetryRules()) == 0.0


@given(st.lists(st.floats(1, 99), min_size=6, max_size=30), st.floats(20, 400), st.integers(0, 3))
def test_confirmation_never_exceeds_the_budget(times: list[float], usd: float, confirm: int) -> None:
    study = Study(problem_of(usd), preset("random"), retry_rules=RetryRules(confirm_best=confirm), seed=len(times))
    remaining = list(times)
    while (trial := study.ask()) is not None:
        assert study.spent_usd + study.reserved_usd <= usd * (1 + 1e-9)
        seconds = remaining.pop(0) if remaining else 50.0
        timed_out = trial.timeout is not None and seconds >= trial.timeout
        if timed_out:
            assert trial.timeout is not None
            study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            study.tell(trial, runtime=seconds)
    assert study.spent_usd <= usd * (1 + 1e-9)
    assert sum(seen.order.plan.purpose is Purpose.CONFIRM for seen in study.observations) <= confirm
