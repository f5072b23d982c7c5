"""Experiments by name and from files, and what is said when one of their names is unknown."""

import pytest

from lab_cases import changed
from lynceus.errors import InputError
from lynceus.lab.cell import loaded, run_cell
from lynceus.lab.experiment import load_experiment, shipped_experiments
from lynceus.lab.spec import OptionsSpec


@pytest.mark.parametrize("name", shipped_experiments())
def test_every_experiment_that_ships_can_be_read(name):
    experiment = load_experiment(name)
    assert experiment.spec.title
    assert experiment.spec.claims or experiment.spec.figures
    assert len(experiment.cells()) == sum(len(experiment.seeds(place.policy)) for place in experiment.settings)


def test_claims_that_ship_have_names_of_their_own():
    ids = [claim.id for name in shipped_experiments() for claim in load_experiment(name).spec.claims]
    assert len(ids) == len(set(ids)) >= 50


def test_cells_come_seed_by_seed(experiment_file):
    cells = load_experiment(experiment_file).cells()
    assert [cell.seed for cell in cells] == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3


def test_a_competitor_may_have_fewer_seeds(experiment_file):
    changed(experiment_file, "{preset: lynceus-2020, lookahead: 0}", "{preset: lynceus-2020, lookahead: 0, seeds: 2}")
    experiment = load_experiment(experiment_file)
    assert len(experiment.cells()) == 4 + 2 + 4
    assert len(experiment.cells(1)) == 3
    assert {cell.setting for cell in experiment.cells(policies=["LA=0"])} == {
        setting for place, setting in experiment.settings.items() if place.policy == "LA=0"
    }


def test_variants_and_worlds_multiply(experiment_file):
    text = 'variants:\n  "2": {budget: {means: 2}}\n  "4": {budget: {means: 4}}\nworlds: {calm: null, noisy: {noise: 0.1}}\nseeds: 4\n'
    changed(experiment_file, "seeds: 4\n", text)
    experiment = load_experiment(experiment_file)
    assert experiment.variants == ["2, calm", "2, noisy", "4, calm", "4, noisy"]
    assert len({setting.fingerprint for setting in experiment.settings.values()}) == 12


def test_equal_settings_have_equal_fingerprints_and_others_not(experiment_file):
    first = load_experiment(experiment_file)
    again = load_experiment(experiment_file)
    assert first.settings == again.settings
    prints = [setting.fingerprint for setting in first.settings.values()]
    changed(experiment_file, "seeds: 4\n", "seeds: 4\noptions: {deadline: {quantile: 0.8}}\n")
    later = [setting.fingerprint for setting in load_experiment(experiment_file).settings.values()]
    assert not set(prints) & set(later)


