"""Pictures of studies show the values of the documents that they draw."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib
import pytest

import lynceus
from lynceus import visualization
from lynceus.analysis.explanation import explain
from lynceus.analysis.study_context import StudyContext
from lynceus.study.study import Study

matplotlib.use("agg")

from matplotlib import pyplot

STUDY_PLOTS = [
    visualization.plot_optimization_history,
    visualization.plot_pareto_front,
    visualization.plot_slice,
    visualization.plot_param_importances,
    visualization.plot_contour,
    visualization.plot_candidates,
    visualization.plot_calibration,
    visualization.plot_input_size,
]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def new_study(objective: str = "cost") -> Study:
    space = lynceus.Space.build(
        [lynceus.Categorical("vm", ["small", "large"]), lynceus.Ordinal("nodes", [1, 2, 4, 8])],
        price="nodes * (0.10 if vm == 'small' else 0.25)",
    )
    return lynceus.create_study(
        space=space,
        objective=objective,
        constraints=["runtime <= 20m"],
        budget="$2",
        seed=1,
        study_name="pictures",
        input="100 GB",
    )


def seconds_of(params: dict[str, object]) -> float:
    return 60 + 2400 / (params["nodes"] * (1.0 if params["vm"] == "small" else 2.2))


@pytest.fixture(scope="module", params=["cost", "time", "maximize rows"])
def study(request: pytest.FixtureRequest) -> Study:
    one = new_study(request.param)

    def run(trial):
        seconds = seconds_of(trial.params)
        return {"runtime": min(seconds, trial.timeout or seconds), "rows": 1e6 / seconds}

    one.optimize(run, n_trials=7)
    return one


@pytest.mark.parametrize("plot", STUDY_PLOTS, ids=lambda plot: plot.__name__)
def test_every_plot_draws_and_can_be_saved(study: Study, plot: Callable[..., object], tmp_path: Path) -> None:
    found = plot(study)
    axes = found[0] if isinstance(found, list) else found
    assert axes.get_title(loc="left")
    axes.figure.savefig(tmp_path / "one.png")
    assert (tmp_path / "one.png").stat().st_size > 4000
    assert not [text for text in axes.texts if "too few" in text.get_text()]


@pytest.mark.parametrize("plot", STUDY_PLOTS, ids=lambda plot: plot.__name__)
def test_a_study_without_trials_has_pictures_too(plot: Callable[..., object]) -> None:
    found = plot(new_study())
    axes = found[0] if isinstance(found, list) else found
    assert axes.texts or plot is visualization.plot_slice


def test_the_history_ends_at_the_best_value_and_the_money_spent(study: Study) -> None:
    axes = visualization.plot_optimization_history(study)
    (line,) = [one for one in axes.lines if str(one.get_label()).startswith("best so far")]
    progress = StudyContext(study).progress.points
    assert line.get_xdata()[-1] == progress[-1].spent_usd
    assert line.get_ydata()[-1] == progress[-1].best_value


def test_bars_are_the_importance_and_the_candidates_of_explain(study: Study) -> None:
    explained = explain(StudyContext(study), most=4)
    shares = [bar.get_width() for bar in visualization.plot_param_importances(study).patches]
    assert shares[::-1] == [one.share for one in explained.importance]
    gains = [bar.get_width() for bar in visualization.plot_candidates(study, most=4).patches]
    assert gains[::-1] == [one.gain_per_usd for one in explained.candidates]


def test_the_axes_may_be_the_users_own(study: Study) -> None:
    _, (left, right) = pyplot.subplots(1, 2)
    assert visualization.plot_pareto_front(study, axes=left) is left
    assert visualization.plot_contour(study, "vm", "nodes", axes=right) is right
    assert right.get_xlabel() == "vm"


def test_slices_have_one_panel_for_each_parameter(study: Study) -> None:
    panels = visualization.plot_slice(study)
    assert [axes.get_xlabel() for axes in panels] == ["vm", "nodes"]
    alone = lynceus.Space.build([lynceus.Integer("nodes", 2, 2)], price=1.0)
    (only,) = visualization.plot_slice(lynceus.create_study(space=alone, budget="$1"))
    assert only.texts


def test_runs_of_a_recurring_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LYNCEUS_HOME", str(tmp_path / "home"))
    (tmp_path / "job.yaml").write_text(
        "name: etl\nrun: ['true']\nspace: {nodes: [1, 2, 4]}\nprice: nodes\nconstraints: ['runtime <= 5m']\nbudget: 1 USD\n"
    )
    storage = f"sqlite:///{tmp_path}/lynceus.db"
    job = lynceus.adopt_job("etl", source=str(tmp_path / "job.yaml"), params={"nodes": 2}, storage=storage)
    assert visualization.plot_job_runs(job).texts
    for day in range(6):
        job.record(100 + day, run_id=f"day-{day}", input="1GB")
    job.record(400, run_id="day-6", input="1GB")
    axes = visualization.plot_job_runs(job)
    marks = [line for line in axes.lines if len(line.get_xdata()) == 1]
    assert [line.get_ydata()[0] for line in marks] == [100, 101, 102, 103, 104, 105, 400]
    assert "late or failed" in {text.get_text() for text in axes.get_legend().texts}


def test_without_matplotlib_one_sentence_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import lynceus\nfrom lynceus.visualization import plot_slice\n"
        "space = lynceus.Space.build([lynceus.Integer('n', 1, 2)], price=1.0)\n"
        "try:\n    plot_slice(lynceus.create_study(space=space, budget='$1'))\n"
        "except lynceus.MissingExtraError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[plot]'\n")
