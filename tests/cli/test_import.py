"""`lynceus import`: past measurements and exported trials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lynceus.library.open_study import open_named

pytestmark = pytest.mark.usefixtures("here")


def test_past_measurements_are_imported_for_free(lynceus, here: Path) -> None:
    (here / "past.csv").write_text("threads,level,runtime,quality\n1,1,0.3s,9\n4,1,0.1,9\n8,1,0.1,9\n")
    code, _, err = lynceus("import", "job.yaml", "past.csv")
    assert code == 2
    assert "past.csv:4: The parameter 'threads' cannot be 8" in err
    assert not (here / "lynceus.db").exists(), "a refused table creates no storage"
    code, out, _ = lynceus("import", "job.yaml", "past.csv", "--skip-unknown", "-o", "json")
    assert json.loads(out) == {"study": "toy", "imported": 2, "known_before": 0, "skipped": 1, "running": 0}
    code, out, _ = lynceus("import", "toy", "past.csv", "--skip-unknown", "-o", "json")
    assert json.loads(out)["known_before"] == 2
    assert lynceus("import", "toy", "past.csv")[0] == 2
    assert len(json.loads(lynceus("trials", "toy", "-o", "json")[1])) == 2, "all rows, or none"
    code, out, _ = lynceus("best", "toy", "-o", "json")
    best = json.loads(out)
    assert best["spent_usd"] == 0
    assert best["params"] == {"threads": 1, "level": 1}
    code, out, _ = lynceus("run", "job.yaml", "-y", "-o", "json")
    rows = json.loads(lynceus("trials", "toy", "-o", "json")[1])
    assert [row["charged_usd"] for row in rows][:2] == [0.0, 0.0]
    assert len({tuple(row["params"].items()) for row in rows}) == len(rows), "known configurations are not run again"


def test_exported_trials_can_be_imported(lynceus, here: Path) -> None:
    lynceus("run", "job.yaml", "-y")
    lynceus("export", "toy", "--to", "csv", "--file", "all.csv")
    (here / "other.yaml").write_text((here / "job.yaml").read_text().replace("name: toy", "name: other"))
    _, out, _ = lynceus("import", "other.yaml", "all.csv", "-o", "json")
    assert json.loads(out)["imported"] == 6


def test_a_metric_of_a_limit_needs_its_column(lynceus, here: Path) -> None:
    for heading, hint in (("qualty", "Did you mean 'qualty'?"), ("x", "The file has ")):
        (here / "past.csv").write_text(f"threads,level,runtime,{heading}\n1,1,0.3s,9\n")
        code, _, err = lynceus("import", "job.yaml", "past.csv")
        assert code == 2
        assert "past.csv: there is no column for the metric 'quality'" in err
        assert hint in err
    assert not (here / "lynceus.db").exists()


def test_a_value_outside_the_space_is_shown_as_it_was_written(lynceus, here: Path) -> None:
    (here / "past.csv").write_text("threads,level,runtime,quality\n3,1,0.3s,9\n")
    assert (
        "The parameter 'threads' cannot be 3. The nearest are 2 and 4." in lynceus("import", "job.yaml", "past.csv")[2]
    )


def test_a_study_that_was_only_imported_does_not_run(lynceus, here: Path) -> None:
    (here / "past.csv").write_text("threads,level,runtime,quality\n1,1,0.3s,9\n")
    lynceus("import", "job.yaml", "past.csv")
    facts = json.loads(lynceus("status", "toy", "-o", "json")[1])
    assert (facts["state"], facts["reason"]) == (
        "INTERRUPTED",
        "no worker runs it; continue with: lynceus resume toy",
    )
    assert lynceus("trials", "toy", "--where", "threads > 1")[1] == "toy: none of 1 trial matches.\n"
    assert json.loads(lynceus("trials", "toy", "--where", "threads > 1", "-o", "json")[1]) == []
    assert lynceus("delete", "toy", "-y")[0] == 0
    assert "has no study yet; start one with: lynceus run job.yaml." in lynceus("status")[1]
    assert json.loads(lynceus("status", "-o", "json")[1]) == []


def runs(text: str) -> list[tuple[object, ...]]:
    """What must survive: configuration, state, time, reason, detail and metrics."""
    rows = json.loads(text)
    return [
        (row["params"], row["state"], row["runtime_s"], row["reason"], row["detail"], row["metrics"]) for row in rows
    ]


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_stopped_and_failed_runs_survive_an_export(lynceus, here: Path, form: str) -> None:
    """Our own export, imported again: nothing is lost but the runs that have not ended, and that is said."""
    job = (here / "job.yaml").read_text()
    lynceus("import", "job.yaml", _measured(here))
    one = open_named("toy", None)
    for row, state, seconds, reason in ((1, "TIMEOUT", 0.7, None), (2, "FAIL", 0.2, "oom"), (2, "FAIL", 0.2, "oom")):
        one.study.add_trial(
            one.study.problem.space.point(row),
            runtime=seconds,
            state=state,
            reason=reason,
            detail="=why" if reason else "",
        )
    one.study.add_trial(one.study.problem.space.point(3), state="FAIL", reason="infra")
    assert one.study.ask() is not None
    file = f"all.{form}"
    assert lynceus("export", "toy", "--to", form, "--file", file)[0] == 0
    (here / "other.yaml").write_text(job.replace("name: toy", "name: other"))
    code, out, err = lynceus("import", "other.yaml", file, "-o", "json")
    assert code == 0, err
    assert json.loads(out) == {"study": "other", "imported": 5, "known_before": 0, "skipped": 0, "running": 1}
    before = runs(lynceus("trials", "toy", "-o", "json")[1])
    assert runs(lynceus("trials", "other", "-o", "json")[1]) == before[:-1]
    assert json.loads(lynceus("import", "other", file, "-o", "json")[1])["known_before"] == 5
    assert "1 have not ended and were left out" in lynceus("import", "other", file)[1]


def _measured(here: Path) -> str:
    (here / "past.csv").write_text("threads,level,runtime,quality\n1,1,0.3s,9\n")
    return "past.csv"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("1,1,0.3,9,BROKEN,", "state is 'BROKEN', but one of COMPLETE, TIMEOUT, FAIL, RUNNING is needed"),
        ("1,1,0.3,9,FAIL,luck", "reason is 'luck', but one of infra, preempted, oom, job, user is needed"),
        ("1,1,,9,TIMEOUT,", "runtime"),
    ],
)
def test_a_state_that_makes_no_sense_is_refused(lynceus, here: Path, row: str, sentence: str) -> None:
    (here / "past.csv").write_text(f"threads,level,runtime,quality,state,reason\n{row}\n")
    code, _, err = lynceus("import", "job.yaml", "past.csv")
    assert code == 2
    assert "past.csv:2" in err
    assert sentence in err


def test_the_command_line_imports_and_exports(lynceus, here: Path) -> None:
    lynceus("run", "job.yaml", "-y")
    code, _, err = lynceus("export", "toy", "--to", "optuna", "--file", "optuna.db")
    assert (code, err.strip()) == (0, "Wrote 6 trials of toy to Optuna.")
    (here / "other.yaml").write_text((here / "job.yaml").read_text().replace("name: toy", "name: other"))
    code, out, _ = lynceus("import", "other.yaml", "sqlite:///optuna.db", "-o", "json")
    assert json.loads(out) == {"study": "other", "imported": 6, "known_before": 0, "skipped": 0, "running": 0}
    code, _, err = lynceus("export", "toy", "--to", "optuna")
    assert code == 2
    assert "--file optuna.db" in err
