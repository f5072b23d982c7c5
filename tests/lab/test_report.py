"""From traces to summaries and pages."""

import csv
import itertools
import json
import math
from dataclasses import replace

import pytest

from lab_cases import changed
from lynceus.errors import InputError
from lynceus_lab.campaign import run_cells
from lynceus_lab.cell import loaded
from lynceus_lab.changes_page import changes_page, read_edition
from lynceus_lab.engines import InProcess
from lynceus_lab.experiment import Place, load_experiment
from lynceus_lab.experiment_page import experiment_page
from lynceus_lab.figure_data import money_and_cno
from lynceus_lab.markdown import interval
from lynceus_lab.pooled_comparison import pooled
from lynceus_lab.report import read_summaries, write_pages, write_summaries
from lynceus_lab.results_page import beyond_page, results_page
from lynceus_lab.statistics import ratio, written
from lynceus_lab.summary import Evidence, _hidden_parts, summarise
from lynceus_lab.trace_store import Store


@pytest.fixture
def store(experiment_file, tmp_path):
    store = Store(tmp_path / "store")
    run_cells(load_experiment(experiment_file).cells(), InProcess(), store)
    return store


def test_a_summary_agrees_with_the_traces(experiment_file, store):
    experiment = load_experiment(experiment_file)
    summary = summarise(experiment, store)
    evidence = Evidence(experiment, store)
    row = next(row for row in summary["table"] if row["policy"] == "capped")
    money = evidence.values(Place(experiment.jobs[0], "capped"), "money", 1.0)
    assert row["seeds"] == 4
    assert row["levels"][2]["p50"][0] == pytest.approx(
        sorted(money.values())[1] / 2 + sorted(money.values())[2] / 2, rel=1e-3
    )
    assert row["levels"][2]["unreached"] == 0
    (claim,) = summary["claims"]
    assert claim["verdict"] == "holds"
    assert claim["seeds"] == 4
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_pages_are_made_from_summaries_alone(experiment_file, store, tmp_path):
    summaries, out, overview = tmp_path / "results", tmp_path / "pages", tmp_path / "docs" / "results.md"
    write_summaries([load_experiment(experiment_file)], store, summaries)
    write_pages(read_summaries(summaries), out, overview)
    text, page = overview.read_text(), (out / "experiment.md").read_text()
    beyond = overview.with_name("results-beyond.md").read_text()
    assert "| Timeouts save money | 1.2× | " in text
    assert beyond.startswith("# Results beyond the papers\n")
    assert "**holds** (preliminary: fewer than 30 seeds)" in text
    assert "### experiment\nA toy. A paper, Fig. 1. 1 job × 3 policies (capped, LA=0, plain) × 4 seeds.\n" in text
    for number in (1, 2, 3, 4):
        assert f"(experiment-{number}.png)" in page
        assert (out / f"experiment-{number}.svg").stat().st_size > 1000
    for path in store.folder.rglob("*.parquet"):
        path.unlink()
    write_pages(read_summaries(summaries), out, overview)
    assert (overview.read_text(), (out / "experiment.md").read_text()) == (text, page)
    with (summaries / "experiment.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 3
    assert {row["policy"] for row in rows} == {"capped", "LA=0", "plain"}


def test_an_experiment_without_traces_keeps_its_older_summary(experiment_file, store, tmp_path):
    out = tmp_path / "results"
    write_summaries([load_experiment(experiment_file)], store, out)
    before = read_summaries(out)
    assert write_summaries([load_experiment(experiment_file)], Store(tmp_path / "empty"), out) == []
    assert read_summaries(out) == before


def test_without_summaries_there_is_no_page(tmp_path):
    with pytest.raises(InputError, match="has no summaries yet; run an experiment first"):
        read_summaries(tmp_path)


def test_a_replay_that_has_ended_keeps_its_last_values(experiment_file, store):
    experiment = load_experiment(experiment_file)
    replays = [kept.replay for kept in Evidence(experiment, store).kept(Place(experiment.jobs[0], "plain"))]
    money, cno = money_and_cno(replays)
    assert len(money) == max(len(replay.steps) for replay in replays)
    assert cno[-1] == 1.0
    assert all(after >= before for before, after in itertools.pairwise(money))


def test_distances_and_budgets_by_variant(experiment_file, tmp_path):
    text = 'variants:\n  "2": {budget: {means: 2}}\n  "6": {budget: {means: 6}}\nuntil: end\nseeds: 4\n'
    changed(experiment_file, "seeds: 4\n", text)
    changed(
        experiment_file,
        "  - {kind: cdf",
        '  - {kind: by-variant, title: "DFO", quantity: dfo, statistic: p50}\n  - {kind: cdf',
    )
    changed(experiment_file, "level: 1, statistic: p50", 'level: 1, statistic: p50, variant: "6"')
    store = Store(tmp_path / "other")
    experiment = load_experiment(experiment_file)
    run_cells(experiment.cells(), InProcess(), store)
    summary = summarise(experiment, store)
    panel = summary["curves"][0]["panels"][0]
    assert [line["x"] for line in panel["lines"]] == [["2", "6"]] * 3
    for row in summary["table"]:
        budget = Evidence(experiment, store).job(Place(row["job"], row["policy"], row["variant"])).problem.budget.usd
        assert row["spent"][0] <= budget * 1.001  # a summary has four digits
        assert row["dfo"][0] is None or row["dfo"][0] >= 0
        assert not math.isnan(row["nex"][0])


def test_peers_are_pooled_over_families(experiment_file, store, tmp_path):
    experiment = load_experiment(experiment_file)
    summary = summarise(experiment, store)
    text = "\n".join(pooled([summary]))
    assert text == "", "only experiments with peers are pooled"
    families = [summary | {"name": f"peers-{name}", "jobs": [name]} for name in ("small", "large")]
    text = "\n".join(pooled(families))
    row = next(row for row in summary["across"] if row["policy"] == "capped" and row["cno"] == 1.1)
    assert "| relative to plain | small | large | fewest seeds |" in text
    assert f"{row['p50'][0]:.2f} / {row['p90'][0]:.2f}" in text
    assert "(2 jobs, 2 clusters)" in text
    assert "of 3 jobs" not in text
    missing = "\n".join(pooled([families[0] | {"asked": 3}]))
    assert f"{row['p50'][0]:.2f} / {row['p90'][0]:.2f} (1 of 3 jobs)" in missing
    assert list(pooled([families[0] | {"across": []}])) == []


def test_our_own_goals_are_listed_separately(experiment_file, store):
    summary = summarise(load_experiment(experiment_file), store)
    (claim,) = summary["claims"]
    ours = claim | {
        "says": "We are better",
        "published": "our goal",
        "verdict": "does not hold",
        "jobs": 5,
        "undecided": 2,
    }
    both = [summary | {"claims": [claim, ours]}]
    papers, goals = results_page(both), beyond_page(both)
    assert "## Claims of the papers\n\n1 in all: holds – 1.\n" in papers
    assert "We are better" not in papers
    assert "\n\n1 in all: does not hold – 1.\n" in goals
    assert "(5 of 7 jobs)" in goals
    assert "We are better ([A paper, Fig. 1](results.md#experiment))" in goals
    alone = beyond_page([summary | {"claims": [ours]}])
    assert "We are better ([A paper, Fig. 1](#experiment))" in alone
    assert '| <a id="experiment"></a>experiment | A toy. ' in alone
    assert "## Our own goals" not in beyond_page([summary])


def test_a_claim_shows_infinite_parts_distances_and_other_readings(experiment_file, store):
    summary = summarise(load_experiment(experiment_file), store)
    (claim,) = summary["claims"]
    never = claim | {"ours": [1.0, 1.0, 1.0], "parts": [0.31, "inf"]}
    far = claim | {"ours": [1.9, 1.2, 2.8], "found": 47, "of": 50, "mean_of_found": 1.9, "median": 0.96}
    percent = far | {"published": "150 %", "measured": "value", "ours": [0.96, 0.7, 1.1]}
    read = claim | {
        "readings": {
            "as printed": {"ours": claim["ours"], "verdict": claim["verdict"]},
            "with helpers": {"ours": [5.0, 4.0, 6.0], "verdict": "does not hold"},
            "with two": {"ours": [2.0, 1.0, 3.0], "verdict": "holds", "seeds": 3},
            "not run": {"ours": None, "verdict": "not measured"},
        }
    }
    text = results_page([summary | {"claims": [never, far, percent, read]}])
    assert "| 1 (0.31 / ∞) |" in text
    assert "| 1.9 [1.2, 2.8]; 47 of 50 found, median of all 0.96 |" in text
    assert "| 150 % | 96 % [70, 110]; 47 of 50 found, their mean 190 % |" in text
    assert "Otherwise – with helpers: 5 [4, 6], does not hold; with two: 2 [1, 3] (3 seeds), holds. |" in text
    assert "\nClaims about a setting that the paper leaves open, 1, under each [reading]" in text
    assert "| reading | holds | does not hold | not measured |\n|---|---|---|---|\n| as printed | 1 | 0 | 0 |\n" in text
    assert "| with helpers | 0 | 1 | 0 |\n| with two | 1 | 0 | 0 |\n| not run | 0 | 0 | 1 |\n" in text


@pytest.mark.parametrize(
    ("above", "below", "parts"),
    [(0.3, math.inf, (0.3, math.inf)), (0.5, 0.0, (0.5, 0.0)), (0.5, 0.25, None)],
)
def test_a_ratio_has_its_parts_where_it_hides_them(above, below, parts):
    assert _hidden_parts(ratio([{0: above, 1: above}], [{0: below, 1: below}], "mean")) == parts


def test_the_papers_set_up_is_beside_ours_and_claims_say_where_they_differ(experiment_file, store, tmp_path):
    setup = 'setup:\n  seeds: {paper: "100", here: as counted}\n  start: 3 %\n  price: {paper: with helpers, here: without}\n'
    changed(experiment_file, "jobs:", f"{setup}jobs:")
    text = results_page([summarise(load_experiment(experiment_file), store)])
    assert (
        "|  | seeds | start | price |\n|---|---|---|---|\n| paper | 100 | 3 % | with helpers |\n| here | as counted | = | without |\n"
        in text
    )
    assert " | 4 | other price | **holds**" in text
    changed(experiment_file, "    published: ", "    differs: []\n    published: ")
    assert " | 4 | the paper's | **holds**" in results_page([summarise(load_experiment(experiment_file), store)])
    changed(experiment_file, "differs: []", "differs: [start]")
    with pytest.raises(InputError, match=r"claims.*differs: the set-up has no aspect 'start' that differs"):
        load_experiment(experiment_file)


def test_the_texts_of_an_older_summary_are_those_of_the_file(experiment_file, store, tmp_path):
    out = tmp_path / "results"
    write_summaries([load_experiment(experiment_file)], store, out)
    changed(experiment_file, "A toy", "A better toy")
    changed(experiment_file, "    published: ", "    note: Because.\n    published: ")
    assert write_summaries([load_experiment(experiment_file)], Store(tmp_path / "empty"), out) == []
    (summary,) = read_summaries(out)
    assert summary["title"] == "A better toy"
    assert summary["claims"][0]["note"] == "Because."
    assert summary["claims"][0]["seeds"] == 4


def test_traces_without_a_commit_name_none(experiment_file, store):
    summary = summarise(load_experiment(experiment_file), store)
    made = {name: values for name, values in summary["made"].items() if name != "commit"}
    text = results_page([summary | {"made": made}])
    assert "; commit" not in text
    assert "unknown" not in text
    assert "(commit" not in experiment_page(summary | {"made": made}, [])


def test_the_page_has_the_number_of_adopted_traces(experiment_file, store):
    summary = summarise(load_experiment(experiment_file), store)
    assert "adopted" not in experiment_page(summary, [])
    rows = [row | {"adopted": 3} for row in summary["table"]]
    assert "9 of 12 traces are from earlier code and were adopted" in experiment_page(summary | {"table": rows}, [])


def test_the_cost_of_a_world_is_paired_by_seed(experiment_file, tmp_path):
    changed(experiment_file, "seeds: 4\n", "worlds: {calm: null, wild: {failures: 0.4}}\nseeds: 4\n")
    changed(experiment_file, "level: 1, statistic: p50", "level: 1, statistic: p50, variant: calm")
    store = Store(tmp_path / "worlds")
    experiment = load_experiment(experiment_file)
    run_cells(experiment.cells(), InProcess(), store)
    summary = summarise(experiment, store)
    assert [(row["policy"], row["variant"], row["over"]) for row in summary["degraded"]] == [
        (policy, "wild", "calm") for policy in ("capped", "LA=0", "plain")
    ]
    evidence, job = Evidence(experiment, store), experiment.jobs[0]
    wild, calm = (evidence.values(Place(job, "plain", world), "money", 1.0) for world in ("wild", "calm"))
    found = ratio([wild], [calm], "p50")
    plain = summary["degraded"][2]
    assert plain["p50"] == [written(one) for one in (found.value, found.low, found.high)]
    text = experiment_page(summary, [])
    assert "of each policy, divided by its own in the world **calm**" in text
    assert "| policy | seeds | wild |" in text
    assert f"| plain | 4 | {interval(plain['p50'])} / {interval(plain['p90'])} |" in text
    lost = [row | {"unreached": [1, 2]} for row in summary["degraded"]]
    assert f"| plain | 4 | {interval(plain['p50'])} / {interval(plain['p90'])}; 3 not |" in experiment_page(
        summary | {"degraded": lost}, []
    )


def test_variants_with_other_deadlines_are_not_harder_worlds(experiment_file, tmp_path):
    text = "variants:\n  a: {deadline: {quantile: 0.5}}\n  b: {deadline: {quantile: 0.8}}\nseeds: 4\n"
    changed(experiment_file, "seeds: 4\n", text)
    changed(experiment_file, "level: 1, statistic: p50", "level: 1, statistic: p50, variant: a")
    experiment = load_experiment(experiment_file)
    store = Store(tmp_path / "deadlines")
    run_cells(experiment.cells(1), InProcess(), store)
    assert summarise(experiment, store)["degraded"] == []


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((2.0, 1.0, 3.0), "2 [1, 3]"),
        ((2.0, "nan", "nan"), "2"),
        (("inf", 1.0, "inf"), "∞ [1, ∞]"),
        (("-inf", "-inf", 0.0), "−∞ [−∞, 0]"),
        (("nan", "nan", "nan"), "–"),
    ],
)
def test_nan_is_shown_as_a_dash(numbers, text):
    assert interval(numbers) == text


