"""The campaign on serving and training: tasks, what is replayed, and the tables."""

import math

import numpy as np
import pytest

from lynceus.errors import InputError
from lynceus.replay.run import Replay, Step
from lynceus_lab import serving
from lynceus_lab.campaign import run_cells
from lynceus_lab.cell import loaded
from lynceus_lab.early_ends import curve_ends, stream_ends
from lynceus_lab.engines import engine_named
from lynceus_lab.serving import AS_METRIC, OURS, RIVALS, WARM, Task, cells, median, money, peer_setting, setting, tasks
from lynceus_lab.serving_report import lines
from lynceus_lab.serving_tables import best_rival, money_table, pilot_table, ratios, rival_table
from lynceus_lab.trace_store import Store

GPUS = {"A10": (1.2, 600.0), "A100": (4.1, 2000.0), "H100": (8.0, 3350.0)}
COLUMNS = (
    "gpu_type,n_gpus,users_per_pod,median_ttft_ms,p95_ttft_ms,median_itl_ms,p95_itl_ms,output_tokens_per_s,boot_s,time_s,"
    "price_usd_per_hour,usd_per_mtok,fleet_usd_per_hour"
)


def table() -> str:
    """Deployments of a made-up model: more users per pod give more tokens and more latency, better machines less."""
    rows = [COLUMNS]
    for gpu, (price, speed) in GPUS.items():
        for users in (1, 2, 4, 8, 16, 32):
            tokens = speed * users / (users + 6.0)
            ttft, itl = 9e4 * users / speed, 6000.0 * (1 + users / 16) / speed
            usd = price / 3600 / tokens * 1e6
            numbers = (
                1,
                users,
                ttft,
                2.5 * ttft,
                itl,
                3 * itl,
                tokens,
                100,
                220,
                price,
                usd,
                price * math.ceil(200 / users),
            )
            rows.append(",".join([gpu, *(f"{one:.6g}" for one in numbers)]))
    return "\n".join(rows) + "\n"


SPEC = """\
table: ../ibm_toy.csv
parameters: {gpu_type: {kind: categorical}, n_gpus: {kind: numeric}, users_per_pod: {kind: numeric, log: true}}
time: time_s
price: price_usd_per_hour
metrics: {METRIC: METRIC, p95_ttft_ms: p95_ttft_ms}
objective: minimize METRIC
constraints: [p95_ttft_ms <= 900]
"""


@pytest.fixture
def data(tmp_path, monkeypatch):
    specs = tmp_path / "data" / "llm_serving" / "specs"
    specs.mkdir(parents=True)
    (specs.parent / "ibm_toy.csv").write_text(table())
    (specs / "ibm_toy.paper.yaml").write_text(SPEC.replace("METRIC", "usd_per_mtok"))
    (specs / "ibm_toy.fleet200.yaml").write_text(SPEC.replace("METRIC", "fleet_usd_per_hour"))
    curves = tmp_path / "data" / "tensorflow"
    curves.mkdir()
    flat, rising = " ".join(["0.30"] * 19), " ".join(f"{0.9 - 0.6 / place:.3f}" for place in range(1, 20))
    rows = [f"{600.0},0.2,0,{flat}", f"{400.0},0.2,1,{rising}"]
    (curves / "toy.csv").write_text(
        "measured_time_s,price_usd_per_hour,reached_target,accuracy_every_30s\n" + "\n".join(rows) + "\n"
    )
    monkeypatch.setenv("LYNCEUS_DATA", str(tmp_path / "data"))
    return tmp_path


def test_the_known_part_of_an_objective_changes_no_optimum(data):
    for task in tasks():
        known, metric, warm = (setting(task, label) for label in (OURS, AS_METRIC, WARM))
        best = {loaded(one.job, one.options).optimum.row for one in (known, metric, warm)}
        assert len(best) == 1
        assert loaded(known.job, known.options).problem.objective.is_formula
        assert not loaded(metric.job, metric.options).problem.objective.is_formula


