"""Families of jobs: what is declared, what is run, what is printed."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest

from lab_cases import Counting, write_job
from lynceus.errors import InputError
from lynceus.policy.policy_file import compose
from lynceus.policy.presets import preset
from lynceus.replay.tables import data_folder
from lynceus_lab.cell import Cell, job_of, loaded
from lynceus_lab.experiment_file import OptionsSpec
from lynceus_lab.families import evaluated, run_missing
from lynceus_lab.families_file import Case, VariantSpec, changed, load_families, policy_hash, variant_text
from lynceus_lab.families_table import tables
from lynceus_lab.family_ends import choose, end_tables, found_cases
from lynceus_lab.family_results import Key, Result, ResultFile
from lynceus_lab.leave_one_out import scores

DECLARED = """\
families:
  toys: {jobs: toys/*.yaml, deadlines: [0.2, 0.5]}
  games: {jobs: games/*.yaml}
rivals: {random+timeouts: random+timeouts}
variants:
  same: sweep
  capped: {preset: random, timeout: capped}
  cheap: {preset: sweep, set: {choose: [{kind: cheap-first, count: 1}, $choose]}}
"""


@pytest.fixture
def declared(tmp_path):
    for family in ("toys", "games"):
        (tmp_path / family).mkdir()
        write_job(tmp_path / family)
    path = tmp_path / "families.yaml"
    path.write_text(DECLARED)
    return path


def test_cases_are_jobs_under_deadlines(declared):
    families = load_families(declared)
    assert list(families.cases) == [
        Case("toys", "toys/toy", "0.2"),
        Case("toys", "toys/toy", "0.5"),
        Case("games", "games/toy", "as given"),
    ]
    assert list(families.policies) == ["sweep", "random+timeouts", "same", "capped", "cheap"]
    some = load_families(declared, ["games"], ["capped"])
    assert (some.families, list(some.policies)) == (["games"], ["sweep", "capped"])
    assert list(load_families(declared, variants_only=True).policies) == ["same", "capped", "cheap"]


def test_only_missing_replays_run_and_equal_policies_share_them(declared, tmp_path):
    families, file = load_families(declared), ResultFile(tmp_path / "results.jsonl")
    first = Counting(stop_after=5)
    with pytest.raises(KeyboardInterrupt):
        run_missing(families, range(2), 1.1, first, file)
    assert len(file.read()) == 5
    again = Counting()
    ran = run_missing(families, range(2), 1.1, again, file)
    # 3 cases, 2 seeds, 5 labels: `same` is the sweep under another name, and `capped` is random+timeouts.
    assert (ran.asked, ran.found, ran.made) == (30, 30 - (18 - 5), 18 - 5)
    assert not set(first.ran) & set(again.ran)
    assert run_missing(families, range(2), 1.1, Counting(), file).made == 0
    found = evaluated(families, range(2), 1.1, file.read())
    assert found.table["same"] == found.table["sweep"] != found.table["capped"] == found.table["random+timeouts"]
    assert all(len(by_seed) == 2 for of_label in found.table.values() for by_seed in of_label.values())
    assert found.other_code == 0


def test_results_of_other_code_count_only_on_request(declared, tmp_path):
    families, file = load_families(declared, ["games"], ["sweep"]), ResultFile(tmp_path / "results.jsonl")
    run_missing(families, range(2), 1.1, Counting(), file)
    lines = [json.loads(line) for line in file.path.read_text().splitlines()]
    file.path.write_text(json.dumps(lines[0]) + "\n" + json.dumps(lines[1] | {"code": "0" * 12}) + "\n")
    assert (
        len(evaluated(families, range(2), 1.1, file.read()).table["sweep"][Case("games", "games/toy", "as given")]) == 1
    )
    both = evaluated(families, range(2), 1.1, file.read(), any_code=True)
    assert both.other_code == 1
    assert run_missing(families, range(2), 1.1, Counting(), file, any_code=True).made == 0
    assert run_missing(families, range(2), 1.1, Counting(), file).made == 1
    assert evaluated(families, range(2), 1.1, file.read(), any_code=True).other_code == 0


def test_a_line_that_was_cut_is_run_again(declared, tmp_path):
    families, file = load_families(declared, ["games"], ["sweep"]), ResultFile(tmp_path / "results.jsonl")
    run_missing(families, range(3), 1.1, Counting(), file)
    whole = file.read()
    file.path.write_bytes(file.path.read_bytes()[:-40])
    assert file.read() == whole[:2]
    assert run_missing(families, range(3), 1.1, Counting(), file).made == 1
    assert [result.key for result in file.read()] == [result.key for result in whole]


def test_money_is_counted_in_runs_of_the_optimum_and_infinity_survives_the_file(tmp_path):
    case = Case("toys", "toys/toy", "0.5")
    result = Result(Key("p", case, 0, "end", "c"), math.inf, 3, 7.5, 1.25)
    file = ResultFile(tmp_path / "far" / "results.jsonl")
    file.append(result, "mine")
    assert file.read() == [result]
    assert result.regret == 7.5 + 100 * 0.25


def test_the_tables_state_counts_and_choose(declared, tmp_path):
    families, file = load_families(declared), ResultFile(tmp_path / "results.jsonl")
    run_missing(families, range(3), 1.1, Counting(), file)
    text = "\n".join(tables(families, evaluated(families, range(3), 1.1, file.read()), 3))
    assert "2 families, 3 cases, 5 policies, seeds 0 to 2: 45 of 45 results; machine: Linux" in text
    assert "| same | 2 | 3 of 3 | 1 | 1 | 1 (toys at 0.2) | 1 (toys at 0.2) | 1 (toys/toy at 0.2) |" in text
    # A run of the cheapest configuration first changes nothing, so all other variants lose or are equal to `same`.
    assert "| toys | same | 1 | 1 | 1 | 1 (toys/toy at 0.2) |" in text
    assert "| **all** |  |  | 1 | 1 | " in text
    fewer = "\n".join(tables(families, evaluated(families, range(4), 1.1, file.read()), 4))
    assert "cannot be chosen: same, capped, cheap." in fewer
    assert "Nothing can be chosen" in fewer


def test_stopping_rules_are_chosen_by_what_they_find_without_more_regret():
    cases = [Case(family, f"{family}/one", "0.5") for family in ("a", "b", "c")]

    def of(policy, *ends):
        return {
            case: {seed: Result(Key(policy, case, seed, "end", ""), spent, 9, spent, cno) for seed in range(3)}
            for case, (spent, cno) in zip(cases, ends, strict=True)
        }

    table = {
        "now": of("now", (10, 1.05), (10, 1.2), (10, 1.2)),  # regret 15, 30, 30
        "longer": of("longer", (20, 1.0), (20, 1.05), (20, 1.05)),  # regret 20, 25, 25
        "longest": of("longest", (90, 1.0), (90, 1.0), (90, 1.0)),
    }
    found = found_cases(table)
    assert [list(found[label].values()) for label in table] == [[True, False, False], [True] * 3, [True] * 3]
    regret = {
        label: {case: {seed: one.regret for seed, one in by_seed.items()} for case, by_seed in of_label.items()}
        for label, of_label in table.items()
    }
    chosen = {
        one.family: one for one in choose(found, scores(regret, "now", ("mean", "p90")), list(table), ["a", "b", "c"])
    }
    # On b and c, `longer` has (25 / 30) of the regret; on a and c, √(20 / 15 · 25 / 30) = 1.054, so today's rule stays there.
    assert {family: one.variant for family, one in chosen.items()} == {"a": "longer", "b": "now", "c": "now"}
    assert (chosen["a"].found, chosen["b"].found) == (1.0, 0.0)
    assert chosen["a"].score.ratios == pytest.approx((20 / 15, 20 / 15))


def test_the_tables_of_ends(declared, tmp_path):
    families, file = load_families(declared, variants_only=True), ResultFile(tmp_path / "results.jsonl")
    run_missing(families, range(2), "end", Counting(), file)
    text = "\n".join(end_tables(families, evaluated(families, range(2), "end", file.read()), 2))
    assert "| same | 3 of 3 | 100% | 100% (toys) | " in text  # it tries everything
    assert "| **all** |  | 100% | 1 | 1 |" in text


TREND = "surrogate.surrogate.surrogate"
"""Where the default's policy file has its process and the trend along the price."""


def test_values_of_a_preset_can_be_set_and_parts_put_around_others():
    default = preset("lynceus")
    where = "families.yaml:1"
    arm = VariantSpec(preset="lynceus", set={f"{TREND}.surrogate.log_signal": [0.3, 1.2], f"{TREND}.slope": -0.7})
    other = compose(json.loads(variant_text(arm, where)))
    trend = other.surrogate.surrogate.surrogate
    assert trend.surrogate.settings.log_signal == (0.3, 1.2)
    assert trend.slope == -0.7
    assert other.stop == default.stop
    floor = VariantSpec(preset="lynceus", set={"choose": {"kind": "not-far-behind", "factor": 2, "chooser": "$choose"}})
    under = compose(json.loads(variant_text(floor, where)))
    assert under.choose.chooser == default.choose
    assert under.choose.factor == 2.0
    assert policy_hash(variant_text(VariantSpec(preset="lynceus"), where)) == policy_hash(
        variant_text("lynceus", where)
    )
    plain = {"choose": {"kind": "not-far-behind", "chooser": "by-price"}}
    assert changed(plain, {"choose": "$choose.chooser"}) == {"choose": "by-price"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"surogate.slope": 1}, "surogate.slope: the preset has no 'surogate' there; did you mean 'surrogate'?"),
        ({"choose.7": "uniform"}, "choose.7: '7' does not exist in a list of 2 parts; give a path"),
        ({"surrogate.mots": 1}, "policy.surrogate.mots: there is no field 'mots'; did you mean 'most'?"),
        ({"choose": "$chosen"}, "chosen: the preset has no 'chosen' there; did you mean 'choose'?"),
    ],
)
def test_a_wrong_path_is_named(change, message):
    with pytest.raises(InputError) as raised:
        variant_text(VariantSpec(preset="lynceus", set=change), "mine.yaml:3: variants.x")
    assert str(raised.value).startswith(f"mine.yaml:3: variants.x: {message}")


def lynceus(*words, cwd):
    return subprocess.run([sys.executable, "-m", "lynceus.cli", *words], capture_output=True, text=True, cwd=cwd)


def test_the_command_runs_continues_and_prints(declared, tmp_path):
    words = ("lab", "families", "--file", str(declared), "--policies", "same,capped", "--store", "r.jsonl")
    first = lynceus(*words, "--seeds", "1", "--families", "toys", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "6 replays: 2 were there already, 4 were run now." in first.stderr
    again = lynceus(*words, "--seeds", "1", "--no-run", cwd=tmp_path)
    assert "2 families, 3 cases, 3 policies, seeds 0 to 0: 6 of 9 results" in again.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--families", "toy"], "--families: there is no 'toy'; did you mean 'toys'?"),
        (["--policies", "some"], "--policies: there is no 'some'; did you mean 'same'?"),
        (["--until", "2"], "--until: got '2'; choose 1.1 or end."),
    ],
)
def test_an_error_is_one_line(declared, tmp_path, words, message):
    done = lynceus("lab", "families", "--file", str(declared), *words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"lynceus: {message}\n")


@pytest.mark.skipif(data_folder() is None, reason="the measured tables are missing: set LYNCEUS_DATA")
def test_the_shipped_variants_differ_in_what_they_do():
    families = load_families(families=["scout"])
    assert len({policy_hash(text) for text in families.policies.values()}) == len(families.policies)
    assert families.variants[0] == "lynceus"


def test_each_seed_may_draw_rows_of_its_own(declared, tmp_path):
    families, file = load_families(declared, ["games"], ["sweep", "capped"], rows=0.6), ResultFile(tmp_path / "r.jsonl")
    (case,) = families.cases
    assert case == Case("games", "games/toy", "as given", rows=0.6)
    cells = [Cell(families.setting(case, "sweep", 1.1), seed) for seed in (0, 1)]
    whole, (first, second) = loaded(cells[0].setting.job, OptionsSpec()), [job_of(cell) for cell in cells]
    size = round(0.6 * len(whole.problem.space))
    assert len(first.problem.space) == len(second.problem.space) == size < len(whole.problem.space)
    assert first.measurements.seconds.tolist() != second.measurements.seconds.tolist()
    # All policies see the same rows for the same seed, and money is in multiples of the optimum among them.
    other = job_of(Cell(families.setting(case, "capped", 1.1), 1))
    assert other.measurements.seconds.tolist() == second.measurements.seconds.tolist()
    run_missing(families, range(2), 1.1, Counting(), file)
    found = evaluated(families, range(2), 1.1, file.read()).table
    assert all(result.money >= 1.0 for by_seed in found["sweep"].values() for result in by_seed.values())
    # Results on whole tables are others.
    assert run_missing(load_families(declared, ["games"], ["sweep"]), range(2), 1.1, Counting(), file).made == 2


def test_seeds_with_rows_of_their_own_are_compared_one_by_one():
    case = Case("f", "f/j", "0.5", rows=0.7)
    numbers = {
        "sweep": {case: {0: 10.0, 1: 1.0}},
        "ours": {case: {0: 5.0, 1: 0.5}},
        "theirs": {case: {0: 1.0, 1: 10.0}},
    }
    found = scores(numbers, "sweep")
    assert found["ours"][case].ratios == pytest.approx((0.5, 0.5))
    assert found["theirs"][case].ratios[1] > 9.0


def test_a_seed_with_rows_of_its_own_that_neither_finished_is_no_difference():
    """∞ / ∞ is no number; one such seed must not take the whole case out of the comparison, nor count against the policy."""
    case = Case("f", "f/j", "0.5", rows=0.7)
    numbers = {"sweep": {case: {0: math.inf, 1: 10.0, 2: 10.0}}, "ours": {case: {0: math.inf, 1: 5.0, 2: math.inf}}}
    found = scores(numbers, "sweep")["ours"][case]
    assert not np.isnan(found.logs).any()
    assert found.ratios[0] == pytest.approx(1.0)
