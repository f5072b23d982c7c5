"""Earlier studies and files as history: found, stored with the study, never charged, and never a reason to fail."""

from __future__ import annotations

from pathlib import Path

import pytest

import lynceus
from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from lynceus.library.history import family_of
from lynceus.library.open_study import OpenStudy, create_or_open, open_named
from lynceus.policy.informed import FromHistory
from lynceus.server.job_upload import uploaded_job
from lynceus.storage.sql.storage import Storage
from postgres import Server

JOB = """\
name: {name}
run: "true"
space: {{nodes: [1, 2, 4, 8, 16], memory_gib: [4, 8, 16]}}
price: 0.1 * nodes * memory_gib / 4
constraints: ["runtime <= 20m"]
budget: 50 USD
{more}
"""


def create(folder: Path, name: str, more: str = "") -> OpenStudy:
    job = Job.parse(JOB.format(name=name, more=more), folder)
    return create_or_open(prepare(job), f"sqlite:///{folder}/lynceus.db")


def explore(one: OpenStudy, size: float, trials: int = 6) -> None:
    for _ in range(trials):
        trial = one.study.ask()
        assert trial is not None
        nodes, memory = trial.params["nodes"], trial.params["memory_gib"]
        assert isinstance(nodes, int)
        assert isinstance(memory, int)
        seconds = size * 60 / nodes * (5 if nodes * memory < size else 1)
        if trial.timeout is not None and seconds > trial.timeout:
            one.study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            one.study.tell(trial, runtime=seconds)


def test_a_study_learns_from_another_and_stores_exactly_what(tmp_path: Path) -> None:
    explore(create(tmp_path, "etl-small"), 20)
    second = create(tmp_path, "etl-large", "history: [etl-small]")
    assert second.note is None
    (past,) = second.study.problem.history
    assert past.name == "etl-small"
    assert "study etl-small" in past.source
    assert isinstance(second.study.policy.choose, FromHistory)
    trial = second.study.ask()
    assert trial is not None
    assert "etl-small" in second.study.record.open_runs[0].order.plan.why
    assert second.study.spent_usd == 0, "history is not charged"
    with Storage(f"sqlite:///{tmp_path}/lynceus.db") as storage:
        storage.delete_study("etl-small")
    again = open_named("etl-large", f"sqlite:///{tmp_path}/lynceus.db")
    (kept,) = again.study.problem.history
    assert kept.record() == past.record(), "the study keeps its history, whatever becomes of its source"
    assert isinstance(again.study.policy.choose, FromHistory)


def test_auto_finds_the_family(tmp_path: Path) -> None:
    explore(create(tmp_path, "etl-10gb"), 10)
    explore(create(tmp_path, "other"), 10)
    explore(create(tmp_path, "nightly", "family: etl"), 10)
    found = create(tmp_path, "etl-20gb", "history: auto").study.problem.history
    assert {one.name for one in found} == {"etl-10gb", "nightly"}
    lonely = create(tmp_path, "lonely", "history: auto")
    assert lonely.note is not None
    assert "no earlier study of the family 'lonely'" in lonely.note
    assert not isinstance(lonely.study.policy.choose, FromHistory)


