"""Other limits and prices are questions: they do not change what is believed of the time of a run."""

from pathlib import Path

import pytest

from lynceus.analysis.answer import answer
from lynceus.analysis.study_context import StudyContext
from lynceus.analysis.whatif import constraint_cases, deadline_case, price_case, unchanged, whatifs, with_deadline
from lynceus.jobfile.prepared_study import prepare_file
from lynceus.library.open_study import create_or_open
from lynceus.library.study_context import study_context
from lynceus.problem.objective import Constraint
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Outcome

JOB = """\
name: asked
run: "true"
space: {vm: [a, b, c, d], n: [1, 2, 4]}
price: "n * (30 if vm == 'a' else 36 if vm == 'b' else 42 if vm == 'c' else 60)"
constraints: ["runtime <= 10m"]
budget: {cost: 500 USD}
"""


@pytest.fixture
def context(tmp_path: Path) -> StudyContext:
    """A study with five runs, two of them of the best configuration."""
    (tmp_path / "job.yaml").write_text(JOB)
    one = create_or_open(prepare_file(tmp_path / "job.yaml"), f"sqlite:///{tmp_path}/lynceus.db")
    for number, (row, seconds) in enumerate(((0, 40.0), (5, 60.0), (10, 70.0), (7, 55.0), (0, 47.0))):
        order = Order(number, row, 600.0, 10.0, Plan(row, why="a test"))
        one.study.journal.ordered(order, {})
        outcome = Outcome(End.FINISHED, seconds, 0.01 * seconds, {"size": 100.0 + row})
        one.study.runs.settle(order, outcome)
    return study_context(one)


def test_a_hypothetical_limit_or_price_does_not_change_the_time_of_a_run(context: StudyContext) -> None:
    problem = context.study.problem
    deadlines = [deadline_case(problem, seconds) for seconds in (90.0, 1200.0, 36000.0)]
    limits = constraint_cases(problem, [Constraint("size", 1000.0)])
    found = whatifs(context, [unchanged(problem), *deadlines, *limits, price_case(problem, "price * 3")]).answers
    assert all(each.measured is not None and each.measured.row == 0 for each in found)
    times = [each.measured.runtime_s for each in found if each.measured is not None]
    assert times == pytest.approx([times[0]] * len(found), rel=1e-6)
    costs = [each.measured.cost_usd for each in found if each.measured is not None]
    assert costs[-1] == pytest.approx(3 * costs[0])


def test_the_answer_for_another_deadline_believes_the_same_time(context: StudyContext) -> None:
    plain, other = answer(context), answer(context, with_deadline(context.study.problem, 36000.0))
    assert plain is not None
    assert other is not None
    assert (other.row, other.runtime_s) == (plain.row, pytest.approx(plain.runtime_s, rel=1e-6))
