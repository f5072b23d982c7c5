"""Experiments by name and from files, and the messages for their errors."""

import json
import re

import pytest

from lab_cases import changed
from lynceus.errors import InputError
from lynceus.policy.designs import Amount, UniformRows
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.policy_file import compose
from lynceus.policy.timeouts.rules import NoTimeout
from lynceus_lab.cell import loaded, run_cell
from lynceus_lab.experiment import load_experiment, shipped_experiments
from lynceus_lab.experiment_file import OptionsSpec


@pytest.mark.parametrize("name", shipped_experiments())
def test_every_shipped_experiment_is_valid(name):
    experiment = load_experiment(name)
    assert experiment.spec.title
    assert experiment.spec.claims or experiment.spec.figures
    assert len(experiment.cells()) == sum(len(experiment.seeds(place.policy)) for place in experiment.settings)


def test_the_ids_of_shipped_claims_are_unique():
    ids = [claim.id for name in shipped_experiments() for claim in load_experiment(name).spec.claims]
    assert len(ids) == len(set(ids)) >= 50


_PAPERS = ("ICDCS'20", "Mendes 2019", "OBOL", "thesis")


def _policy_without_start_dollars(setting):
    """The parts of a policy; figures of one paper differ in the dollars of the initial samples."""
    return re.sub(r'"(name|usd)": ("[^"]*"|[0-9.]+)', "", json.dumps(setting.written()["policy"]))


def test_a_label_means_one_policy_in_the_experiments_of_a_paper_and_bo_means_one_everywhere():
    meanings = {}
    for name in shipped_experiments():
        experiment = load_experiment(name)
        paper = next((one for one in _PAPERS if experiment.spec.source.startswith(one)), "ours")
        for place, setting in experiment.settings.items():
            scope = "everywhere" if place.policy.startswith("BO") else paper
            policies = meanings.setdefault((scope, place.policy), {})
            policies.setdefault(_policy_without_start_dollars(setting), name)
    assert {label: list(names.values()) for label, names in meanings.items() if len(names) > 1} == {}
    assert ("everywhere", "BO LA=2") in meanings


DIMENSIONS = " (5 dimensions)"


def test_policies_of_the_papers_that_read_the_varied_dimensions_alone_say_so():
    papers = [load_experiment(name) for name in shipped_experiments() if name.startswith(("icdcs20", "obol", "thesis"))]
    policies = {
        place.policy: compose(json.loads(setting.policy))
        for experiment in papers
        for place, setting in experiment.settings.items()
    }
    reading = {label for label, one in policies.items() if getattr(one.surrogate, "inputs", "") == "parameters"}
    named = {label for label in policies if label.endswith(DIMENSIONS)}
    assert reading - {"LA=0, authors' program", "LA=1, authors' program"} == named
    assert len(named) >= 5


@pytest.mark.parametrize("name", [name for name in shipped_experiments() if name == "obol" or "thesis-fig4." in name])
def test_obol_and_the_thesis_are_set_up_as_they_say(name):
    """Three readings of the price, of which the text's own is the first; CherryPick has the filter of the budget; five samples, or one
    where runs are stopped."""
    experiment = load_experiment(name)
    assert [reading.price for reading in experiment.spec.readings.values()] == [
        "price_usd_per_hour * workers / (workers + 2)",
        "price_usd_per_hour",
        "price_usd_per_hour * workers / (workers + 2) + 2 * 0.3712",
    ]
    for place, setting in experiment.settings.items():
        policy = compose(json.loads(setting.policy))
        start, *rest = policy.choose.choosers
        stops = place.policy.removesuffix(DIMENSIONS).endswith(("ideal", "discrete"))
        assert start == UniformRows(Amount(count=1 if stops else 5))
        assert isinstance(policy.timeout.rule, NoTimeout) != stops
        assert [planner.confidence for planner in rest if isinstance(planner, Lookahead)] == [0.99] * (
            "andom" not in place.policy
        )


def test_cells_are_ordered_by_seed(experiment_file):
    cells = load_experiment(experiment_file).cells()
    assert [cell.seed for cell in cells] == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3


def test_a_policy_may_have_fewer_seeds(experiment_file):
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
    chosen = [len(experiment.cells(variants=names)) for names in (["2"], ["2, noisy"], ["2, noisy", "4"], ["noisy"])]
    assert chosen == [2 * 3 * 4, 3 * 4, 3 * 3 * 4, 0]


def test_policies_of_plugins_can_be_named(experiment_file):
    changed(
        experiment_file,
        "plain: random\n",
        "plain: random\n  theirs: authors-2020\n  deep: {preset: authors-2020, lookahead: 1}\n",
    )
    written = {
        place.policy: setting.written()["policy"]
        for place, setting in load_experiment(experiment_file).settings.items()
    }
    assert written["theirs"]["name"] == "authors-2020"
    assert written["deep"] != written["theirs"]
    (cell,) = load_experiment(experiment_file).cells(1, ["deep"])
    assert run_cell(cell).replay.steps


