"""A message of the command line ends with the page that explains it, once; messages that end with a command to copy do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_jobs import JOB

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize(
    ("line", "page"),
    [
        ("budget: {cost: many}", "docs/job-file.md#budget-and-trials"),
        ("executor: {kind: slurn}", "docs/executors.md"),
        ("history: 7", "docs/history.md"),
        ("forbid: ['nodes == ']", "docs/job-file.md#the-search-space"),
        ("colour: red", "docs/job-file.md"),
    ],
)
def test_a_mistake_in_a_job_file_names_the_page_of_its_field(lynceus, here: Path, line: str, page: str) -> None:
    field = line.partition(":")[0]
    kept = [one for one in JOB.splitlines() if not one.startswith(f"{field}:")]
    (here / "wrong.yaml").write_text("\n".join([*kept, line]) + "\n")
    code, _, err = lynceus("check", "wrong.yaml")
    assert code == 2
    assert err.endswith(f" See {page}\n")
    assert err.count("docs/") == 1
    assert len(err.splitlines()) == 1


def test_the_link_leads_to_the_site_where_there_is_one(lynceus, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LYNCEUS_DOCS", "https://docs.example.org/lynceus/1.0.0")
    (here / "wrong.yaml").write_text(JOB + "colour: red\n")
    assert lynceus("check", "wrong.yaml")[2].endswith(" See https://docs.example.org/lynceus/1.0.0/job-file.html\n")


def test_options_and_names_that_are_only_misspelt_have_no_page(lynceus) -> None:
    for words in (("status", "nowhere", "--storage", "sqlite:///none.db"), ("check", "--colour"), ("check", "no.yaml")):
        assert "docs/" not in lynceus(*words)[2]


def test_a_page_is_no_file_where_there_are_no_files_of_the_project(
    lynceus, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lynceus.errors._DOCS", here / "site-packages" / "docs")
    (here / "wrong.yaml").write_text(JOB.replace("threads: [1, 2, 4]", "threads: 4"))
    said = lynceus("check", "wrong.yaml")[2]
    assert said.endswith(" See job-file#the-search-space in the documentation\n"), said