def test_files_and_other_storages(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    explore(create(tmp_path / "old", "etl-old"), 10)
    rows = [f"{nodes},{mib},COMPLETE,{600 / nodes:.1f}s" for nodes in (1, 2, 4, 8) for mib in (4096, 8192)]
    (tmp_path / "runs.csv").write_text("params_nodes,params_memory_mib,state,runtime\n" + "\n".join(rows) + "\n")
    more = f"history: [{{study: etl-old, storage: 'sqlite:///{tmp_path}/old/lynceus.db'}}, {{file: runs.csv}}]"
    one = create(tmp_path, "etl", more)
    assert one.note is None
    assert [past.name for past in one.study.problem.history] == ["etl-old", "runs"]
    assert one.study.problem.history[1].seconds[0] == 600.0


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("missing-study", "missing-study"),
        ("{file: missing.csv}", "cannot be read"),
        ("{file: broken.csv}", "no column with the running time"),
        ("{file: foreign.csv}", "has no column in common with this space"),
        ("{file: empty.csv}", "no finished run"),
        ("{study: x, storage: 'sqlite:///nowhere/x.db'}", "history:"),
        ("{study: x, storage: 'nonsense://x'}", "history:"),
        ("{file: words.csv}", "history: "),
        ("{file: negative.csv}", "negative.csv: runtime of a run is -5, but a run takes more than 0 seconds"),
        ("{file: endless.csv}", "endless.csv: runtime of a run is inf, but a run takes more than 0 seconds"),
        ("{file: one.csv}", "has 1 run that can be compared; 3 are needed"),
        ("etl", "'etl' is this study itself; name earlier ones"),
        ("{file: corrupt.parquet}", "history: "),
        ("{file: few.csv}", "has 2 runs that can be compared; 3 are needed"),
    ],
)
def test_bad_history_is_said_in_one_sentence_and_the_study_begins(tmp_path: Path, entry: str, said: str) -> None:
    (tmp_path / "broken.csv").write_text("a,b\n1,2\n")
    (tmp_path / "foreign.csv").write_text("colour,runtime\nred,5\nblue,6\ngreen,7\n")
    (tmp_path / "empty.csv").write_text("nodes,state,runtime\n4,FAIL,\n")
    (tmp_path / "words.csv").write_text("nodes,memory_gib,runtime\n1,4,soon\n2,4,later\n4,4,never\n")
    (tmp_path / "negative.csv").write_text("nodes,memory_gib,runtime\n1,4,-5\n2,4,3\n4,4,2\n")
    (tmp_path / "endless.csv").write_text("nodes,memory_gib,runtime\n1,4,inf\n2,4,3\n4,4,2\n")
    (tmp_path / "one.csv").write_text("nodes,memory_gib,runtime\n1,4,5\n")
    (tmp_path / "few.csv").write_text("nodes,memory_gib,runtime\n1,4,5\n2,4,3\n")
    (tmp_path / "corrupt.parquet").write_bytes(b"PAR1 and then nothing")
    one = create(tmp_path, "etl", f"history: [{entry}]")
    assert one.note is not None
    assert said in one.note
    assert "\n" not in one.note
    assert one.study.problem.history == ()
    assert one.study.ask() is not None


def test_runs_without_a_time_are_left_out_of_a_file(tmp_path: Path) -> None:
    times = ["60", "30", "nan", "15", ""]
    rows = [f"{nodes},4,{time}" for nodes, time in zip((1, 2, 4, 8, 16), times, strict=True)]
    (tmp_path / "gaps.csv").write_text("nodes,memory_gib,runtime\n" + "\n".join(rows) + "\n")
    one = create(tmp_path, "etl", "history: [{file: gaps.csv}]")
    assert one.note is None
    (past,) = one.study.problem.history
    assert (past.columns["nodes"], past.seconds) == ((1, 2, 8), (60.0, 30.0, 15.0))


def test_mistakes_in_the_section_are_errors_with_their_line(tmp_path: Path) -> None:
    for wrong, said in (
        ("history: 7", "write auto, or a list"),
        ("history: [{storage: x}]", "either a study or a file"),
    ):
        with pytest.raises(InputError, match=said):
            Job.parse(JOB.format(name="etl", more=wrong), tmp_path)


def test_a_policy_that_does_not_learn_says_so(tmp_path: Path) -> None:
    explore(create(tmp_path, "etl-small"), 20)
    one = create(tmp_path, "etl-large", "history: [etl-small]\npolicy: cherrypick")
    assert one.note is not None
    assert "policy 'cherrypick'" in one.note


def test_another_family_does_not_count(tmp_path: Path) -> None:
    explore(create(tmp_path, "sort-small", "family: sort"), 20)
    for own, counts in (("family: sort", True), ("family: grep", False), ("", True)):
        one = create(tmp_path, f"job-{own[-4:]}x", f"history: [sort-small]\n{own}")
        (past,) = one.study.problem.history
        assert past.related is counts
        assert isinstance(one.study.policy.choose, FromHistory) is counts
        assert counts or "is of the family 'sort' and this job of 'grep'; it does not count" in (one.note or "")
    declared = create(tmp_path, "declared", "history: [{study: sort-small, family: grep}]\nfamily: grep")
    assert declared.study.problem.history[0].related, "the entry's own word counts"


