"""`lynceus budget`, and how other commands show and obey what projects and people may spend."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lynceus.storage.sql.storage import Storage

Lynceus = Callable[..., tuple[int, str, str]]
JOB = """\
name: toy
project: forecasts
run: "true"
space: {threads: [1, 2, 4]}
price: 36.0 * threads
constraints: ["runtime <= 1m"]
budget: {cost: 100 USD}
policy: sweep
"""


@pytest.fixture
def job(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LYNCEUS_USER", "ana")
    (here / "job.yaml").write_text(JOB)
    return here


def test_budgets_are_set_listed_and_removed(lynceus: Lynceus, job: Path) -> None:
    assert lynceus("budget", "set", "project:forecasts", "200 USD", "--per", "month")[0] == 0
    code, out, _ = lynceus("budget", "list", "-o", "json")
    (found,) = json.loads(out)
    assert (code, found["account"], found["usd"], found["left_usd"]) == (0, "project:forecasts", 200.0, 200.0)
    assert "project:forecasts" in lynceus("budget", "list")[1]
    assert lynceus("budget", "remove", "project:forecasts")[0] == 0
    assert "no shared budgets" in lynceus("budget", "list")[1]
    told = [(one["author"], one["kind"], one["subject"]) for one in json.loads(lynceus("audit", "-o", "json")[1])]
    assert told == [("ana", "budget", "project:forecasts")] * 2
    assert "project:forecasts" in lynceus("audit")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("set", "forecasts", "200 USD"), "write project:NAME or owner:NAME"),
        (("set", "project:forecasts", "much"), "budget"),
        (("remove", "project:forecasts"), "project:forecasts has none"),
    ],
)
def test_mistakes_are_one_sentence(lynceus: Lynceus, job: Path, arguments: tuple[str, ...], message: str) -> None:
    Storage("sqlite:///lynceus.db").close()
    code, _, err = lynceus("budget", *arguments)
    assert (code, err.count("\n"), message in err) == (2, 1, True)


@pytest.mark.parametrize("account", ["project:forecasts", "owner:ana"])
def test_a_search_without_money_is_refused_before_its_first_trial(lynceus: Lynceus, job: Path, account: str) -> None:
    lynceus("budget", "set", account, "0 USD")
    assert f"shared budget: $0 left of $0 of {account}" in lynceus("check", "job.yaml")[1]
    assert f"{account} has $0 left" in lynceus("plan", "job.yaml")[1]
    shown = json.loads(lynceus("plan", "job.yaml", "-o", "json")[1])
    assert shown["shared_budgets"][0]["account"] == account
    code, out, _ = lynceus("run", "job.yaml", "-y")
    assert (code, " starts: " in out) == (5, False)
    assert "wait until 1 " in out
    assert f"raise it with: lynceus budget set {account}" in out
    assert "Continue with: lynceus resume toy" in out
    status = json.loads(lynceus("status", "toy", "-o", "json")[1])
    assert (status["state"], status["project"], status["owner"]) == ("PAUSED", "forecasts", "ana")
    assert status["shared_budgets"][0]["left_usd"] == 0.0
    assert f"{account}: $0 charged and $0 reserved of $0" in lynceus("status")[1]
    lynceus("budget", "set", account, "50 USD")
    code, out, _ = lynceus("resume", "toy")
    assert (code, " starts: " in out) == (0, True)


def test_a_study_moves_to_another_project_with_its_job_file(lynceus: Lynceus, job: Path) -> None:
    assert lynceus("run", "job.yaml", "-y")[0] == 0
    (job / "job.yaml").write_text(JOB.replace("forecasts", "reports"))
    _, _, err = lynceus("resume", "job.yaml")
    assert "trials from now on follow the changed file (project)" in err
    with Storage("sqlite:///lynceus.db") as storage:
        payer = storage.load_study("toy").payer
    assert (payer.project, payer.owner) == ("reports", "ana")
    lynceus("budget", "set", "project:reports", "9 USD")
    (found,) = json.loads(lynceus("budget", "list", "-o", "json")[1])
    assert found["charged_usd"] > 0


def test_the_owner_of_a_study_pays_whoever_goes_on_with_it(
    lynceus: Lynceus, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lynceus("run", "job.yaml", "-y")[0] == 0
    for owner in ("ana", "bo"):
        lynceus("budget", "set", f"owner:{owner}", "9 USD")
    monkeypatch.setenv("LYNCEUS_USER", "bo")
    for command in ("plan", "check"):
        shown = json.loads(lynceus(command, "job.yaml", "-o", "json")[1])["shared_budgets"]
        assert [one["account"] for one in shown] == ["owner:ana"], command


def test_a_user_name_that_cannot_be_one_is_refused(
    lynceus: Lynceus, job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LYNCEUS_USER", " ")
    code, _, err = lynceus("run", "job.yaml", "-y")
    assert (code, "LYNCEUS_USER: got ' '" in err) == (2, True)


@pytest.mark.parametrize("amount", ["-5", "-$5"])
def test_a_budget_below_zero_is_explained(lynceus: Lynceus, job: Path, amount: str) -> None:
    code, _, err = lynceus("budget", "set", "project:forecasts", amount)
    said = f"lynceus: {amount} is no option, and amounts and numbers must be positive; see: lynceus budget set --help\n"
    assert (code, err) == (2, said)
