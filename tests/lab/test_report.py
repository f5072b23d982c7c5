"""From traces to a page."""

import csv
import itertools
import json
import math
from dataclasses import replace

import pytest

from lab_cases import changed
from lynceus.errors import InputError
from lynceus.lab.campaign import run_cells
from lynceus.lab.cell import loaded
from lynceus.lab.curves import course
from lynceus.lab.engines import InProcess
from lynceus.lab.experiment import Place, load_experiment
from lynceus.lab.page import interval, page
from lynceus.lab.pooled import pooled
from lynceus.lab.report import read_summaries, write_page, write_summaries
from lynceus.lab.statistics import ratio, written
from lynceus.lab.store import Store
from lynceus.lab.summary import Evidence, summarise


@pytest.fixture
def store(experiment_file, tmp_path):
    store = Store(tmp_path / "store")
    run_cells(load_experiment(experiment_file).cells(), InProcess(), store)
    return store


def test_a_summary_says_what_the_traces_say(experiment_file, store):
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


def test_the_page_is_made_from_summaries_alone(experiment_file, store, tmp_path):
    out = tmp_path / "docs" / "results"
    write_summaries([load_experiment(experiment_file)], store, out)
    page = write_page(out, tmp_path / "docs" / "results.md")
    text = page.read_text()
    assert "Caps save money ([nobody, Fig. 1](#experiment))" in text
    assert "**holds** (preliminary: fewer than 30 seeds)" in text
    for number in (1, 2, 3, 4):
        assert f"(results/experiment-{number}.png)" in text
        assert (out / f"experiment-{number}.svg").stat().st_size > 1000
    for path in store.folder.rglob("*.parquet"):
        path.unlink()
    assert write_page(out, tmp_path / "docs" / "results.md").read_text() == text
    with (out / "experiment.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 3
    assert {row["policy"] for row in rows} == {"capped", "LA=0", "plain"}


def test_what_was_not_run_keeps_its_older_summary(experiment_file, store, tmp_path):
    out = tmp_path / "results"
    write_summaries([load_experiment(experiment_file)], store, out)
    before = read_summaries(out)
    assert write_summaries([load_experiment(experiment_file)], Store(tmp_path / "empty"), out) == []
    assert read_summaries(out) == before


def test_without_summaries_there_is_no_page(tmp_path):
    with pytest.raises(InputError, match="has no summaries yet; run an experiment first"):
        write_page(tmp_path, tmp_path / "page.md")


def test_a_replay_that_has_ended_stays_where_it_ended(experiment_file, store):
    experiment = load_experiment(experiment_file)
    replays = [kept.replay for kept in Evidence(experiment, store).kept(Place(experiment.jobs[0], "plain"))]
    money, cno = course(replays)
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
        assert row["spent"][0] <= budget * 1.001  # a summary keeps four digits
        assert row["dfo"][0] is None or row["dfo"][0] >= 0
        assert not math.isnan(row["nex"][0])


def test_peers_are_pooled_over_families(experiment_file, store, tmp_path):
    experiment = load_experiment(experiment_file)
    summary = summarise(experiment, store)
    text = "\n".join(pooled([summary]))
    assert text == "", "only experiments of peers are pooled"
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


def test_goals_of_ours_are_not_claims_of_papers(experiment_file, store):
    summary = summarise(load_experiment(experiment_file), store)
    (claim,) = summary["claims"]
    ours = claim | {
        "says": "We are better",
        "published": "our goal",
        "verdict": "does not hold",
        "jobs": 5,
        "undecided": 2,
    }
    text = page([summary | {"claims": [claim, ours]}], {})
    papers, goals = text.split("## Our own goals")
    assert "## Claims of the papers\n\n1 in all: holds – 1.\n" in papers
    assert "We are better" not in papers
    assert "\n\n1 in all: does not hold – 1.\n" in goals
    assert "(5 of 7 jobs)" in goals
    assert "typed by hand" not in text
    assert "## Our own goals" not in page([summary], {})


def test_the_page_says_how_many_traces_were_adopted(experiment_file, store):
    summary = summarise(load_experiment(experiment_file), store)
    assert "adopted" not in page([summary], {})
    rows = [row | {"adopted": 3} for row in summary["table"]]
    assert "9 of 12 traces are of earlier code and were adopted" in page([summary | {"table": rows}], {})


def test_what_a_world_costs_is_told_in_pairs(experiment_file, tmp_path):
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
    text = page([summary], {})
    assert "of each policy over its own in the world **calm**" in text
    assert "| policy | seeds | wild |" in text
    assert f"| plain | 4 | {interval(plain['p50'])} / {interval(plain['p90'])} |" in text
    lost = [row | {"unreached": [1, 2]} for row in summary["degraded"]]
    assert f"| plain | 4 | {interval(plain['p50'])} / {interval(plain['p90'])}; 3 not |" in page(
        [summary | {"degraded": lost}], {}
    )


def test_other_deadlines_are_other_questions_not_harder_worlds(experiment_file, tmp_path):
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
def test_no_number_is_not_infinity(numbers, text):
    assert interval(numbers) == text


def test_without_the_tables_an_older_summary_stays(experiment_file, store, tmp_path, monkeypatch):
    out, experiment = tmp_path / "results", load_experiment(experiment_file)
    write_summaries([experiment], store, out)
    before = read_summaries(out)
    experiment_file.with_name("toy.csv").unlink()
    loaded.cache_clear()
    alone = replace(experiment, settings={})  # facts of tables and nothing else
    monkeypatch.setenv("LYNCEUS_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"the table 'toy\.csv' is"):
        write_summaries([alone], store, out)
    monkeypatch.setenv("LYNCEUS_DATA", str(tmp_path / "nowhere"))
    assert write_summaries([alone], store, out) == []
    assert read_summaries(out) == before
    with pytest.raises(InputError, match=r"the table 'toy\.csv' is"):
        write_summaries([alone], store, tmp_path / "new")


def test_a_page_may_lie_anywhere(experiment_file, store, tmp_path):
    out = tmp_path / "a" / "results"
    write_summaries([load_experiment(experiment_file)], store, out)
    text = write_page(out, tmp_path / "b" / "c" / "page.md", formats=("png",)).read_text()
    assert "(../../a/results/experiment-1.png)" in text


@pytest.mark.parametrize("text", ["{", "[1]", '{"name": "other"}', "\xff"])
def test_what_is_no_summary_is_told(tmp_path, text):
    (tmp_path / "alien.json").write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=r"alien.json is no summary of the lab; move it elsewhere"):
        write_page(tmp_path, tmp_path / "page.md")


def test_a_picture_of_a_kind_that_nobody_draws_is_refused(experiment_file):
    changed(experiment_file, "{kind: cdf", "{kind: sizes")
    with pytest.raises(InputError, match="kind"):
        load_experiment(experiment_file)