def test_options_change_the_job(job):
    plain = loaded(str(job), OptionsSpec())
    seconds = plain.measurements.seconds
    changes = {
        "deadline": {"fastest": 3.0},
        "budget": {"means": 2.0},
        "where": "nodes >= 2",
        "billing": {"minimum": 600},
    }
    other = loaded(str(job), OptionsSpec.model_validate(changes))
    assert len(other.problem.space) == 18
    kept = seconds[[i for i in range(24) if plain.problem.space.point(i)["nodes"] >= 2]]
    assert other.problem.deadline_s == pytest.approx(3 * kept.min())
    charges = other.problem.tariff.charges(kept, other.problem.price)
    assert other.problem.budget.usd == pytest.approx(2 * charges.mean())
    assert other.problem.tariff.minimum_s == 600


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("random+timeouts", "rondom", "there is no 'rondom'; choose one of lynceus"),
        ("baseline: plain", "baseline: plane", "baseline: there is no policy 'plane' in this experiment; did you mean"),
        ("of: plain", "of: plan", "there is no policy 'plan' in this experiment; did you mean 'plain'?"),
        ("level: 1,", "level: 1, variant: x,", "there is no variant 'x' in this experiment"),
        ("level: 1,", "level: 1, jobs: [other],", "the experiment has no job 'other'"),
        ("seeds: 4", "seeds: 0", "seeds: 0 came"),
        ("seeds: 4", "sedes: 4", "there is no field 'sedes'; did you mean 'seeds'?"),
        ("jobs: [", "jobs: [tensorflow/cnnn, ", "there is no job 'tensorflow/cnnn'; did you mean 'tensorflow/cnn'?"),
        ("jobs: [", "jobs: ['nothing/*', ", "no job that ships is like 'nothing/*'"),
        ("plain: random", "plain: {preset: random, peer: optuna-tpe}", "preset and peer came; give exactly one"),
        ("plain: random", "plain: {peer: optuna}", "there is no peer 'optuna'; did you mean 'optuna-gp'?"),
        ("plain: random", "plain: {policy: {choose: unifrom}}", "'unifrom' is not known; did you mean 'uniform'?"),
        ('holds: "> 0.1"', 'holds: "=> 0.1"', "claims.0.holds: cannot read the condition '=> 0.1'; write '>= 2'"),
        (
            'holds: "> 0.1"',
            'holds: "0.5..0.1"',
            "claims.0.holds: no number is in '0.5..0.1'; write the smaller end first",
        ),
        (
            'holds: "> 0.1"',
            'holds: "> 0.1"\n    direction: "more"',
            "claims.0.direction: cannot read the condition 'more'",
        ),
        ("to: capped, ", "", "claims.0.measure: a ratio needs the field 'to', which is missing"),
        (
            "kind: ratio, of: plain,",
            "kind: saving,",
            "claims.0.measure: a saving needs the field 'of', which is missing",
        ),
        ("kind: ratio,", "kind: table,", "claims.0.measure: a table needs the field 'fact', which is missing"),
        (
            "kind: ratio,",
            "kind: table, fact: wurst,",
            "claims.0.measure.fact: there is no fact 'wurst'; did you mean 'worst'?",
        ),
        (
            "level: 1.1}",
            "policies: [plan]}",
            "figures.0.policies: there is no policy 'plan' in this experiment; did you",
        ),
        ("level: 1.1}", "jobs: [other]}", "figures.0.jobs: the experiment has no job 'other'"),
        ("seeds: 4", "seeds: 4\nuntil: 0.5", "until: 0.5 came; give optimum, end, or a CNO of at least 1."),
        ("seeds: 4", "seeds: 4\ntrials: 0", "trials: 0 came, but"),
        (
            "seeds: 4",
            "seeds: 4\noptions: {deadline: {quantile: 0.5, fastest: 2}}",
            "options.deadline: quantile and fastest came; give exactly one of quantile and fastest.",
        ),
        (
            "seeds: 4",
            "seeds: 4\nvariants: {poor: {budget: {usd: 1, means: 2}}}",
            "variants.poor.budget: usd and means came; give exactly one of usd and means.",
        ),
        (
            "plain: random\n",
            "plain: random\n  TPE: {peer: optuna-tpe}\nworlds: {calm: null, noisy: {noise: 0.1}}\n",
            "worlds.noisy: 'TPE' is a peer, and peers run in the calm world only, not in 'noisy'",
        ),
        (
            "plain: random\n",
            "plain: random\n  TPE: {peer: optuna-tpe}\nworld: {failures: 0.1}\n",
            "world: 'TPE' is a peer, and peers run in the calm world only",
        ),
        (
            "plain: random\n",
            "plain: random\n  TPE: {peer: optuna-tpe}\nparallel: 2\n",
            "parallel: 'TPE' is a peer, and peers run one trial at a time, not 2",
        ),
    ],
)
def test_a_mistake_is_one_sentence(experiment_file, old, new, message):
    changed(experiment_file, old, new)
    with pytest.raises(InputError) as caught:
        load_experiment(experiment_file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_peer_runs_in_a_world_without_misfortunes(experiment_file):
    changed(
        experiment_file,
        "plain: random\n",
        "plain: random\n  TPE: {peer: optuna-tpe}\nworlds: {calm: null, still: {}}\n",
    )
    assert len(load_experiment(experiment_file).settings) == 8


def test_an_unknown_experiment_is_told_the_nearest():
    with pytest.raises(InputError, match="there is no experiment 'icdcs20-fig44'; did you mean 'icdcs20-fig4'"):
        load_experiment("icdcs20-fig44")


def test_a_missing_data_folder_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("LYNCEUS_DATA", str(tmp_path / "nowhere"))
    cell = load_experiment("icdcs20-fig7").cells(1)[0]
    loaded.cache_clear()
    with pytest.raises(
        InputError,
        match=r"the table 'tensorflow/cnn.csv' is not beside the document; put it there, or set LYNCEUS_DATA",
    ):
        run_cell(cell)


def test_a_table_with_nan_is_one_sentence(experiment_file, job):
    table = job.with_name("toy.csv")
    table.write_text(table.read_text().replace("small,1,0.01,3640.0", "small,1,0.01,nan"))
    loaded.cache_clear()
    with pytest.raises(
        InputError, match=r"column 'time_s' of toy\.csv holds nothing in row 2; every configuration needs a time"
    ):
        run_cell(load_experiment(experiment_file).cells()[0])
