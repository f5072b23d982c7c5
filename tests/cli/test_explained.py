"""What `lynceus explain` says of few runs: counts, since a share of one run means nothing."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from lynceus.cli.explained import print_explanation
from lynceus.insight import Calibration
from lynceus.insight.calibration import Prediction
from lynceus.policy import Because, Stopped
from lynceus.problem import Problem
from lynceus.space import Categorical, Space


@pytest.mark.parametrize(
    ("predictions", "words"),
    [
        ([], "no run was predicted"),
        ([Prediction(0, 1.0, 2.0, 3.0, 9.0, censored=False)], "0 of 1 runs lay in their 80 % interval"),
        ([Prediction(0, 1.0, 2.0, 3.0, 2.0, censored=True)], "no interval could be judged"),
        (
            [Prediction(0, 1.0, 2.0, 3.0, 2.5, censored=False), Prediction(1, 1.0, 2.0, 3.0, 4.0, censored=True)],
            "1 of 2 runs lay in their 80 % interval",
        ),
    ],
)
def test_intervals_are_judged_by_counts(predictions: list[Prediction], words: str) -> None:
    problem = Problem(Space.build([Categorical("vm", ["small", "large"])], price="1"))
    text = io.StringIO()
    stopped = Stopped(Because.USER, "stopped")
    print_explanation(Console(file=text, width=200), problem, stopped, (), (), Calibration(tuple(predictions)))
    assert words in text.getvalue()