def test_another_objective_needs_its_metric(tmp_path: Path) -> None:
    explore(create(tmp_path, "etl-small"), 20)
    one = create(tmp_path, "etl-fast", "history: [etl-small]\nobjective: maximize throughput")
    assert one.note is not None
    assert "no earlier job has three runs that report throughput above 0, the objective; nothing is learnt" in one.note
    rows = [f"{nodes},{gib},{600 / nodes:.1f},{nodes * 10}" for nodes in (1, 2, 4, 8) for gib in (4, 8)]
    (tmp_path / "runs.csv").write_text("nodes,memory_gib,runtime,throughput\n" + "\n".join(rows) + "\n")
    other = create(tmp_path, "etl-faster", "history: [{file: runs.csv}]\nobjective: maximize throughput")
    assert other.note is None
    assert isinstance(other.study.policy.choose, FromHistory)
    trial = other.study.ask()
    assert trial is not None
    assert int(str(trial.params["nodes"])) >= 8


def test_requests_cannot_make_the_server_read_files(tmp_path: Path) -> None:
    for entry in ("{file: /etc/passwd}", "{study: a, storage: 'sqlite:////tmp/x.db'}"):
        body = JOB.format(name="etl", more=f"history: [{entry}]").encode()
        with pytest.raises(InputError, match="no files and no other storages"):
            uploaded_job(body, "application/yaml", tmp_path)


def test_passwords_of_other_storages_are_not_stored(tmp_path: Path) -> None:
    entry = "history: [{study: a, storage: 'postgresql+psycopg://me:hidden@nowhere.invalid:1/x'}]"
    assert "hidden" not in str(Job.parse(JOB.format(name="etl", more=entry), tmp_path).stored())


def test_python_studies_are_history_too(tmp_path: Path) -> None:
    def make(name: str, **more: object) -> lynceus.Study:
        space = lynceus.Space.build([lynceus.Ordinal("nodes", [1, 2, 4, 8, 16])], price="0.1 * nodes")
        storage = f"sqlite:///{tmp_path}/python.db"
        return lynceus.create_study(
            space=space, constraints=["runtime <= 20m"], budget="$10", study_name=name, storage=storage, **more
        )  # type: ignore[arg-type]

    first = make("first")
    for nodes in (1, 2, 4, 8):
        first.add_trials([({"nodes": nodes}, 2000 / nodes, {})])
    second = make("second", history=[first])
    assert isinstance(second.policy.choose, FromHistory)
    again = lynceus.load_study(study_name="second", storage=f"sqlite:///{tmp_path}/python.db")
    assert [one.record() for one in again.problem.history] == [one.record() for one in second.problem.history]
    with pytest.raises(InputError, match="history"):
        make("third", history=["first"])


@pytest.mark.parametrize(
    ("name", "family"), [("etl-120gb", "etl"), ("etl_v2", "etl"), ("42", "42"), ("sort-large", "sort")]
)
def test_the_family_is_the_name_without_its_size(name: str, family: str) -> None:
    assert family_of(Job.parse(JOB.format(name=f"'{name}'", more=""))) == family


