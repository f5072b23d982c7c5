"""A small problem that costs one dollar per second, and observations of it."""

from hypothesis import strategies as st

from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.trial.order import Order, Plan, Purpose
from lynceus.trial.outcome import End, FailureReason, Observation, Outcome, TrainingTarget


def problem_of(usd: float = 1000.0) -> Problem:
    space = Space.build([Integer("n", 1, 6)], price=3600.0)
    return Problem(space, constraints=(Constraint.parse("runtime <= 100s"),), budget=Budget(usd=usd))


def run(
    row: int,
    end: End | FailureReason,
    seconds: float = 10.0,
    number: int = 0,
    purpose: Purpose = Purpose.SEARCH,
) -> Observation:
    order = Order(number, row, 100.0, 100.0, Plan(row, why="", purpose=purpose))
    if isinstance(end, FailureReason):
        return Observation(order, Outcome(End.FAILED, seconds, seconds, reason=end, detail="it broke"), None)
    return Observation(order, Outcome(end, seconds, seconds), TrainingTarget(seconds))


observation_lists = st.lists(
    st.builds(
        run,
        st.integers(0, 5),
        st.sampled_from([End.FINISHED, End.TIMEOUT, *FailureReason]),
        st.sampled_from([5.0, 10.0, 20.0, 99.0, 150.0]),
    ),
    max_size=14,
).map(tuple)
