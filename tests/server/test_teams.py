"""Budgets that studies share, over HTTP and with the Python client."""

from __future__ import annotations

from pathlib import Path

import pytest

import lynceus
from dashboards import JOB, READ, WRITE, Dashboard, served
from lynceus.errors import InputError
from lynceus.server.team_examples import TEAM_EXAMPLES
from lynceus.storage.sql.budgets import BudgetStore
from lynceus.storage.sql.storage import Storage


def test_budgets_are_set_read_obeyed_and_removed(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path}/s.db", tmp_path, read=READ) as server:
        admin, viewer = lynceus.Client(server.url, WRITE), lynceus.Client(server.url, READ)
        assert viewer.budgets() == []
        made = admin.set_budget("project:forecasts", "30 USD")
        assert (made["account"], made["usd"], made["left_usd"], made["per"]) == ("project:forecasts", 30, 30, "month")
        with pytest.raises(InputError, match="needs the role admin, and you have the role viewer"):
            viewer.set_budget("project:forecasts", 1e6)
        with pytest.raises(InputError, match="needs the role admin"):
            viewer.remove_budget("project:forecasts")
        study = admin.create_study(JOB | {"project": "forecasts", "policy": "sweep"})
        trial = study.ask()
        assert trial is not None
        (found,) = viewer.budgets()
        assert found["reserved_usd"] == pytest.approx(trial.max_charge_usd) != 0
        study.tell(trial, runtime=5.0)
        (found,) = viewer.budgets()
        assert (found["charged_usd"], found["reserved_usd"]) == (pytest.approx(study.spent_usd), 0)
        admin.set_budget("project:forecasts", 0)
        assert study.ask() is None
        assert "lynceus budget set project:forecasts" in str(study.reason)
        admin.remove_budget("project:forecasts")
        assert viewer.budgets() == []
        with pytest.raises(InputError, match="project:forecasts has none in"):
            admin.remove_budget("project:forecasts")
        assert server.request("DELETE", "budgets/project:forecasts").status == 404


def test_readers_see_what_is_left_now_although_another_study_has_spent_it(tmp_path: Path) -> None:
    """A study's row does not change when its budgets do; what the server remembers of it must."""
    with served(f"sqlite:///{tmp_path}/s.db", tmp_path) as server:
        admin = lynceus.Client(server.url, WRITE)
        admin.set_budget("project:forecasts", 30)
        waiting, other = (
            admin.create_study(JOB | {"name": name, "project": "forecasts", "policy": "sweep"}) for name in ("a", "b")
        )

        def shown() -> list[float]:
            documents = [next(one for one in server.get("studies").json["studies"] if one["name"] == "a")]
            documents += [server.get("studies/a").json, server.get("studies/a/view").json["head"]]
            return [one["shared_budgets"][0]["left_usd"] for one in documents]

        def next_trial() -> object:
            return server.get("studies/a/explain").json["next"]["trial"]

        assert shown() == [30.0] * 3
        assert next_trial() is not None
        trial = other.ask()
        assert trial is not None
        assert trial.max_charge_usd is not None
        assert shown() == [pytest.approx(30.0 - trial.max_charge_usd)] * 3
        admin.set_budget("project:forecasts", trial.max_charge_usd)
        assert shown() == [0.0] * 3
        assert next_trial() is None
        assert waiting.ask() is None


@pytest.mark.parametrize(
    ("account", "amount", "message"),
    [
        ("forecasts", "1 USD", "write project:NAME or owner:NAME"),
        ("team:a", "1 USD", "write project:NAME or owner:NAME"),
        ("project:" + "x" * 201, "1 USD", "give 1 to 200 printable"),
        ("owner:ana", "much", "amount"),
        ("owner:ana", -1, "amount"),
        ("owner:ana", 1e13, "too much"),
        ("owner:ana", True, "finite number"),
    ],
)
def test_mistakes_are_one_sentence(server: Dashboard, account: str, amount: object, message: str) -> None:
    refused = server.request("PUT", f"budgets/{account}", {"amount": amount})
    assert (refused.status, message in refused.sentence) == (422, True), refused.sentence


def test_names_with_any_printable_character_are_accounts(server: Dashboard) -> None:
    client = lynceus.Client(server.url, WRITE)
    for name in ("a/b", "ü ö", "100%", "a?b#c", "..", "<b>"):
        assert client.set_budget(f"project:{name}", 1)["account"] == f"project:{name}"
        assert f"project:{name}" in [one["account"] for one in client.budgets()]
        client.remove_budget(f"project:{name}")


def test_examples_have_the_fields_of_real_answers(server: Dashboard) -> None:
    real = {
        "set_budget": server.request("PUT", "budgets/owner:eve", {"amount": "5 USD"}),
        "budgets": server.get("budgets"),
        "remove_budget": server.request("DELETE", "budgets/owner:eve"),
        "add_token": server.post("tokens", {"name": "eve", "role": "viewer"}),
        "tokens": server.get("tokens"),
        "revoke_token": server.request("DELETE", "tokens/eve"),
    }
    assert [one.status for one in real.values()] == [200, 200, 200, 201, 200, 200]
    for operation, answer in real.items():
        assert TEAM_EXAMPLES[operation].keys() == answer.json.keys(), operation
    for many in ("budgets", "tokens"):
        assert TEAM_EXAMPLES[many][many][0].keys() == real[many].json[many][0].keys()
    assert real.keys() == TEAM_EXAMPLES.keys()


def test_a_budget_of_the_command_line_is_the_same(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with served(url, tmp_path) as server:
        lynceus.Client(server.url, WRITE).set_budget("owner:ana", "12.5 USD")
    with Storage(url) as storage:
        (found,) = BudgetStore(storage).all()
        assert (str(found.account), found.usd) == ("owner:ana", 12.5)