def test_runs_on_several_inputs_are_several_past_jobs(tmp_path: Path) -> None:
    """Times on different amounts of data do not make one curve; the sizes say for how much data each is read."""
    small = create(tmp_path, "etl-mixed", "input: {size: 20 GB}")
    explore(small, 20)
    large = create(tmp_path, "etl-mixed", "input: {size: 40 GB}")
    explore(large, 40)
    one = create(tmp_path, "etl", "history: [etl-mixed]\ninput: {size: 80 GB}")
    past = one.study.problem.history
    assert [(job.name, str(job.input), len(job.seconds)) for job in past] == [
        ("etl-mixed on 20 GB", "20 GB", 6),
        ("etl-mixed on 40 GB", "40 GB", 6),
    ]
    rows = [
        f"{nodes},4,{seconds / nodes},{size}" for size, seconds in (("20 GB", 600), ("2e10", 606)) for nodes in (1, 2)
    ]
    (tmp_path / "own.csv").write_text(
        "nodes,memory_gib,runtime,input_size\n" + "\n".join([*rows, "4,4,500,40 GB", "2,4,950,40 GB"]) + "\n"
    )
    own = create(tmp_path, "own", "history: [{file: own.csv}]")
    (first,) = own.study.problem.history
    assert (first.name, str(first.input), len(first.seconds)) == ("own on 20 GB", "20 GB", 4)
    assert own.note is not None
    assert "own has 2 runs that can be compared; 3 are needed" in own.note


def test_what_past_runs_read_may_be_said_later(tmp_path: Path) -> None:
    explore(create(tmp_path, "etl-old"), 20)
    (tmp_path / "runs.csv").write_text("nodes,memory_gib,runtime\n1,4,600\n2,4,300\n4,4,150\n")
    entries = "{study: etl-old, input: {size: 20 GB}}, {file: runs.csv, input: {size: 10 GiB}}"
    one = create(tmp_path, "etl", f"history: [{entries}]\ninput: {{size: 40 GB}}")
    assert [str(past.input) for past in one.study.problem.history] == ["20 GB", "10.7 GB"]
    with pytest.raises(InputError, match=r"history\.0\.input: size is '3 Gb'"):
        create(tmp_path, "bad", "history: [{study: etl-old, input: {size: 3 Gb}}]")
    (tmp_path / "odd.csv").write_text("nodes,memory_gib,runtime,input_size\n1,4,600,lots\n2,4,300,1\n4,4,150,2\n")
    odd = create(tmp_path, "odd", "history: [{file: odd.csv}]")
    assert odd.note is not None
    assert "input_size: size is 'lots'; give an amount such as 120 GB" in odd.note


def test_an_export_says_what_its_runs_read(tmp_path: Path) -> None:
    lines = [f"{n},4,COMPLETE,{600 / n}s,2e10,4000" for n in (1, 2, 4)]
    (tmp_path / "export.csv").write_text(
        "params_nodes,params_memory_gib,state,runtime,input_size,input_files\n" + "\n".join(lines) + "\n"
    )
    (past,) = create(tmp_path, "etl", "history: [{file: export.csv}]").study.problem.history
    assert past.input is not None
    assert past.input.numbers == {"size": 20e9, "files": 4000.0}
    assert "input_size" not in past.columns


def test_values_that_are_no_numbers_are_absent_in_every_storage(tmp_path: Path, postgres: Server) -> None:
    """PostgreSQL refuses NaN in JSON, and a study must not fail because of its history."""
    url = postgres.database("history-without-nan")
    (tmp_path / "past.csv").write_text("nodes,memory_gib,runtime,p99\n1,4,10,nan\n2,4,20,1e999\n4,4,5,3\n")
    job = Job.parse(JOB.format(name="etl", more="history: [{file: past.csv}]\nobjective: p99"), tmp_path)
    one = create_or_open(prepare(job), url)
    (past,) = one.study.problem.history
    assert (past.metrics["p99"], past.columns["p99"]) == ((None, None, 3.0), (None, None, 3.0))
    with Storage(url, create=False) as again:
        assert "nan" not in str(again.load_study("etl").document).lower()


def test_what_parquet_has_besides_numbers_is_a_text(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    days = pandas.to_datetime(["2026-11-17", "2026-11-18", None])
    pandas.DataFrame({"nodes": [1, 2, 4], "day": days, "runtime": [10.0, 20.0, 5.0]}).to_parquet(tmp_path / "p.parquet")
    (past,) = create(tmp_path, "etl", "history: [{file: p.parquet}]").study.problem.history
    assert [cell and str(cell)[:10] for cell in past.columns["day"]] == ["2026-11-17", "2026-11-18", None]
