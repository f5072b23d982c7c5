"""`lynceus import`: past measurements and exported trials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("here")


def test_past_measurements_are_imported_for_free(lynceus, here: Path) -> None:
    (here / "past.csv").write_text("threads,level,runtime,quality\n1,1,0.3s,9\n4,1,0.1,9\n8,1,0.1,9\n")
    code, _, err = lynceus("import", "job.yaml", "past.csv")
    assert code == 2
    assert "past.csv:4: The parameter 'threads' cannot be 8" in err
    assert not (here / "lynceus.db").exists(), "a refused table creates no storage"
    code, out, _ = lynceus("import", "job.yaml", "past.csv", "--skip-unknown", "-o", "json")
    assert json.loads(out) == {"study": "toy", "imported": 2, "known_before": 0, "skipped": 1}
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
