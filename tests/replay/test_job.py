"""Replay job files: what they build, and the messages for their errors."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest

from lynceus.errors import InputError, MissingExtraError
from lynceus.problem.job_input import JobInput
from lynceus.replay.job import load_job, quantile_of, table_as_history
from lynceus.replay.job_file import ReplaySpec
from lynceus.replay.shipped import shipped_jobs
from lynceus.replay.tables import data_folder

SPEC = """\
table: toy.csv
parameters: [vm, nodes]
price: usd
"""


def test_a_job_is_built_from_table_and_document(toy):
    assert len(toy.problem.space) == 6
    assert toy.problem.space.point(3) == {"vm": "large", "nodes": 1}
    assert toy.problem.space.feature_names == ("vm", "nodes", "ram")
    assert toy.problem.deadline_s == 900.0
    assert toy.measurements.progress[1] == (0.2, 0.8)
    assert toy.measurements.tick_s == 60.0
    assert toy.target == 0.9
    assert toy.optimum.row == 1
    assert math.isclose(toy.optimum.cost_usd, 0.04)


def test_a_document_may_select_rows_and_say_what_runs_read(write_job):
    path = write_job(spec=SPEC + "where: vm == 'large' and nodes > 1\ninput: {size: 12 GB}\n")
    job, past = load_job(path), table_as_history(path)
    assert [job.problem.space.point(row)["nodes"] for row in range(len(job.problem.space))] == [2, 4]
    assert len(past.seconds) == 2
    assert job.problem.input == past.input == JobInput.read("12 GB")


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("where: nodes > 99", r"where.*: no row of toy.csv has nodes > 99; relax"),
        ("input: {size: big}", "input.*size is 'big'; give an amount"),
    ],
)
def test_a_wrong_selection_or_input_names_its_field(write_job, field, message):
    with pytest.raises(InputError, match=message):
        load_job(write_job(spec=SPEC + field + "\n"))


def test_arguments_override_the_document(write_job):
    job = load_job(write_job(), deadline_quantile=0.0, budget="$0.5")
    assert job.problem.deadline_s == 240.0
    assert job.problem.budget.usd == 0.5
    assert job.optimum.row == 5


def test_a_deadline_may_be_a_multiple_of_the_fastest_run(write_job):
    job = load_job(write_job(spec=SPEC + "deadline: {fastest: 2.5}\n"))
    assert job.problem.deadline_s == 600.0
    assert job.problem.deadline_s == load_job(write_job(), deadline_fastest=2.5).problem.deadline_s


def test_billing_changes_the_optimum(write_job):
    # whole hours: every run costs its price, and the cheapest price on time is $0.2
    job = load_job(write_job(spec=SPEC + "deadline: 15m\nbilling: {granularity: 1h}\n"))
    assert (job.optimum.row, job.optimum.cost_usd) == (1, 0.2)


def test_the_price_may_be_an_expression_and_parameters_may_have_kinds(write_job):
    spec = "table: toy.csv\nprice: 0.1 * nodes\nparameters:\n  vm: {order: [small, large], kind: ordinal}\n  nodes: {log: true}\n"
    job = load_job(write_job(spec=spec))
    assert job.problem.space.feature_kinds == ("numeric", "log")
    np.testing.assert_allclose(job.problem.price * 3600, [0.1, 0.2, 0.4, 0.1, 0.2, 0.4])


def test_parquet_gives_the_same_job(write_job, tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow.csv
    import pyarrow.parquet

    path = write_job()
    expected = load_job(path)
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(tmp_path / "toy.csv"), tmp_path / "toy.parquet")
    path.write_text(path.read_text().replace("toy.csv", "toy.parquet"))
    job = load_job(path)
    assert job.problem.space == expected.problem.space
    np.testing.assert_array_equal(job.measurements.seconds, expected.measurements.seconds)


def test_the_message_for_parquet_without_its_package_names_the_extra(write_job, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "toy.parquet").touch()
    with pytest.raises(MissingExtraError, match=r"pip install 'lynceus-opt\[parquet\]'$"):
        load_job(write_job(spec=SPEC.replace("toy.csv", "toy.parquet")))


@pytest.mark.parametrize("n", [2, 3, 4, 69, 384])
def test_half_of_the_configurations_meet_the_papers_deadline(n):
    times = np.arange(n, dtype=float)[::-1]
    assert quantile_of(times, 0.5) == math.floor(n / 2 + 0.5)
    assert quantile_of(times, 1.0) == n - 1


ERRORS = [
    (SPEC + "pirce: usd\n", {}, "toy.yaml:4: pirce: there is no field 'pirce'; did you mean 'price'?"),
    ("parameters: [vm]\n", {}, "toy.yaml:1: table: the field 'table' is missing; add it."),
    (
        "table: toy.csv\nparameters: [vm,\n  nods]\nprice: usd",
        {},
        "toy.yaml:3: parameters.1: the table toy.csv has no column 'nods'; did you mean 'nodes'?",
    ),
    (
        SPEC + "features: [rma]",
        {},
        "toy.yaml:4: features.0: the table toy.csv has no column 'rma'; did you mean 'ram'?",
    ),
    (SPEC + "time: tme_s", {}, "toy.yaml:4: time: the table toy.csv has no column 'tme_s'; did you mean 'time_s'?"),
    (
        "table: toy.csv\nparameters: [vm, nodes]\nprice: uds",
        {},
        "toy.yaml:3: price: the table toy.csv has no column 'uds'; did you mean 'usd'?",
    ),
    (
        SPEC + "time: vm",
        {},
        "toy.yaml:4: time: column 'vm' of toy.csv holds 'a' in row 1; a number is needed, so correct it or name another column.",
    ),
    (
        "table: toy.csv\nparameters: []",
        {},
        "toy.yaml:2: parameters: the list is empty; name the columns that were varied.",
    ),
    (
        "table: toy.csv\nparameters: [vm, vm]",
        {},
        "toy.yaml:2: parameters: 'vm' is listed twice; keep one of them.",
    ),
    (
        "table: toy.csv\nparameters: {vm: {log: true}}",
        {},
        "toy.yaml:2: parameters.vm: 'a' in 'vm' is not a number; numeric and log parameters need numbers.",
    ),
    (
        SPEC,
        {"rows": ["a,1,2,nan,1", "a,2,2,5,1"]},
        "toy.yaml:1: time: column 'time_s' of toy.csv holds no number in row 1; every configuration needs "
        "a time above 0 seconds: correct or remove it.",
    ),
    (
        SPEC,
        {"rows": ["a,1,2,5,1", "a,2,2,-3,1", "a,3,2,0,1"]},
        "toy.yaml:1: time: column 'time_s' of toy.csv holds -3 in row 2 (and 1 more rows); every configuration needs "
        "a time above 0 seconds: correct or remove it.",
    ),
    (
        SPEC,
        {"rows": ["a,1,2,5,0", "a,2,2,3,1"]},
        "toy.yaml:3: price: column 'usd' of toy.csv holds 0 in row 1; every configuration needs "
        "a price above 0: correct or remove it.",
    ),
    (
        SPEC,
        {"rows": ["a,1,2,5,1", "a,1,2,3,1"]},
        "toy.yaml (toy.csv): The table lists a configuration twice: row 2 equals row 1 in vm, nodes; "
        "remove the repeats, or add the column that distinguishes them to the parameters.",
    ),
    (SPEC, {"rows": []}, "toy.csv: the table has no rows; give at least one measured run."),
    (SPEC, {"rows": ["a,1,2"]}, "toy.csv:2: the line has 3 cells and the header 5 columns; give every column a cell."),
    (SPEC, {"header": "vm,vm,ram,time_s,usd"}, "toy.csv:1: two columns are named 'vm'; rename one of them."),
    (
        SPEC + "deadline: 10s",
        {},
        "toy.yaml:4: deadline: no configuration of the table finishes within 10s; the fastest needs 28s; raise the deadline.",
    ),
    (
        SPEC + "constraints: [runtime <= 10s]",
        {},
        "toy.yaml:4: constraints: no configuration of the table finishes within 10s; the fastest needs 28s; raise the deadline.",
    ),
    (
        SPEC + "constraints: [runtime <= 30s, cost <= $0.001]",
        {},
        "toy.yaml:4: constraints: no configuration of the table meets time <= 30s and cost <= $0.001 together; relax one of them.",
    ),
    (SPEC + "deadline: 0", {}, "toy.yaml:4: deadline: got 0 seconds; give a duration above 0."),
    (
        SPEC + "deadline: {quantile: 2}",
        {},
        "toy.yaml:4: deadline.quantile: got 2; it should be less than or equal to 1.",
    ),
    (
        SPEC + "constraints: [accuracy => 0.8]",
        {},
        "toy.yaml:4: constraints.0: cannot read 'accuracy => 0.8'; write a quantity, <= or >=, a bound and optionally a "
        "confidence, for example 'runtime <= 45m @ 0.95' or 'accuracy >= 0.85'.",
    ),
    (
        SPEC + "metrics: {accuracy: ram}\nconstraints: [acuracy >= 0.8]",
        {},
        "toy.yaml:5: constraints.0: the metric 'acuracy' has no column under 'metrics'; did you mean 'accuracy'?",
    ),
    (
        SPEC + "objective: fastest please now",
        {},
        "toy.yaml:4: objective: cannot read 'fastest please now'; write for example 'cost', 'minimize time', 'maximize accuracy' or "
        "'minimize price / throughput'.",
    ),
    (
        SPEC + "budget: $0.001",
        {},
        "toy.yaml:4: budget: $0.001 is below the cheapest run of the table, $0.0078; raise the budget.",
    ),
    (
        SPEC + "progress: {column: vm}",
        {},
        "toy.yaml:4: progress.column: column 'vm' of toy.csv holds 'a' in row 1; numbers separated by spaces are needed.",
    ),
    (
        "table: none.csv\nparameters: [vm]",
        {},
        "toy.yaml:1: table: the table 'none.csv' is not beside the document; put it there, "
        "or set LYNCEUS_DATA to the folder of the tables.",
    ),
]


@pytest.mark.parametrize(("spec", "table", "message"), ERRORS, ids=[message[:50] for _, _, message in ERRORS])
def test_errors_are_one_sentence(write_job, tmp_path, monkeypatch, spec, table, message):
    monkeypatch.setenv("LYNCEUS_DATA", str(tmp_path / "nowhere"))
    table = {"header": "vm,nodes,ram,time_s,usd", "rows": ["a,1,2,28,1", "a,2,2,40,2"], **table}
    with pytest.raises(InputError) as caught:
        load_job(write_job(spec=spec, **table))
    assert str(caught.value).replace(f"{tmp_path}/", "") == message


def test_errors_in_arguments(write_job):
    for given, message in [
        ({"budget": "0.001"}, "--budget: $0.001 is below the cheapest run of the table, $0.04; raise the budget."),
        ({"deadline_quantile": 1.5}, "--deadline-quantile: got 1.5; give a number from 0 to 1, such as 0.5."),
    ]:
        with pytest.raises(InputError) as caught:
            load_job(write_job(), **given)
        assert str(caught.value) == message
    with pytest.raises(InputError, match="there is no job 'tensorflow/cn'; did you mean 'tensorflow/cnn'"):
        load_job("tensorflow/cn")


def test_the_json_schema_requires_table_and_parameters():
    assert set(ReplaySpec.model_json_schema()["required"]) == {"table", "parameters"}


@pytest.mark.parametrize("name", shipped_jobs())
def test_every_shipped_job_loads(name):
    if data_folder() is None and not name.startswith("example/"):
        pytest.skip("no folder of measured tables: set LYNCEUS_DATA")
    job = load_job(name)
    assert job.name == name
    assert job.optimum.cost_usd > 0
    costs = job.problem.billing.charges(job.measurements.seconds, job.problem.price)
    on_time = job.measurements.seconds <= job.problem.deadline_s
    assert job.optimum.cost_usd >= costs[on_time].min()


@pytest.mark.skipif(data_folder() is None, reason="no folder of measured tables: set LYNCEUS_DATA")
@pytest.mark.parametrize(
    ("name", "usd", "deadline_s"),
    [
        ("tensorflow/cnn", 0.00276431, 230.7603),
        ("tensorflow/multilayer", 0.00233313, 332.9627),
        ("tensorflow/rnn", 0.00202071, 61.8389),
    ],
)
def test_the_optima_of_the_papers(name, usd, deadline_s):
    job = load_job(name)
    assert job.problem.deadline_s == deadline_s
    assert round(job.optimum.cost_usd, 8) == usd


def test_columns_of_the_second_table_become_metrics(write_job, tmp_path):
    path = write_job()
    path.write_text(path.read_text() + "details: {table: more.csv, on: [vm, nodes]}\n")
    plain = load_job(path)
    assert set(plain.measurements.metrics) == {"accuracy"}
    (tmp_path / "more.csv").write_text("nodes,vm,cpu.%usr\n4,small,7\n1,small,5\n")
    joined = load_job(path).measurements.metrics["cpu.%usr"]
    assert joined.tolist()[:3] == pytest.approx([5.0, np.nan, 7.0], nan_ok=True)
    assert np.isnan(joined[3:]).all()


def test_the_time_may_be_an_expression_over_columns(write_job):
    rows, header = ("small,1,100,40", "large,2,70,40"), "vm,usd,time_s,boot_s"
    spec = "table: toy.csv\nparameters: [vm]\nprice: usd\ntime: time_s - boot_s\nbilling: {boot: 40s, warm: [vm]}\n"
    job = load_job(write_job(spec, rows, header))
    assert job.measurements.seconds.tolist() == [60.0, 30.0]
    assert math.isclose(job.problem.cost(0, 60.0), 100 / 3600)
    with pytest.raises(InputError, match=r"time: 'boot_s - time_s' of toy.csv holds -60 in row 1"):
        load_job(write_job(spec.replace("time_s - boot_s", "boot_s - time_s"), rows, header))
    with pytest.raises(InputError, match=r"has no column 'boots'"):
        load_job(write_job(spec.replace("time_s - boot_s", "time_s - boots"), rows, header))


def test_another_objective_learns_what_is_neither_parameter_nor_feature(write_job):
    rows, header = ("1,1,100,40,8", "4,2,70,90,8"), "users,usd,time_s,tokens,ram"
    spec = "table: toy.csv\nparameters: [users]\nfeatures: [ram]\nprice: usd\n"
    job = load_job(write_job(spec, rows, header), objective="minimize price / tokens")
    assert job.problem.metrics == ("tokens",), "runs report it; it is not known before"
    assert job.optimum.row == 1
    known = load_job(write_job(spec, rows, header), objective="minimize price * ceil(8 / users) * ram")
    assert (known.problem.metrics, known.problem.goal.known.tolist()) == ((), [64.0, 32.0])