def test_without_the_tables_an_older_summary_stays(experiment_file, store, tmp_path, monkeypatch):
    out, experiment = tmp_path / "results", load_experiment(experiment_file)
    write_summaries([experiment], store, out)
    before = read_summaries(out)
    experiment_file.with_name("toy.csv").unlink()
    loaded.cache_clear()
    alone = replace(experiment, settings={})  # only facts of tables
    monkeypatch.setenv("LYNCEUS_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"the table 'toy\.csv' is"):
        write_summaries([alone], store, out)
    monkeypatch.setenv("LYNCEUS_DATA", str(tmp_path / "nowhere"))
    assert write_summaries([alone], store, out) == []
    assert read_summaries(out) == before
    with pytest.raises(InputError, match=r"the table 'toy\.csv' is"):
        write_summaries([alone], store, tmp_path / "new")


@pytest.mark.parametrize("text", ["{", "[1]", '{"name": "other"}', "\xff"])
def test_another_json_file_is_refused(tmp_path, text):
    (tmp_path / "alien.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"alien.json is not a summary of the lab; move it elsewhere"):
        read_summaries(tmp_path)


def test_an_unknown_kind_of_figure_is_refused(experiment_file):
    changed(experiment_file, "{kind: cdf", "{kind: sizes")
    with pytest.raises(InputError, match="kind"):
        load_experiment(experiment_file)


EDITION = """experiment,claim,ours,low,high,seeds,verdict,reason
experiment,kept,2.0,1.0,3.0,4,holds,
experiment,other,0.5,0.4,inf,9,does not hold,The price is another.
experiment,number,,,,0,not measured,It was not run.
"""


def test_what_changed_is_counted_and_has_its_reason(experiment_file, store, tmp_path):
    summary = summarise(load_experiment(experiment_file), store)
    claim = summary["claims"][0] | {"seeds": 40, "ours": [2.0, 1.0, 3.0]}
    few = claim | {"seeds": 4, "verdict": "not measured"}
    ours = claim | {"id": "goal", "published": "our goal"}
    claims = [claim | {"id": "kept"}, claim | {"id": "other"}, few | {"id": "number"}, claim | {"id": "new"}, ours]
    (tmp_path / "last-edition.csv").write_text(EDITION)
    text = changes_page([summary | {"claims": claims}], read_edition(tmp_path))
    says = "[experiment](results.md#experiment): Timeouts save money"
    assert "| holds | 1 | 3 | 0 |" in text
    assert "| not measured | 1 | 1 | 1 |\n| all | 3 | 4 | 1 |" in text
    verdicts, numbers, added = text.split("\n## ")[1:]
    row = f"| {says} | 1.2× | 0.5 [0.4, ∞] (9 seeds), does not hold | 2 [1, 3] (40 seeds), **holds** | The price is another. |"
    assert verdicts.splitlines()[6:] == [row]
    row = f"| {says} | 1.2× | not measured | 2 [1, 3] (4 seeds), **not measured** | It was not run. |"
    assert numbers.splitlines()[6:] == [row]
    assert added.splitlines()[6:] == [f"| {says} | 1.2× | 2 [1, 3] (40 seeds), **holds** |"]


def test_an_edition_needs_its_columns(tmp_path):
    assert read_edition(tmp_path) == {}
    (tmp_path / "last-edition.csv").write_text("claim\n")
    with pytest.raises(InputError, match="needs the columns experiment, claim, ours"):
        read_edition(tmp_path)
