"""Objectives and constraints as users write them."""

import math

import pytest

from lynceus.errors import InputError
from lynceus.problem.objective import Constraint, Objective


@pytest.mark.parametrize(
    ("text", "objective"),
    [
        ("cost", Objective("cost")),
        ("price", Objective("price")),
        ("minimize runtime", Objective("time")),
        ("minimise duration", Objective("time")),
        ("maximize accuracy", Objective("accuracy", maximise=True)),
        ("Maximise f1.score", Objective("f1.score", maximise=True)),
        ("  minimize   loss ", Objective("loss")),
        ("minimize price / throughput", Objective("price / throughput")),
        ("pods*price", Objective("pods*price")),
        ("maximise tokens / (1 + errors)", Objective("tokens / (1 + errors)", maximise=True)),
        ("minimize tokens-per-s", Objective("tokens-per-s")),
    ],
)
def test_objectives_are_parsed(text: str, objective: Objective) -> None:
    assert Objective.parse(text) == objective
    assert Objective.parse(str(objective)) == objective


@pytest.mark.parametrize("text", ["", "minimize", "make cost small", "reduce cost", "minimize cost now"])
def test_objectives_that_cannot_be_parsed(text: str) -> None:
    if text == "minimize":
        assert Objective.parse(text) == Objective("minimize"), "one word names a metric"
        return
    with pytest.raises(InputError) as error:
        Objective.parse(text)
    assert str(error.value) == (
        f"objective: cannot read {text!r}; write for example 'cost', 'minimize time', 'maximize accuracy' or "
        "'minimize price / throughput'."
    )


@pytest.mark.parametrize("name", ["cost", "time"])
def test_maximising_cost_or_time_is_an_error(name: str) -> None:
    with pytest.raises(InputError, match=f"maximising {name} is not useful; write 'minimize {name}'"):
        Objective.parse(f"maximize {name}")


@pytest.mark.parametrize(
    ("text", "constraint"),
    [
        ("runtime <= 45m @ 0.95", Constraint("time", 2700.0, confidence=0.95)),
        ("time<=90", Constraint("time", 90.0)),
        ("duration < 1h30m @ 95%", Constraint("time", 5400.0, confidence=0.95)),
        ("cost <= $0.50", Constraint("cost", 0.5)),
        ("money <= 2 USD", Constraint("cost", 2.0)),
        ("accuracy >= 0.85", Constraint("accuracy", 0.85, at_least=True)),
        ("accuracy > 85e-2", Constraint("accuracy", 0.85, at_least=True)),
        ("p99.latency <= 12.5", Constraint("p99.latency", 12.5)),
        ("loss <= -3", Constraint("loss", -3.0)),
    ],
)
def test_constraints_are_parsed(text: str, constraint: Constraint) -> None:
    assert Constraint.parse(text) == constraint
    assert Constraint.parse(str(constraint)) == constraint


CANNOT_READ = (
    "; write a quantity, <= or >=, a bound and optionally a confidence, "
    "for example 'runtime <= 45m @ 0.95' or 'accuracy >= 0.85'."
)


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
            "constraints: 'much' in 'accuracy >= much' is neither a number nor an amount of bytes; write for example "
            "'accuracy >= 0.85', 'accuracy >= 3MB' or 'accuracy >= 3MiB' (B for bytes; b would be bits).",
        ),
        (
            "size <= 3.75 Mb",  # megabits
            "constraints: '3.75 Mb' in 'size <= 3.75 Mb' is neither a number nor an amount of bytes; write for example "
            "'size <= 0.85', 'size <= 3MB' or 'size <= 3MiB' (B for bytes; b would be bits).",
        ),
        ("accuracy >= nan", "constraints: the bound on accuracy is nan; give a finite number."),
        ("accuracy >= inf", "constraints: the bound on accuracy is inf; give a finite number."),
        (
            "runtime >= 3m",
            "constraints: 'time >= …' is not supported; time can only be bounded from above.",
        ),
        (
            "runtime <= 0",
            "constraints: the bound on time is 0.0; give a positive one.",
        ),
        ("cost <= $0", "constraints: the bound on cost is 0.0; give a positive one."),
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
def test_constraints_that_cannot_be_parsed(text: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        Constraint.parse(text)
    assert str(error.value) == words


@pytest.mark.parametrize(
    "text", ["runtime <= soon", "cost <= €3", "runtime <= -5m", "runtime <= 45m @ 0.9.5", "runtime <= 45m @ ."]
)
def test_other_errors_are_one_sentence(text: str) -> None:
    with pytest.raises(InputError, match=r"^constraints: (the bound in|cannot read) '"):
        Constraint.parse(text)


def test_constraints_hold_at_their_bound() -> None:
    assert Constraint("time", 10.0).holds(10.0)
    assert not Constraint("time", 10.0).holds(10.1)
    assert Constraint("accuracy", 0.9, at_least=True).holds(0.9)
    assert not Constraint("accuracy", 0.9, at_least=True).holds(0.89)
    assert not Constraint("accuracy", 0.9, at_least=True).holds(math.nan)


def test_a_large_bound_is_written_out() -> None:
    assert str(Constraint.parse("throughput >= 2.5e6")) == "throughput >= 2500000"


def test_a_metric_whose_name_is_a_part_of_a_quantity_is_not_taken_for_it() -> None:
    with pytest.raises(InputError) as share:
        Constraint.parse("ratio <= 50%")
    with pytest.raises(InputError) as slip:
        Constraint.parse("runtme <= 50 minutes")
    assert "Did you mean" not in str(share.value)
    assert str(slip.value).endswith("Did you mean 'runtime'?")


@pytest.mark.parametrize(("bound", "shown"), [("100MB", "100MB"), ("1.5 GB", "1.5GB"), ("1MiB", "1048576B")])
def test_a_limit_in_bytes_is_shown_short_and_reads_the_same_again(bound: str, shown: str) -> None:
    limit = Constraint.parse(f"size <= {bound}", units={"size": "B"})
    assert str(limit) == f"size <= {shown}"
    assert Constraint.parse(str(limit), units={"size": "B"}) == limit