def test_equal_settings_have_equal_fingerprints(experiment_file):
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
    charges = other.problem.billing.charges(kept, other.problem.price)
    assert other.problem.budget.usd == pytest.approx(2 * charges.mean())
    assert other.problem.billing.minimum_s == 600


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("random+timeouts", "rondom", "there is no 'rondom'. Did you mean 'random'?"),
        ("baseline: plain", "baseline: plane", "baseline: there is no policy 'plane' in this experiment; did you mean"),
        ("of: plain", "of: plan", "there is no policy 'plan' in this experiment; did you mean 'plain'?"),
        ("level: 1,", "level: 1, variant: x,", "there is no variant 'x' in this experiment"),
        ("level: 1,", "level: 1, jobs: [other],", "the experiment has no job 'other'"),
        ("seeds: 4", "seeds: 0", "seeds: got 0"),
        ("seeds: 4", "sedes: 4", "there is no field 'sedes'; did you mean 'seeds'?"),
        ("jobs: [", "jobs: [tensorflow/cnnn, ", "there is no job 'tensorflow/cnnn'; did you mean 'tensorflow/cnn'?"),
        ("jobs: [", "jobs: ['nothing/*', ", "no shipped job matches 'nothing/*'"),
        ("plain: random", "plain: {preset: random, peer: optuna-tpe}", "got preset and peer; give exactly one"),
        ("plain: random", "plain: {peer: optuna}", "there is no peer 'optuna'; did you mean 'optuna-gp'?"),
        ("plain: random", "plain: {policy: {choose: unifrom}}", "got 'unifrom'; did you mean 'uniform'?"),
        ('holds: "> 0.1"', 'holds: "=> 0.1"', "claims.0.holds: cannot parse the condition '=> 0.1'; write '>= 2'"),
        (
            'holds: "> 0.1"',
            'holds: "0.5..0.1"',
            "claims.0.holds: '0.5..0.1' contains no number; write the smaller end first",
        ),
        (
            'holds: "> 0.1"',
            'holds: "> 0.1"\n    direction: "more"',
            "claims.0.direction: cannot parse the condition 'more'",
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
        ("seeds: 4", "seeds: 4\nuntil: 0.5", "until: got 0.5; give optimum, end, or a CNO of at least 1."),
        ("seeds: 4", "seeds: 4\ntrials: 0", "trials: got 0; it should be"),
        (
            "seeds: 4",
            "seeds: 4\noptions: {deadline: {quantile: 0.5, fastest: 2}}",
            "options.deadline: got quantile and fastest; give exactly one of quantile and fastest.",
        ),
        (
            "seeds: 4",
            "seeds: 4\nvariants: {poor: {budget: {usd: 1, means: 2}}}",
            "variants.poor.budget: got usd and means; give exactly one of usd and means.",
        ),
        (
            "plain: random\n",
            "plain: random\n  TPE: {peer: optuna-tpe}\nworlds: {calm: null, noisy: {noise: 0.1}}\n",
            "worlds.noisy: 'TPE' is a peer, and peers run only without a world, not in 'noisy'",
        ),
        (
            "plain: random\n",
            "plain: random\n  TPE: {peer: optuna-tpe}\nworld: {failures: 0.1}\n",
            "world: 'TPE' is a peer, and peers run only without a world",
        ),
        (
            "plain: random\n",
            "plain: random\n  TPE: {peer: optuna-tpe}\nparallel: 2\n",
            "parallel: 'TPE' is a peer, and peers run one trial at a time, not 2",
        ),
    ],
)
def test_errors_are_one_sentence(experiment_file, old, new, message):
    changed(experiment_file, old, new)
    with pytest.raises(InputError) as caught:
        load_experiment(experiment_file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_peer_runs_in_an_empty_world(experiment_file):
    changed(
        experiment_file,
        "plain: random\n",
        "plain: random\n  TPE: {peer: optuna-tpe}\nworlds: {calm: null, empty: {}}\n",
    )
    assert len(load_experiment(experiment_file).settings) == 8


def test_the_error_for_an_unknown_experiment_suggests_the_nearest():
    with pytest.raises(InputError, match="there is no experiment 'icdcs20-fig44'; did you mean 'icdcs20-fig4'"):
        load_experiment("icdcs20-fig44")


def test_the_error_for_a_missing_table_names_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("LYNCEUS_DATA", str(tmp_path / "nowhere"))
    cell = load_experiment("icdcs20-fig7").cells(1)[0]
    loaded.cache_clear()
    with pytest.raises(
        InputError,
        match=r"the table 'tensorflow/cnn.csv' is not beside the document; put it there, or set LYNCEUS_DATA",
    ):
        run_cell(cell)


def test_the_error_for_a_missing_time_names_column_and_row(experiment_file, job):
    table = job.with_name("toy.csv")
    table.write_text(table.read_text().replace("small,1,0.01,3640.0", "small,1,0.01,nan"))
    loaded.cache_clear()
    with pytest.raises(
        InputError, match=r"column 'time_s' of toy\.csv holds no number in row 2; every configuration needs a time"
    ):
        run_cell(load_experiment(experiment_file).cells()[0])
