"""Studies in Python programs: what they print, data frames, loading by name, times of trials."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

import lynceus
from lynceus.errors import MissingExtraError
from lynceus.executors.table import SimulatedClock
from lynceus.models.state import State
from lynceus.policy.planners.lookahead import _why
from lynceus.problem.budget import Budget


def a_space() -> lynceus.Space:
    return lynceus.Space.build([lynceus.Integer("nodes", 1, 8)], price="0.1 * nodes")


def run(study: lynceus.Study, count: int) -> None:
    for _ in range(count):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, runtime=min(600 / trial.params["nodes"], trial.timeout or 1e9), metrics={"rows": 12345678.25})


def test_repr_says_what_a_study_is_about_and_how_far_it_is() -> None:
    study = lynceus.create_study(space=a_space(), constraints=["runtime <= 10m"], budget="$1", study_name="nightly")
    assert repr(study) == (
        "<Study 'nightly': minimize cost; time <= 10m · $0 spent of $1.00 · 0 trials, 0 open · no trial has kept every constraint yet>"
    )
    run(study, 1)
    study.ask()
    said = repr(study)
    assert "1 trial, 1 open" in said
    assert "best: nodes=1" in said
    assert repr(study.snapshot()).startswith("<StudyView 'nightly'")
    study.stop("enough")
    assert "over: enough" in repr(study)
    assert "\n" not in repr(study)


def test_a_data_frame_has_the_columns_of_optuna_and_the_times() -> None:
    pandas = pytest.importorskip("pandas")
    study = lynceus.create_study(space=a_space(), constraints=["runtime <= 10m"], budget="$1")
    study.add_trial({"nodes": 8}, runtime="2m")
    before = time.time()
    run(study, 2)
    study.tell(study.ask(), state="FAIL", reason="oom", runtime=3.0)
    study.ask()
    frame = study.trials_dataframe()
    first = ["number", "value", "datetime_start", "datetime_complete", "duration", "params_nodes"]
    assert list(frame.columns)[:6] == first
    assert list(frame["state"])[:2] == ["COMPLETE", "COMPLETE"]
    assert list(frame["state"])[3:] == ["FAIL", "RUNNING"]
    assert frame["metrics_rows"][1] == 12345678.25
    assert frame["value"][1] == study.trials[1].cost_usd
    assert frame["duration"][0] == pandas.Timedelta(minutes=2)
    assert frame["datetime_start"].isna().tolist() == [True, False, False, False, False]
    assert frame["datetime_complete"].isna().tolist() == [True, False, False, False, True]
    assert str(frame["datetime_start"].dt.tz) == "UTC"
    began, ended = frame["datetime_start"][1].timestamp(), frame["datetime_complete"][1].timestamp()
    assert before - 1 <= began <= ended <= time.time() + 1
    assert frame["keeps_constraints"].isna().tolist() == [
        False,
        False,
        *[summary.cost_usd is None for summary in study.trials[2:]],
    ]


def test_an_empty_data_frame_and_other_objectives() -> None:
    pytest.importorskip("pandas")
    for objective, value in (("time", 300.0), ("maximize rows", 5.0)):
        study = lynceus.create_study(space=a_space(), objective=objective, policy="random")
        assert study.trials_dataframe().shape[0] == 0
        study.tell(study.ask(), runtime=300.0, metrics={"rows": 5.0})
        assert study.trials_dataframe()["value"].tolist() == [value]


def test_pandas_is_loaded_by_data_frames_alone_and_named_when_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys, lynceus; lynceus.create_study, lynceus.load_study; print('pandas' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "False\n"
    )
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"Data frames need an optional package: pip install '.*\[pandas\]'"):
        lynceus.create_study(space=a_space()).trials_dataframe()


def test_load_study_opens_studies_of_programs_and_of_job_files(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/lynceus.db"
    made = lynceus.create_study(
        space=a_space(), constraints=["runtime <= 10m"], budget="$1", seed=3, storage=url, study_name="py"
    )
    run(made, 2)
    with pytest.raises(
        lynceus.InputError, match=r"'py' exists already in .*; continue it with load_if_exists=True, or"
    ):
        lynceus.create_study(space=a_space(), storage=url, study_name="py")
    again = lynceus.load_study(study_name="py", storage=url)
    assert (again.name, again.seed, again.policy.name) == ("py", 3, "lynceus")
    assert again.trials == made.trials
    assert [trial.started_s for trial in again.trials] == pytest.approx([trial.started_s for trial in made.trials])
    assert again.ask() == lynceus.load_study(storage=url).next_step().decision or again.pending
    with pytest.raises(lynceus.InputError, match="'nope' is not in"):
        lynceus.load_study(study_name="nope", storage=url)
    with pytest.raises(lynceus.InputError, match="there is no such file"):
        lynceus.load_study(study_name="py", storage=f"sqlite:///{tmp_path}/other.db")
    assert not (tmp_path / "other.db").exists()
    job = "name: job\nspace: {n: [1, 2]}\nprice: 1.0\nbudget: $5\nrun: 'true'\n"
    (tmp_path / "job.yaml").write_text(job)
    from lynceus.jobfile.prepared_study import prepare_file
    from lynceus.library.open_study import create_or_open

    create_or_open(prepare_file(tmp_path / "job.yaml"), url)
    loaded = lynceus.load_study(study_name="job", storage=url)
    assert loaded.budget_usd == 5.0
    with pytest.raises(lynceus.InputError, match="several studies"):
        lynceus.load_study(storage=url)


def test_times_follow_the_clock_of_the_study() -> None:
    clock = SimulatedClock()
    problem = lynceus.Problem(a_space(), budget=Budget(usd=1.0))
    study = lynceus.Study(problem, lynceus.preset("sweep"), clock=clock)
    trial = study.ask()
    assert trial is not None
    clock.sleep(30.0)
    study.tell(trial, runtime=30.0)
    (summary,) = study.trials
    assert summary.ended_s is not None
    assert summary.started_s is not None
    assert summary.ended_s - summary.started_s == pytest.approx(30.0)


def test_imported_runs_do_not_count_as_trials_of_the_budget() -> None:
    problem = lynceus.Problem(a_space(), budget=Budget(usd=100.0, trials=2))
    study = lynceus.Study(problem, lynceus.preset("sweep"))
    study.add_trials([({"nodes": nodes}, 600.0, {}) for nodes in (5, 6, 7)])
    assert (study.record.started, study.record.ordered) == (3, 0)
    run(study, 2)
    assert study.ask() is None
    assert study.reason == "all 2 trials of the budget were used"
    assert (study.record.started, study.record.ordered) == (5, 2)


@pytest.mark.parametrize("value", [0.0, 1e-139, 1e-13])
@pytest.mark.parametrize("told", [True, False])
def test_a_reason_does_not_speak_of_an_improvement_of_nothing(value: float, told: bool) -> None:
    study = lynceus.create_study(space=a_space(), constraints=["runtime <= 10m"], budget="$1")
    if told:
        run(study, 1)
    state = State.present(study.problem, study.observations)
    said = _why(state, value, 0.01, 3, 0)
    assert said == "hardly any improvement expected for $0.01, best of 3 affordable"
    assert _why(state, 0.002, 0.01, 3, 0) == "expected improvement $0.002 for $0.01, best of 3 affordable"


def test_the_package_shows_its_public_names_only() -> None:
    assert sorted(name for name in dir(lynceus) if not name.startswith("_")) == sorted(lynceus.__all__)
