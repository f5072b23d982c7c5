"""Patterns that take a part of a number: the value would look right and be wrong."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.executors.supervisor.cut_numbers import MetricPattern
from lynceus.executors.supervisor.reports import Reports
from lynceus.executors.supervisor.streams import Streams

NUMBER = r"([-+]?\d*\.?\d+(?:[eE][-+]?\d+)?)"


def cut(pattern: str, line: str) -> str:
    match = re.search(pattern.encode(), line.encode())
    assert match is not None
    return MetricPattern(pattern).cut(line.encode(), match)


@pytest.mark.parametrize(
    ("pattern", "line", "taken"),
    [
        (r"error: (\d+)", "error: 0.93", "0 of 0.93"),
        (r"acc.*(\d+)", "acc = 0.93", "3 of 0.93"),
        (r"(\d+)%", "93.5%", "5 of 93.5"),
        (r"(\d+) ms", "took 0.93 ms", "93 of 0.93"),
        (r"x.*?([0-9.]+)", "x=1.5e-3", "1.5 of 1.5e-3"),
        (r"x.*?([0-9.]+)", "x=-0.5", "0.5 of -0.5"),
        (r"x.*?(\d+)", "x=.5", "5 of .5"),
        (r"([-+]?\d+)$", "1e-5", "-5 of 1e-5"),
        (r"(\d)", "12 runs", "1 of 12"),
        (r"(?:acc|accuracy) (?P<value>\d+)", "acc 3.5", "3 of 3.5"),
    ],
)
def test_a_part_of_a_number_is_noticed(pattern: str, line: str, taken: str) -> None:
    assert cut(pattern, line).startswith(f"takes {taken}; write ")


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        (r"x=(\d+)", "x=5."),
        (r"x=(\d+)", "x=5, y=3"),
        (r"took (\d+)s", "took 5s"),
        (r"epoch-(\d+)", "epoch-5"),
        (r"(\d+) errors", "2026-11-18 3 errors"),
        (r"([-+.\deE]+)", "q 0.18"),
        (r"(\d+)\.\d+ s", "3.4 s"),
        (r"0\.(\d+)", "0.93"),
        (r"losses: (\d+),", "losses: 1,2,3"),
        (r"x=(\S+)", "x=0.93"),
    ],
)
def test_whole_numbers_and_parts_that_the_pattern_names_are_fine(pattern: str, line: str) -> None:
    assert cut(pattern, line) == ""


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["", " s", "%", ".", ", next"]))
def test_the_pattern_that_is_named_instead_takes_every_number(value: float, behind: str) -> None:
    named = cut(r"x: (\d+)", "x: 0.93").partition("; write ")[2]
    assert named == f"'x: {NUMBER}'"
    found = re.search(named := named.strip("'"), line := f"x: {value!r}{behind}")
    assert found is not None
    assert float(found[1]) == value
    assert cut(named, line) == ""


def test_numbers_with_commas_have_another_remedy() -> None:
    assert cut(r"x=(\d+)", "x=1,234,567 tokens") == "takes 1 of 1,234,567; print numbers without commas"


def test_the_metric_is_left_out_rather_than_wrong() -> None:
    reports = Reports("/no/such/file", {"accuracy": r"accuracy: (\d+)", "steps": r"steps: (\d+)"})
    reports.add_output("stdout", b"accuracy: 1\nsteps: 10\n", 0.0)
    assert reports.metrics == {"accuracy": 1.0, "steps": 10.0}
    reports.add_output("stdout", b"accuracy: 1\naccuracy: 0.93\nsteps: 20\n", 1.0)
    reports.add_output("stdout", b"accuracy: 1\n", 2.0)
    reports.finish(3.0)
    assert reports.metrics == {"steps": 20.0}
    assert reports.problem == f"accuracy was not read, because its pattern takes 0 of 0.93; write 'accuracy: {NUMBER}'"


def test_a_statistic_forgets_the_values_before_a_cut_one() -> None:
    limit = {"name": "mean(latency)", "metric": "latency", "statistic": "mean", "at_least": False, "bound": 9.0}
    reports = Reports("/no/such/file", {"latency": r"latency: (\d+)"}, streams=Streams([limit]))
    reports.add_output("stdout", b"latency: 5\nlatency: 7\n", 0.0)
    assert reports.streams.statistics() == {"mean(latency)": 6.0}
    reports.add_output("stdout", b"latency: 5.5\nlatency: 7\n", 1.0)
    reports.finish(2.0)
    assert reports.metrics == {}