def test_warm_deployments_pay_for_their_start_once(data):
    task = tasks("paper")[0]
    warm = loaded(setting(task, WARM).job, setting(task, WARM).options)
    assert set(warm.measurements.seconds) == {120.0}
    assert (warm.problem.billing.boot_s, warm.problem.billing.warm) == (100.0, ("gpu_type", "n_gpus"))
    cold = loaded(setting(task, OURS).job, setting(task, OURS).options)
    assert math.isclose(warm.problem.cost(0, 120.0), cold.problem.cost(0, 220.0)), "a run of its own costs the same"


def test_everything_from_replays_to_the_page(data):
    labels, store = (OURS, AS_METRIC, WARM, *RIVALS, "staged"), Store(data / "store")
    ran = run_cells(cells(tasks(), labels, 2), engine_named("local", 1), store)
    assert not ran.crashed
    found = money(tasks(), labels, 2, store)
    assert all(math.isfinite(usd) for task in found[OURS].values() for usd in task.values())
    page = "\n".join(lines(tasks(), labels, 2, store))
    assert "2 tasks, seeds 0 to 1" in page
    assert "| **published limits** | 2 | 100% | 0.0% | 0.0% |" in page
    assert "| staged | 2 | 2 |" in page
    assert "| tensorflow, toy | 1 | 0 (0.0%) | 1 | 1 (100%) |" in page


def test_measurements_that_end_early_are_rarely_wrong(data):
    for one in stream_ends(10):
        assert one.wrong <= 0.01 * one.kept
        assert one.ended > 0.5 * one.broken
        assert 0 < one.saved < one.saved_measuring <= 1
    (curve,) = curve_ends()
    assert (curve.kept, curve.wrong, curve.broken, curve.ended) == (1, 0, 1, 1)


def test_a_peer_has_the_money_of_the_default_rounded_up():
    task = Task("ibm", "llm_serving/one", "one.yaml", "cost")
    found = [peer_setting(task, usd).options.budget.usd for usd in (0.0123, 0.12, 2.01, 2905.0)]
    assert np.allclose(found, [0.013, 0.12, 2.1, 3000.0])


def test_ratios_are_to_the_best_rival_of_each_task():
    one, two = Task("ibm", "llm_serving/one", "one.yaml", "cost"), Task("sia", "gpu_training/two", "two.yaml", "cost")
    by = {
        "sweep": (4.0, 9.0),
        "random+timeouts": (8.0, 3.0),
        "bo": (math.inf, 30.0),
        "known-cost": (5.0, 5.0),
        OURS: (2.0, 6.0),
    }
    found = {label: {one: {0: a, 1: a, 2: a}, two: {0: b, 1: b, 2: b}} for label, (a, b) in by.items()}
    assert (best_rival(found, one), best_rival(found, two)) == ("sweep", "random+timeouts")
    assert ratios(found) == {one: 0.5, two: 2.0}
    assert median({0: 1.0, 1: math.inf}) == math.inf
    text = list(money_table(found))
    assert text[-1].startswith("| **all** | 2 | 1.25 | 1 | 50% | 2 (two, random+timeouts) |")
    assert any(
        line.startswith("| bo | 2 | 3 | 0.2 (without 1 that it never finishes) | 0.2 | 100% |")
        for line in rival_table(found)
    )


def test_a_recommendation_that_breaks_a_limit_is_no_success():
    task = Task("ibm", "llm_serving/toy.fleet200", "toy.yaml", "cost")
    step = Step({}, "COMPLETE", 1.0, 2.0, 1.0, 0.0)
    found = [Replay("lynceus", 0, (step,), "", 1.1), Replay("lynceus", 1, (step,), "", np.inf)]
    text = list(pilot_table({task: found}, {task: 4.0}))
    assert text[2] == "| toy.fleet200 | 2 | 50% | 10.0% | 10.0% | 50% | 1 |"


def test_a_missing_data_folder_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("LYNCEUS_DATA", str(tmp_path / "empty"))
    with pytest.raises(InputError, match="has no job file with '' in llm_serving or gpu_training"):
        serving.tasks()
