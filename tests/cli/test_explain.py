"""`lynceus explain`: how predictions are judged."""

import io

import pytest
from rich.console import Console

from lynceus.analysis.calibration import Calibration, PredictedRun
from lynceus.cli.explain import print_calibration


@pytest.mark.parametrize(
    ("predictions", "text"),
    [
        ([], "no run was predicted"),
        ([PredictedRun(0, 1.0, 2.0, 3.0, 9.0, censored=False)], "0 of 1 run lay in its 80 % interval"),
        ([PredictedRun(0, 1.0, 2.0, 3.0, 2.0, censored=True)], "no interval can be judged"),
        (
            [PredictedRun(0, 1.0, 2.0, 3.0, 2.5, censored=False), PredictedRun(1, 1.0, 2.0, 3.0, 4.0, censored=True)],
            "1 of 2 runs lay in their 80 % interval",
        ),
    ],
)
def test_intervals_are_judged_by_counts(predictions: list[PredictedRun], text: str) -> None:
    printed = io.StringIO()
    print_calibration(Console(file=printed, width=200), Calibration.of(predictions))
    assert text in printed.getvalue()
