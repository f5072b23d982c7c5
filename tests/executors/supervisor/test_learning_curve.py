"""Learning curves: what is extrapolated, when a run is stopped, and how often that is wrong."""

import csv
import math
import os
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lynceus.executors.command import Target
from lynceus.executors.supervisor.learning_curve import LearningCurve, extrapolated
from lynceus.trial.outcome import End

DATA = Path(os.environ.get("LYNCEUS_DATA", Path(__file__).parents[4] / "shared" / "data")) / "tensorflow"


def stopped_at(
    points: list[tuple[float, float]], target: float, end_s: float, error_rate: float = 0.05
) -> float | None:
    """When a run with this curve is stopped; None if it is not."""
    curve = LearningCurve("accuracy", target, above=True, end_s=end_s, error_rate=error_rate)
    for x, y in points:
        curve.add("accuracy", y, x)
        if curve.verdict():
            return x
    return None


def mean_of(points: list[tuple[float, float]], end: float, scale: float) -> float:
    return sum(one.share * one.mean for one in extrapolated(points, end, scale))


@given(st.floats(0.1, 1.0), st.floats(0.05, 0.6), st.floats(0.3, 2.0))
def test_a_power_law_is_recognised(limit: float, gap: float, power: float) -> None:
    points = [(float(x), limit - gap * x**-power) for x in range(1, 13)]
    truth = limit - gap * 40.0**-power
    assert abs(mean_of(points, 40.0, gap / 4) - truth) < 0.15 * gap


@given(st.floats(0.01, 100.0), st.floats(-5.0, 5.0))
def test_units_do_not_matter(factor: float, shift: float) -> None:
    points = [(float(x), 0.9 - 0.5 / x + 0.01 * math.sin(9 * x)) for x in range(1, 10)]
    found = extrapolated(points, 20.0, 0.1)
    assert sum(one.share for one in found) == pytest.approx(1.0)
    scaled = extrapolated([(60 * x, factor * y + shift) for x, y in points], 1200.0, 0.1 * factor)
    for one, other in zip(found, scaled, strict=True):
        assert other.mean == pytest.approx(factor * one.mean + shift, rel=1e-6, abs=1e-6)
        assert (other.share, other.std) == pytest.approx((one.share, factor * one.std), rel=1e-5, abs=1e-9)


def test_a_flat_curve_far_below_its_target_is_stopped_early() -> None:
    rng = random.Random(0)
    flat = [(float(x), 0.3 + rng.gauss(0, 0.005)) for x in range(1, 31)]
    at = stopped_at(flat, 0.9, 30.0)
    assert at is not None
    assert at < 25
    assert stopped_at(flat, 0.25, 30.0) is None, "it has reached this one"


def test_a_training_that_starts_slowly_is_not_given_up() -> None:
    late = [(float(x), 0.1 + 0.85 / (1 + math.exp(-(x - 15) / 2.5))) for x in range(1, 31)]
    assert stopped_at(late, 0.9, 30.0) is None


def test_a_loss_that_has_to_fall() -> None:
    curve = LearningCurve("loss", 0.1, above=False, end_s=100.0)
    verdicts = []
    for x in range(1, 40):
        curve.add("loss", 1.0 + 1.0 / x, float(x))
        verdicts.append(curve.verdict())
    assert any(verdicts)
    assert "loss was 1." in next(filter(None, verdicts))


def test_progress_says_where_a_run_without_a_timeout_ends() -> None:
    verdicts = {}
    for reports_progress in (True, False):
        curve = LearningCurve("accuracy", 0.9, above=True, end_s=math.inf)
        for x in range(1, 40):
            if reports_progress:
                curve.add("progress", x / 50, float(x))
            curve.add("accuracy", 0.3, float(x))
            verdicts[reports_progress] = verdicts.get(reports_progress) or curve.verdict()
    assert "accuracy was 0.3" in verdicts[True]
    assert verdicts[False] == "", "nothing is known about the end"


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the measured tables (LYNCEUS_DATA)")
def test_measured_trainings_are_hardly_ever_stopped_wrongly() -> None:
    """Real trainings of three networks to 85 % within ten minutes; the constants were chosen on other trainings."""
    reaching = wrong = missing = stopped = 0
    for name in ("cnn", "multilayer", "rnn"):
        with (DATA / f"{name}.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for row in rows[::4]:
            values = [float(one) for one in row["accuracy_every_30s"].split()]
            reached = next((place for place, value in enumerate(values) if value >= 0.85), None)
            points = [(30.0 * (place + 1), value) for place, value in enumerate(values)]
            at = stopped_at(points if reached is None else points[: reached + 1], 0.85, 600.0)
            reaching, wrong = reaching + (reached is not None), wrong + (reached is not None and at is not None)
            missing, stopped = missing + (reached is None), stopped + (reached is None and at is not None)
    assert reaching > 90
    assert wrong <= 0.01 * reaching, (
        f"{wrong} of {reaching} trainings that reach the target were stopped; 5 % are allowed"
    )
    assert stopped > 0.35 * missing, f"only {stopped} of {missing} that miss it were stopped"


def test_a_hopeless_run_is_stopped_by_its_supervisor(bench) -> None:
    script = """
    i=100
    while [ $i -lt 900 ]; do
      i=$((i+1)); echo "{\\"accuracy\\": 0.3, \\"progress\\": 0.$i}" >> "$LYNCEUS_RESULT"; sleep 0.05
    done
    """
    one = bench(script, targets=(Target("accuracy", 0.9, at_least=True, end_s=600.0, error_rate=0.05),))
    outcome = one.wait(one.launch())
    assert outcome.end is End.TIMEOUT, outcome
    assert "accuracy was 0.3 and will be about 0.3" in outcome.detail
    assert outcome.metrics["accuracy"] == 0.3
    assert outcome.seconds < 60
