"""The prior learned from tables, against tables drawn from a known law."""

import itertools

import numpy as np
import pytest
import yaml

from lynceus.errors import InputError
from lynceus.models.gaussian.prior import Settings
from lynceus.policy.learned_prior import LearnedPrior, Normal, learned_prior, read_prior
from lynceus.replay.job import load_job
from lynceus_lab.families_file import SHIPPED, load_families
from lynceus_lab.prior_learning import NAMES, Spread, combined, document, learn, learn_job, text


def write_table(folder, name, slope, std, seed):
    """A job whose times are price^slope, times independent noise."""
    rng = np.random.default_rng(seed)
    lines = ["machine,nodes,time_s,usd"]
    for (machine, dollars), nodes in itertools.product(
        (("m", 0.1), ("c", 0.13), ("r", 0.2)), (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
    ):
        usd = dollars * nodes
        lines.append(f"{machine},{nodes},{600 * usd**slope * np.exp(rng.normal(0, std)):.3f},{usd:.4f}")
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    parameters = "{machine: {kind: categorical}, nodes: {log: true}}"
    (folder / f"{name}.yaml").write_text(f"table: {name}.csv\nparameters: {parameters}\nprice: usd\ndeadline: 10min\n")
    return folder / f"{name}.yaml"


def test_the_slope_the_noise_and_the_offset_of_a_table_are_found(tmp_path):
    job = load_job(write_table(tmp_path / "a", "one", -0.7, 0.2, 1))
    found = learn_job(job, [600.0, 600.0 * np.e], seed=3)
    assert found["slope"].mean == pytest.approx(-0.7, abs=0.15)
    assert 0.01 < found["slope"].posterior ** 0.5 < 0.3
    # What does not follow the price is noise or rough signal of variance 0.04 in all.
    rest = np.exp(found["log_noise"].mean) + np.exp(found["log_signal"].mean)
    assert 0.02 < rest < 0.2
    mean_price = np.log(job.problem.space.size_price * 3600).mean()
    assert found["offset"].mean == pytest.approx(
        -0.7 * mean_price - 0.5, abs=0.4
    )  # ln 600 minus the mean of both deadlines
    assert found["offset"].variance == pytest.approx(0.25)
    assert found == learn_job(job, [600.0, 600.0 * np.e], seed=3)


def test_a_family_counts_once_and_variances_add_up():
    one, two, three = ({"slope": Spread(mean, 0.0, post)} for mean, post in ((-1.0, 0.1), (-0.5, 0.3), (0.0, 0.5)))
    family = combined([one, two])
    assert family["slope"] == Spread(-0.75, pytest.approx(0.125), pytest.approx(0.2))
    whole = combined([family, three, {}])["slope"]
    assert whole.mean == pytest.approx(-0.375)
    assert whole.variance == pytest.approx(2 * 0.375**2 + 0.125 / 2)
    assert whole.posterior == pytest.approx(0.35)


def test_the_document_leaves_every_family_out_and_can_be_read(tmp_path):
    for family, slope in (("a", -1.0), ("b", -0.3)):
        for number in range(2):
            write_table(tmp_path / family, f"job{number}", slope, 0.1, number)
    path = tmp_path / "families.yaml"
    path.write_text("families: {a: {jobs: a/*.yaml}, b: {jobs: b/*.yaml}}\nvariants: {x: lynceus}\n")
    told = []
    found = learn(load_families(path, variants_only=True), 0, told.append)
    assert told == ["a: 2 tables", "b: 2 tables"]
    data = yaml.safe_load(text(document(found, 0)))
    every, only_b = read_prior(data["all"]), read_prior(data["without"]["a"])
    assert every.slope.mean == pytest.approx(-0.65, abs=0.15)
    assert every.slope.std == pytest.approx(0.5, abs=0.15)
    assert only_b.slope.mean == pytest.approx(-0.3, abs=0.15)
    assert data["family"]["b"]["slope"] == data["without"]["a"]["slope"]
    assert set(data["all"]) == set(NAMES)


def test_settings_take_the_learned_numbers():
    numbers = {name: Normal(place, place + 0.5) for place, name in enumerate(NAMES)}
    settings = LearnedPrior(**numbers).settings(Settings(smooth=False))
    assert (settings.log_length, settings.log_noise, settings.smooth) == ((2, 2.5), (5, 5.5), False)


def test_the_shipped_prior_knows_every_family():
    every = learned_prior()
    assert -1.2 < every.slope.mean < 0.0
    assert every.settings(Settings()).log_noise == (every.log_noise.mean, every.log_noise.std)
    for family in yaml.safe_load(SHIPPED.read_text())["families"]:
        assert learned_prior(family) != every
    with pytest.raises(InputError, match="there is no family 'tensorflo'; did you mean 'tensorflow'"):
        learned_prior("tensorflo")
