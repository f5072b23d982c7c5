"""The problem: goals and limits as people write them, tariffs as clouds bill them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lynceus.errors import InputError
from lynceus.problem import Budget, Goal, Limit, Problem, Tariff
from lynceus.testing import SmallJob, small_job
from strategies import dollars, jobs, prices, seconds, tariffs

# Goals and limits ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("cost", Goal("cost")),
        ("price", Goal("cost")),
        ("minimize runtime", Goal("time")),
        ("minimise duration", Goal("time")),
        ("maximize accuracy", Goal("accuracy", maximise=True)),
        ("Maximise f1.score", Goal("f1.score", maximise=True)),
        ("  minimize   loss ", Goal("loss")),
    ],
)
def test_goals_are_read(text: str, goal: Goal) -> None:
    assert Goal.parse(text) == goal
    assert Goal.parse(str(goal)) == goal


@pytest.mark.parametrize("text", ["", "minimize", "make cost small", "reduce cost", "minimize cost now"])
def test_goals_that_cannot_be_read(text: str) -> None:
    if text == "minimize":
        assert Goal.parse(text) == Goal("minimize"), "one word names a metric"
        return
    with pytest.raises(InputError) as error:
        Goal.parse(text)
    assert str(error.value) == (
        f"objective: cannot read {text!r}; write for example 'cost', 'minimize time' or 'maximize accuracy'."
    )


@pytest.mark.parametrize("name", ["cost", "time"])
def test_nobody_maximises_money_or_time(name: str) -> None:
    with pytest.raises(InputError, match=f"maximising {name} is not useful; write 'minimize {name}'"):
        Goal.parse(f"maximize {name}")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("runtime <= 45m @ 0.95", Limit("time", 2700.0, confidence=0.95)),
        ("time<=90", Limit("time", 90.0)),
        ("duration < 1h30m @ 95%", Limit("time", 5400.0, confidence=0.95)),
        ("cost <= $0.50", Limit("cost", 0.5)),
        ("money <= 2 USD", Limit("cost", 2.0)),
        ("accuracy >= 0.85", Limit("accuracy", 0.85, at_least=True)),
        ("accuracy > 85e-2", Limit("accuracy", 0.85, at_least=True)),
        ("p99.latency <= 12.5", Limit("p99.latency", 12.5)),
        ("loss <= -3", Limit("loss", -3.0)),
    ],
)
def test_limits_are_read(text: str, limit: Limit) -> None:
    assert Limit.parse(text) == limit
    assert Limit.parse(str(limit)) == limit


CANNOT_READ = "; write a quantity, <= or >=, a bound and perhaps a confidence, for example 'runtime <= 45m @ 0.95' or 'accuracy >= 0.85'."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", f"constraints: cannot read ''{CANNOT_READ}"),
        ("runtime", f"constraints: cannot read 'runtime'{CANNOT_READ}"),
        ("runtime = 45m", f"constraints: cannot read 'runtime = 45m'{CANNOT_READ}"),
        ("<= 45m", f"constraints: cannot read '<= 45m'{CANNOT_READ}"),
        ("runtime <= 45m @", f"constraints: cannot read 'runtime <= 45m @'{CANNOT_READ}"),
        ("runtime <= 45m @ high", f"constraints: cannot read 'runtime <= 45m @ high'{CANNOT_READ}"),
        (
            "accuracy >= much",
            "constraints: 'much' in 'accuracy >= much' is not a number; write for example 'accuracy >= 0.85'.",
        ),
        ("accuracy >= nan", "constraints: the bound on accuracy is nan; give a finite number."),
        ("accuracy >= inf", "constraints: the bound on accuracy is inf; give a finite number."),
        (
            "runtime >= 3m",
            "constraints: 'time >= …' is not supported; time can only be bounded from above.",
        ),
        (
            "runtime <= 0",
            "constraints: the bound on time is 0.0; nothing runs in no time, give a positive one.",
        ),
        ("cost <= $0", "constraints: the bound on cost is 0.0; nothing runs in no cost, give a positive one."),
        (
            "runtime <= 45m @ 1.5",
            "constraints: confidence 1.5 on time must lie between 0 and 1, for example '@ 0.95'.",
        ),
        (
            "runtime <= 45m @ 100%",
            "constraints: confidence 1.0 on time must lie between 0 and 1, for example '@ 0.95'.",
        ),
        ("runtime <= 45m @ 0", "constraints: confidence 0.0 on time must lie between 0 and 1, for example '@ 0.95'."),
    ],
)
def test_limits_that_cannot_be_read(text: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        Limit.parse(text)
    assert str(error.value) == words


@pytest.mark.parametrize(
    "text", ["runtime <= soon", "cost <= €3", "runtime <= -5m", "runtime <= 45m @ 0.9.5", "runtime <= 45m @ ."]
)
def test_other_texts_are_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(InputError, match=r"^constraints: (the bound in|cannot read) '"):
        Limit.parse(text)


def test_limits_hold_at_their_bound() -> None:
    assert Limit("time", 10.0).holds(10.0)
    assert not Limit("time", 10.0).holds(10.1)
    assert Limit("accuracy", 0.9, at_least=True).holds(0.9)
    assert not Limit("accuracy", 0.9, at_least=True).holds(0.89)
    assert not Limit("accuracy", 0.9, at_least=True).holds(math.nan)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"usd": 0.0}, "budget: 0.0 dollars buy nothing"),
        ({"usd": math.nan}, "budget: nan dollars buy nothing"),
        ({"usd": -2.0}, "give a positive amount, for example '25 USD'"),
        ({"trials": 0}, "budget: max_trials is 0; give at least 1"),
        ({"wall_clock_s": 0.0}, "give a positive duration, for example '12h'"),
        ({"wall_clock_s": math.nan}, "wall_clock is nan seconds"),
    ],
)
def test_budgets_that_buy_nothing(fields: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Budget(**fields)  # type: ignore[arg-type]


# Tariffs -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tariff", "ran", "boots", "billed_s", "fee"),
    [
        (Tariff(), 61.5, True, 61.5, 0.0),
        (Tariff(granularity_s=60), 61.5, True, 120.0, 0.0),
        (Tariff(granularity_s=60), 120.0, True, 120.0, 0.0),
        (Tariff(granularity_s=60), 0.1 * 3 * 400, True, 120.0, 0.0),
        (Tariff(granularity_s=3600), 1.0, True, 3600.0, 0.0),
        (Tariff(minimum_s=60), 10.0, True, 60.0, 0.0),
        (Tariff(boot_s=45), 10.0, True, 55.0, 0.0),
        (Tariff(boot_s=45), 10.0, False, 10.0, 0.0),
        (Tariff(fee_usd=0.5), 10.0, True, 10.0, 0.5),
        (Tariff(fee_usd=0.5), 10.0, False, 10.0, 0.0),
        (Tariff(granularity_s=60, minimum_s=300, boot_s=45, fee_usd=0.5), 200.0, True, 300.0, 0.5),
        (Tariff(granularity_s=60, minimum_s=300, boot_s=45, fee_usd=0.5), 290.0, True, 360.0, 0.5),
        (Tariff(granularity_s=60, minimum_s=300, boot_s=45, fee_usd=0.5), 290.0, False, 300.0, 0.0),
    ],
)
def test_charges_by_hand(tariff: Tariff, ran: float, boots: bool, billed_s: float, fee: float) -> None:
    assert tariff.charge(ran, 0.01, boots=boots) == pytest.approx(0.01 * billed_s + fee)
    assert float(tariff.charges(np.array(ran), np.array(0.01), boots=boots)) == pytest.approx(0.01 * billed_s + fee)


@given(tariffs(), seconds, prices, st.booleans())
def test_the_scalar_and_the_array_agree(tariff: Tariff, ran: float, price: float, boots: bool) -> None:
    assert tariff.charge(ran, price, boots=boots) == float(tariff.charges(np.array(ran), np.array(price), boots=boots))


@given(tariffs(), seconds, seconds, prices, st.booleans())
def test_longer_runs_never_cost_less(tariff: Tariff, one: float, other: float, price: float, boots: bool) -> None:
    short, long = sorted((one, other))
    assert tariff.charge(short, price, boots=boots) <= tariff.charge(long, price, boots=boots)
    assert tariff.charge(short, price, boots=False) <= tariff.charge(short, price, boots=True)


@given(tariffs(), dollars, prices, st.booleans())
def test_what_money_buys_costs_no_more_than_the_money(tariff: Tariff, usd: float, price: float, boots: bool) -> None:
    longest = float(tariff.seconds_for(np.array(usd), np.array(price), boots=boots))
    if longest == -math.inf:
        assert tariff.charge(0.0, price, boots=boots) > usd * (1 - 1e-6), "not even the start is covered"
        return
    assert longest >= 0
    assert tariff.charge(longest, price, boots=boots) <= usd * (1 + 1e-6)
    assert tariff.charge(longest * (1 + 1e-6) + 1.5 * max(tariff.granularity_s, 1e-3), price, boots=boots) > usd, (
        "a longer run would have been covered too"
    )


@given(tariffs(), seconds, prices)
def test_money_and_time_are_inverse_up_to_the_granularity(tariff: Tariff, ran: float, price: float) -> None:
    usd = tariff.charge(ran, price)
    longest = float(tariff.seconds_for(np.array(usd), np.array(price)))
    assert longest >= ran * (1 - 1e-6) - 1e-6


def test_money_without_end_buys_time_without_end() -> None:
    for tariff in (Tariff(), Tariff(granularity_s=60, minimum_s=60, boot_s=45, fee_usd=1.0)):
        assert float(tariff.seconds_for(np.array(math.inf), np.array(0.1))) == math.inf


def test_boots_may_differ_by_row() -> None:
    tariff = Tariff(boot_s=100.0, fee_usd=1.0)
    both = tariff.seconds_for(np.array([3.0, 3.0]), np.array([0.01, 0.01]), boots=np.array([True, False]))
    assert both == pytest.approx([100.0, 300.0])


@pytest.mark.parametrize("field", ["granularity_s", "minimum_s", "boot_s", "fee_usd"])
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_tariffs_that_make_no_sense(field: str, value: float) -> None:
    with pytest.raises(InputError, match=f"billing: {field} is {value!r}; give a finite number that is not negative"):
        Tariff(**{field: value})


# Problems ------------------------------------------------------------------------------------------------------------------


@given(jobs(), st.integers(0, 23), st.floats(0.0, 1e5))
def test_a_ceiling_is_the_longest_time_that_keeps_the_limits(job: SmallJob, row: int, ran: float) -> None:
    problem = replace(job.problem, limits=tuple(limit for limit in job.problem.limits if limit.metric != "accuracy"))
    ceiling = float(problem.ceiling_s[row])
    assume(abs(ran - ceiling) > 1e-6 * max(ran, 1.0))
    keeps = problem.meets_limits(row, ran, {})
    assert keeps == (ran <= ceiling)
    if math.isfinite(ceiling):
        assert float(problem.ceiling_usd[row]) == pytest.approx(problem.cost(row, ceiling))
    if keeps:
        assert problem.cost(row, ran) <= problem.ceiling_usd[row] * (1 + 1e-9)


def test_a_row_whose_start_breaks_the_limit_can_never_keep_it() -> None:
    problem = small_job("cost <= $0.10", tariff=Tariff(fee_usd=0.2)).problem
    assert np.isneginf(problem.ceiling_s).all()
    assert np.isneginf(problem.ceiling_usd).all()


def test_the_tightest_deadline_counts() -> None:
    problem = small_job("runtime <= 30m", "runtime <= 20m").problem
    assert problem.deadline_s == 1200.0
    assert small_job().problem.deadline_s == math.inf
    assert problem.with_limits(()).deadline_s == math.inf
    assert problem.deadline_s == 1200.0


def test_values_and_limits() -> None:
    cost = small_job("runtime <= 30m", "accuracy >= 0.9", tariff=Tariff(boot_s=60.0)).problem
    assert cost.value(0, 600.0, {}) == pytest.approx(660.0 * float(cost.price[0]))
    assert cost.meets_limits(0, 1800.0, {"accuracy": 0.9})
    assert not cost.meets_limits(0, 1800.1, {"accuracy": 0.9})
    assert not cost.meets_limits(0, 1800.0, {"accuracy": 0.89})
    assert not cost.meets_limits(0, 1800.0, {}), "what was not reported keeps no limit"
    assert small_job(goal="time").problem.value(0, 600.0, {}) == 600.0
    assert small_job(goal="maximize accuracy").problem.value(0, 600.0, {"accuracy": 0.9}) == -0.9
    assert small_job(goal="minimize accuracy").problem.value(0, 600.0, {"accuracy": 0.9}) == 0.9


def test_metrics_in_order_of_appearance() -> None:
    problem = small_job("runtime <= 30m", "memory <= 4", "accuracy >= 0.5", goal="maximize accuracy").problem
    assert problem.metrics == ("accuracy", "memory")
    assert problem.kind == "metric"
    assert [limit.metric for limit in problem.metric_limits] == ["memory", "accuracy"]


def test_machines_are_numbered_by_the_warm_columns() -> None:
    problem = small_job(tariff=Tariff(boot_s=60.0, warm=("vm", "nodes"))).problem
    space = problem.space
    for one in range(len(space)):
        for other in range(len(space)):
            same = all(space.point(one)[name] == space.point(other)[name] for name in ("vm", "nodes"))
            assert (problem.machine[one] == problem.machine[other]) == same
    assert (small_job().problem.machine == -1).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"testable": np.ones(3, dtype=bool)}, r"testable: a mask of shape \(3,\) came for 24 configurations"),
        ({"testable": np.zeros(24, dtype=bool)}, "testable: no configuration is left"),
        ({"answerable": np.zeros(24, dtype=bool)}, "answerable: no configuration is left"),
        ({"repeats": 0}, "repeats: 0 came; every configuration must be allowed at least 1 run"),
        ({"tariff": Tariff(warm=("colour",))}, "colour"),
    ],
)
def test_problems_that_make_no_sense(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        replace(small_job().problem, **changes)  # type: ignore[arg-type]


def test_other_money_other_limits() -> None:
    problem = small_job("runtime <= 30m", budget=Budget(usd=3.0, trials=4)).problem
    assert problem.with_budget(5.0).budget == Budget(usd=5.0, trials=4)
    assert isinstance(problem.with_limits([Limit("time", 60.0)]), Problem)
    assert problem.with_limits([Limit("time", 60.0)]).ceiling_s.max() == 60.0


def test_a_large_bound_is_written_out() -> None:
    assert str(Limit.parse("throughput >= 2.5e6")) == "throughput >= 2500000"
