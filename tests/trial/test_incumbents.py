"""The incumbent: the best configuration by the median of its runs, after every trial."""

from hypothesis import given

from lynceus.trial.incumbents import incumbent, incumbents, median_runs
from lynceus.trial.outcome import End, Observation
from retry_cases import observation_lists, problem_of, run


@given(observation_lists)
def test_incumbents_equal_the_incumbent_of_every_prefix(observations: tuple[Observation, ...]) -> None:
    problem = problem_of()
    found = incumbents(problem, observations)
    for count, current in enumerate(found, 1):
        expected = incumbent(problem, observations[:count])
        assert (current is None) == (expected is None)
        if current is not None and expected is not None:
            assert (current.value, current.row, current.number) == (expected.value, expected.row, expected.number)


def test_a_slow_second_run_replaces_the_incumbent() -> None:
    observations = (run(0, End.FINISHED, 10.0, 0), run(1, End.FINISHED, 20.0, 1), run(0, End.FINISHED, 60.0, 2))
    found = incumbents(problem_of(), observations)
    assert [(one.row, one.value, one.number) for one in found if one is not None] == [
        (0, 10.0, 0),
        (0, 10.0, 0),
        (1, 20.0, 1),
    ]


@given(observation_lists)
def test_median_runs_have_one_finished_run_per_row(observations: tuple[Observation, ...]) -> None:
    medians = median_runs(observations)
    for row in range(6):
        finished = [one.outcome.seconds for one in medians if one.row == row and one.outcome.end is End.FINISHED]
        assert len(finished) <= 1


def test_a_timed_out_run_counts_as_slow_in_the_median() -> None:
    def times(*runs: Observation) -> list[float]:
        return [one.outcome.seconds for one in median_runs(runs) if one.outcome.end is End.FINISHED]

    fast, middle, slow = (run(0, End.FINISHED, seconds) for seconds in (10.0, 20.0, 60.0))
    stopped = run(0, End.TIMEOUT, 30.0)
    assert times(fast) == [10.0]
    assert times(fast, slow) == [60.0]
    assert times(slow, fast, middle) == [20.0]
    assert times(fast, stopped) == []
    assert times(fast, middle, stopped) == [20.0]
