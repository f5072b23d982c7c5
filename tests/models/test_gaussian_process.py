"""Regression against the textbook, updates against refits, degenerate data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from lynceus.models.gaussian.kernel import Hyper, Inputs
from lynceus.models.gaussian.prior import Settings
from lynceus.models.gaussian.regression import GaussianModel, fit, fit_given
from lynceus.space.column import FloatArray, IntArray

KINDS = ["numeric", "categorical", "log"]


def table(size: int, seed: int = 0) -> FloatArray:
    generator = np.random.default_rng(seed)
    return np.column_stack(
        [generator.random(size) * 7.0, generator.integers(0, 3, size), generator.integers(0, 5, size)]
    ).astype(np.float64)


def members(count: int, seed: int = 0, *, smooth: bool = True) -> Hyper:
    """Hyper-parameters for two numeric features and one category."""
    theta = np.random.default_rng(seed).normal([0.0, 0.2, -0.5, 0.3, -3.0], 0.5, (count, 5))
    return Hyper.of_logs(theta, 2, 0.7, smooth=smooth)


def textbook_covariance(features: FloatArray, hyper: Hyper, member: int) -> FloatArray:
    """k by two plain loops over rows."""
    scaled = features.copy()
    for column in (0, 2):
        scaled[:, column] = (features[:, column] - features[:, column].min()) / np.ptp(features[:, column])
    lengths = np.sqrt((5.0 if hyper.smooth else 1.0) / hyper.roughness[member])
    out = np.empty((len(features), len(features)))
    for i, left in enumerate(scaled):
        for j, right in enumerate(scaled):
            r = np.sqrt(((left[0] - right[0]) / lengths[0]) ** 2 + ((left[2] - right[2]) / lengths[1]) ** 2)
            matern = (
                (1.0 + np.sqrt(5.0) * r + 5.0 * r**2 / 3.0) * np.exp(-np.sqrt(5.0) * r) if hyper.smooth else np.exp(-r)
            )
            alike = np.exp(-hyper.unlikeness[member, 0]) if left[1] != right[1] else 1.0
            out[i, j] = hyper.signal[member] * matern * alike + hyper.constant
    return out


def data(features: FloatArray, count: int, seed: int = 0) -> tuple[IntArray, FloatArray]:
    generator = np.random.default_rng(seed)
    rows = generator.integers(0, len(features), count)
    return rows, np.sin(features[rows, 0]) + 0.3 * features[rows, 1] + 0.1 * generator.standard_normal(count)


@pytest.mark.parametrize("smooth", [True, False])
def test_one_member_is_the_textbook_formula(smooth: bool) -> None:
    features, hyper = table(30), members(1, smooth=smooth)
    rows, y = data(features, 9)
    model = fit_given(Inputs.of(features, KINDS), hyper, np.ones(1), rows, y)
    whole = textbook_covariance(features, hyper, 0)
    noisy = whole[np.ix_(rows, rows)] + hyper.noise[0] * np.eye(len(rows))
    cross = whole[rows]
    assert model.mean == pytest.approx(cross.T @ np.linalg.solve(noisy, y), abs=1e-8)
    variance = np.diag(whole - cross.T @ np.linalg.solve(noisy, cross))
    assert model.std == pytest.approx(np.sqrt(variance), abs=1e-8)
    assert model.noise == pytest.approx(np.sqrt(hyper.noise[0]))


def test_members_are_weighted_by_evidence_and_mixed_by_moments() -> None:
    features, hyper = table(25), members(3)
    rows, y = data(features, 7)
    inputs, before = Inputs.of(features, KINDS), np.array([0.5, 0.3, 0.2])
    model = fit_given(inputs, hyper, before, rows, y)
    alone = [fit_given(inputs, hyper.only(slice(i, i + 1)), np.ones(1), rows, y) for i in range(3)]
    evidence = np.array(
        [
            multivariate_normal.pdf(
                y, cov=textbook_covariance(features, hyper, i)[np.ix_(rows, rows)] + hyper.noise[i] * np.eye(7)
            )
            for i in range(3)
        ]
    )
    weights = before * evidence / (before @ evidence)
    assert model.weights == pytest.approx(weights, abs=1e-9)
    mean = sum(w * m.mean for w, m in zip(weights, alone, strict=True))
    second = sum(w * (m.std**2 + m.mean**2) for w, m in zip(weights, alone, strict=True))
    assert model.mean == pytest.approx(mean, abs=1e-9)
    assert model.std == pytest.approx(np.sqrt(second - mean**2), abs=1e-8)


@given(st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 8))
@settings(max_examples=25, deadline=None)
def test_conditioning_is_refitting_with_the_same_members(seed: int, extra: int, count: int) -> None:
    features, hyper = table(20, seed), members(3, seed)
    rows, y = data(features, count, seed)
    inputs, before = Inputs.of(features, KINDS), np.array([0.2, 0.5, 0.3])
    model = fit_given(inputs, hyper, before, rows, y)
    generator = np.random.default_rng(seed)
    extra_rows, extra_y = generator.integers(0, 20, (4, extra)), generator.standard_normal((4, extra))
    mean, std = model.condition(extra_rows, extra_y)
    for case in range(4):
        again = fit_given(inputs, hyper, before, np.r_[rows, extra_rows[case]], np.r_[y, extra_y[case]])
        assert mean[case] == pytest.approx(again.mean, abs=1e-8)
        assert std[case] == pytest.approx(again.std, abs=1e-8)


def test_conditioning_keeps_the_units_of_a_fitted_model() -> None:
    features = table(40)
    rows, y = data(features, 10)
    model = fit(features, KINDS, rows, 100.0 + 20.0 * y, seed=3, settings=Settings(spread=None))
    wanted = np.array([[5], [6]])
    imagined = model.mean[wanted] + 0.5 * model.std[wanted]  # near the mean: an outlier may favour noisier members
    mean, std = model.condition(wanted, imagined)
    assert mean.shape == std.shape == (2, 40)
    for case, row in enumerate((5, 6)):
        assert model.mean[row] < mean[case, row] < imagined[case, 0]
        assert std[case, row] < model.std[row]
    assert 80.0 < mean.mean() < 140.0


def test_chunks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    features = table(50)
    rows, y = data(features, 8)
    whole = fit(features, KINDS, rows, y, seed=1)
    extra_rows, extra_y = np.arange(50)[:, np.newaxis], np.linspace(-1.0, 1.0, 50)[:, np.newaxis]
    expected = whole.condition(extra_rows, extra_y)
    monkeypatch.setattr("lynceus.models.gaussian.regression._CHUNK", 500)
    chunked = fit(features, KINDS, rows, y, seed=1)
    assert chunked.mean == pytest.approx(whole.mean, abs=1e-10)
    assert chunked.std == pytest.approx(whole.std, abs=1e-10)
    for got, want in zip(chunked.condition(extra_rows, extra_y), expected, strict=True):
        assert got == pytest.approx(want, abs=1e-9)


def test_joint_draws_have_the_models_moments() -> None:
    features, hyper = table(12), members(2)
    rows, y = data(features, 5)
    model = fit_given(Inputs.of(features, KINDS), hyper, np.array([0.6, 0.4]), rows, y)
    some = np.array([0, 3, 3, 7])
    draws = model.draws(some, 40_000, seed=2)
    assert draws.shape == (40_000, 4)
    error = model.std[some] / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - model.mean[some]) <= 5.0 * error).all()
    assert draws.std(axis=0) == pytest.approx(model.std[some], rel=0.03)
    assert draws[:, 1] == pytest.approx(draws[:, 2], abs=1e-4)  # the same row twice is the same value
    alike = fit_given(Inputs.of(features, KINDS), hyper.only(slice(0, 1)), np.ones(1), rows, y).draws(some, 40_000, 5)
    whole = textbook_covariance(features, hyper, 0)
    noisy = whole[np.ix_(rows, rows)] + hyper.noise[0] * np.eye(5)
    exact = whole[0, 7] - whole[0, rows] @ np.linalg.solve(noisy, whole[rows, 7])
    assert np.cov(alike[:, 0], alike[:, 3])[0, 1] == pytest.approx(exact, abs=0.03)


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_covariances_are_positive_semidefinite(seed: int) -> None:
    inputs, rows = Inputs.of(table(25, seed), KINDS), np.arange(25)
    for matrix in members(4, seed).covariance(inputs.gaps(rows[:, np.newaxis], rows)):
        assert np.linalg.eigvalsh(matrix).min() >= -1e-9
        assert matrix == pytest.approx(matrix.T)


def assert_sound(model: GaussianModel) -> None:
    assert np.isfinite(model.mean).all()
    assert np.isfinite(model.std).all()
    assert (model.std > 0.0).all()
    assert model.noise > 0.0
    assert model.weights.sum() == pytest.approx(1.0)
    mean, std = model.condition(np.array([[0, 0]]), np.array([[model.mean[0], model.mean[0] + 1.0]]))
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert np.isfinite(model.draws(np.arange(len(model.mean)), 3, seed=0)).all()


@pytest.mark.parametrize("spread", [1.0, None])
@pytest.mark.parametrize(
    ("rows", "y", "censored"),
    [
        ([3], [2.0], [False]),
        ([3], [0.0], [True]),
        ([1, 2, 3], [5.0, 5.0, 5.0], [False, False, False]),
        ([4, 4, 4, 4], [1.0, 2.0, 1.5, 1.2], [False] * 4),
        ([1, 2, 3], [1.0, 2.0, 3.0], [True, True, True]),
        ([1, 1, 2], [1.0, 9.0, -4.0], [False, True, False]),
        ([0, 1, 2], [1e9, -1e9, 3e9], [False, False, False]),
        ([0, 1, 2], [1e-9, 2e-9, 3e-9], [False, False, True]),
        (list(range(20)) * 3, list(np.linspace(0, 1, 60)), [False] * 60),
    ],
)
def test_degenerate_data_give_a_sound_model(
    rows: list[int], y: list[float], censored: list[bool], spread: float | None
) -> None:
    features = table(20)
    assert_sound(
        fit(features, KINDS, np.array(rows), np.array(y), 0, Settings(spread=spread), censored=np.array(censored))
    )


@pytest.mark.parametrize(
    ("features", "kinds"),
    [
        (np.linspace(0.0, 1.0, 10)[:, np.newaxis], ["numeric"]),
        (np.arange(10.0)[:, np.newaxis] % 3, ["categorical"]),
        (np.ones((10, 2)), ["numeric", "categorical"]),
        (np.zeros((10, 0)), []),
        (np.column_stack([np.arange(10.0)] * 30), ["log"] * 30),
    ],
)
def test_degenerate_tables_give_a_sound_model(features: FloatArray, kinds: list[str]) -> None:
    assert_sound(fit(features, kinds, np.array([0, 4, 9]), np.array([1.0, 2.0, 4.0]), seed=0))


def test_a_table_of_one_row_gives_a_sound_model() -> None:
    assert_sound(fit(np.array([[1.0]]), ["numeric"], np.array([0, 0]), np.array([1.0, 1.1]), seed=0))


def test_the_seed_determines_the_model() -> None:
    features = table(60)
    rows, y = data(features, 12)
    first, again, other = (fit(features, KINDS, rows, y, seed) for seed in (4, 4, 5))
    assert (first.mean == again.mean).all()
    assert (first.std == again.std).all()
    assert (first.mean != other.mean).any()
    assert np.abs(first.mean - other.mean).mean() < 0.5 * first.std.mean()


def test_predictions_are_accurate_and_calibrated() -> None:
    features = table(200, seed=9)
    truth = np.sin(features[:, 0]) + 0.3 * features[:, 1]
    rows = np.random.default_rng(1).choice(200, 40, replace=False)
    rest = np.setdiff1d(np.arange(200), rows)
    noise = 0.1 * np.random.default_rng(2).standard_normal(40)
    model = fit(features, KINDS, rows, truth[rows] + noise, seed=0)
    error = (model.mean - truth)[rest]
    assert np.sqrt(np.mean(error**2)) < 0.3 * truth.std()
    assert 0.5 < np.mean(np.abs(error) <= model.std[rest]) < 0.98
    assert model.std[rows].mean() < model.std[rest].mean()


def test_a_useless_feature_is_recognised() -> None:
    generator = np.random.default_rng(3)
    features = generator.random((100, 2))
    y = np.sin(6.0 * features[:, 0])
    model = fit(features, ["numeric", "numeric"], np.arange(30), y[:30], seed=0)
    lengths = np.sqrt(5.0 / model.hyper.roughness)
    assert model.weights @ np.log(lengths[:, 1]) > model.weights @ np.log(lengths[:, 0]) + 1.0


def test_invalid_arguments_are_errors() -> None:
    features, one = table(10), np.array([1.0])
    with pytest.raises(ValueError, match="kinds"):
        fit(features, ["numeric"], np.array([0]), one, 0)
    with pytest.raises(ValueError, match="kinds"):
        fit(features, ["numeric", "nominal", "log"], np.array([0]), one, 0)
    with pytest.raises(ValueError, match=r"rows must lie in 0\.\.9, got 10\.\.10"):
        fit(features, KINDS, np.array([10]), one, 0)
    with pytest.raises(ValueError, match="n >= 1"):
        fit(features, KINDS, np.array([], dtype=int), np.array([]), 0)
    with pytest.raises(ValueError, match="finite, got nan at position 1"):
        fit(features, KINDS, np.array([0, 1]), np.array([1.0, np.nan]), 0)
    with pytest.raises(ValueError, match="must both be"):
        fit(features, KINDS, np.array([0]), one, 0).condition(np.array([0]), one)
    for wrong in ({"draws": 0}, {"log_noise": (0.0, 0.0)}, {"spread": 0.0}, {"constant": -1.0}):
        with pytest.raises(ValueError, match="must"):
            Settings(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("smooth", [True, False])
def test_large_tables_are_predicted_in_single_precision(smooth: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    features = table(400)
    rows, y = data(features, 30)
    options = Settings(smooth=smooth, slope=0.3)
    exact = fit(features, KINDS, rows, y, 1, options, trend=features[:, 0])
    monkeypatch.setattr("lynceus.models.gaussian.regression._EXACT_ROWS", 399)
    rounded = fit(features, KINDS, rows, y, 1, options, trend=features[:, 0])
    assert not np.array_equal(rounded.mean, exact.mean)
    assert np.abs((rounded.mean - exact.mean) / exact.std).max() < 1e-3
    assert rounded.std == pytest.approx(exact.std, rel=1e-3)
