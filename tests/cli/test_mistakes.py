"""Mistakes in commands and job files are refused with one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_jobs import JOB

pytestmark = pytest.mark.usefixtures("here")


def test_a_misspelt_objective_is_refused_before_it_is_paid_for(lynceus, here: Path) -> None:
    for word, hint in (
        ("cst", "Did you mean 'cost'?"),
        ("cheap", "Known are cost, time, quality."),
        ("qualty", "'quality'"),
    ):
        (here / "job.yaml").write_text(JOB + f"objective: {word}\n")
        for command in (["check", "job.yaml"], ["plan", "job.yaml"], ["run", "job.yaml", "-y"]):
            code, _, err = lynceus(*command)
            assert (code, hint in err) == (2, True), err
    for word in ("minimize cheap", "quality", "runtime"):
        (here / "job.yaml").write_text(JOB + f"objective: {word}\n")
        assert lynceus("check", "job.yaml")[0] == 0


def test_a_dashboard_without_a_storage_is_refused(lynceus, here: Path, monkeypatch) -> None:
    monkeypatch.delenv("LYNCEUS_WRITE_TOKEN", raising=False)
    code, _, err = lynceus("dashboard", "sqlite:///nothere.db")
    assert (code, "there is no such file" in err) == (2, True)
    assert not (here / "nothere.db").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["best", "unknown"],
        ["trials", "toy", "--state", "GONE"],
        ["logs", "toy", "99"],
        ["whatif", "toy", "--deadline", "soon"],
    ],
)
def test_mistakes_are_one_line(lynceus, arguments: list[str]) -> None:
    lynceus("import", "job.yaml", "missing.csv")
    code, out, err = lynceus(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("lynceus: ")
    assert err.count("\n") == 1
