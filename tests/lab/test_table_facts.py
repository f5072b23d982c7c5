"""Properties of tables, compared with brute force."""

import math

import pytest

from lynceus.errors import InputError
from lynceus.problem.data_fraction import Fraction, row_shares
from lynceus.replay.job import ReplayJob
from lynceus.replay.score import optimum, true_value
from lynceus_lab.cell import loaded
from lynceus_lab.experiment_file import OptionsSpec
from lynceus_lab.table_facts import cno_of_all, disjoint, fact
from shares import small_share_job


@pytest.fixture
def toy(job):
    # Parameters of the cluster are known by name, and `vm` is not one of these names.
    table = job.with_name("toy.csv")
    table.write_text(table.read_text().replace("vm,nodes", "vm_type,nodes"))
    job.write_text(job.read_text().replace("{vm:", "{vm_type:"))
    loaded.cache_clear()
    return loaded(str(job), OptionsSpec())


def test_disjoint_optimisation_by_brute_force(toy):
    space = toy.problem.space
    points = [space.point(row) for row in range(len(space))]
    values = [true_value(toy.problem, toy.measurements, row) for row in range(len(space))]
    utility = [math.inf if value is None else value for value in values]
    costs = [toy.problem.cost(row, float(toy.measurements.seconds[row])) for row in range(len(space))]
    found = []
    for vm, nodes in {(point["vm_type"], point["nodes"]) for point in points}:
        here = [row for row, point in enumerate(points) if (point["vm_type"], point["nodes"]) == (vm, nodes)]
        rate = points[min(here, key=lambda row: (utility[row], costs[row]))]["rate"]
        found.append(min(utility[row] for row, point in enumerate(points) if point["rate"] == rate) / toy.optimum.value)
    assert disjoint(toy) == pytest.approx(sorted(found))


def test_counts_and_extremes(toy):
    cno = cno_of_all(toy)
    values = [true_value(toy.problem, toy.measurements, row) for row in range(24)]
    assert fact("within-2", [toy]) == sum(value is not None and value <= 2 * toy.optimum.value for value in values)
    assert fact("worst-most", [toy, toy]) == cno.max()
    assert fact("feasible-least", [toy]) == sum(
        true_value(toy.problem, toy.measurements, row) is not None for row in range(24)
    )


def test_the_error_for_an_unknown_fact_suggests_the_nearest(toy):
    with pytest.raises(InputError, match="there is no fact 'wurst'; did you mean 'worst'"):
        fact("wurst", [toy])


def test_savings_of_data_fractions():
    small = small_share_job()
    problem = Fraction("share", "all", "all").apply(small.problem)
    best = optimum(problem, small.measured)
    assert best is not None
    job = ReplayJob("shares", problem, small.measured, best)
    values = [true_value(problem, small.measured, row) for row in range(len(problem.space))]
    full = [value for value, share in zip(values, row_shares(problem), strict=True) if value is not None and share == 1]
    assert fact("best-fraction", [job]) == row_shares(problem)[best.row]
    assert fact("all-data", [job]) == pytest.approx(min(full) / best.value)
    accurate = [
        value is not None and accuracy >= 0.85
        for value, accuracy in zip(values, small.measured.metrics["accuracy"], strict=True)
    ]
    assert fact("accurate", [job]) == sum(accurate)


def test_a_fact_of_an_unpublished_table_is_nan(toy):
    assert math.isnan(fact("unpublished", [toy]))
