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


def test_a_study_that_is_named_instead_of_its_job_file_is_told_as_one(lynceus, here: Path, monkeypatch) -> None:
    assert lynceus("run", "job.yaml", "-y")[0] == 0
    for command in ("run", "plan", "check"):
        code, out, err = lynceus(command, "toy")
        assert (code, out) == (2, "")
        assert "there is no file 'toy', but a study of that name in sqlite:///lynceus.db. " in err
        assert "lynceus resume toy. " in err
        assert "lynceus best toy. " in err
        assert "there is no such file" in lynceus(command, "toys")[2]
    (here / "lynceus.db").rename(here / "moved.db")
    assert "there is no such file" in lynceus("run", "toy")[2]
    assert not (here / "lynceus.db").exists()
    assert (
        "lynceus resume toy --storage sqlite:///moved.db. "
        in lynceus("run", "toy", "--storage", "sqlite:///moved.db")[2]
    )
    monkeypatch.setenv("LYNCEUS_STORAGE", "sqlite:///moved.db")
    assert "lynceus resume toy. " in lynceus("run", "toy")[2]


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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "job.yaml", "--parallel", "0"], "invalid value for '--parallel': "),
        (["status", "-o", "yaml"], "invalid value for '--output' / '-o': 'yaml' is not one of 'table', 'json'"),
        (["status", "--sotrage", "x"], "no such option: --sotrage"),
        (["run"], "missing argument 'file'"),
        (
            ["resume", "toy", "--add-trials", "many"],
            "invalid value for '--add-trials': write a whole number; see: lynceus resume --help",
        ),
        (
            ["mode", "toy", "--late-chance", "often"],
            "invalid value for '--late-chance': write a number; see: lynceus mode --help",
        ),
        (["whatif", "toy", "--deadline"], "option '--deadline' requires an argument; see: lynceus whatif --help"),
        (["runn"], "no such command 'runn'"),
        (["prices", "lisst"], "no such command 'lisst'"),
    ],
)
def test_a_mistake_in_options_is_one_sentence(lynceus, arguments: list[str], said: str) -> None:
    code, out, err = lynceus(*arguments)
    assert (code, out) == (2, "")
    assert err.lower().startswith(f"lynceus: {said}"), err
    assert err.count("\n") == 1
    assert "see: lynceus" in err.lower()
    assert err.endswith(" --help\n")


def test_commands_of_other_packages_come_last_in_the_help(lynceus) -> None:
    code, out, _ = lynceus("--help")
    assert code == 0
    assert out.index("Try it") < out.index("Import and export") < out.index("Of other packages") < out.index(" lab ")


def test_check_and_plan_mention_a_program_that_is_not_there(lynceus, here: Path) -> None:
    (here / "job.yaml").write_text(JOB.split("run:")[0] + "run: [nosuchprog, '1']\n" + JOB[JOB.index("space:") :])
    for command in ("check", "plan"):
        code, out, _ = lynceus(command, "job.yaml")
        assert (code, "there is no program 'nosuchprog' on this machine" in " ".join(out.split())) == (0, True), out


def test_an_expression_that_ends_too_early_is_named_with_its_place(lynceus, here: Path) -> None:
    (here / "past.csv").write_text("threads,level,runtime,quality\n1,1,0.3s,9\n")
    lynceus("import", "job.yaml", "past.csv")
    assert "at character 10: it ends where a value is expected" in lynceus("trials", "--where", "quality <")[2]
