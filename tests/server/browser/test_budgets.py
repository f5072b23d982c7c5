"""The card of shared budgets and signing in with a named token, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

import lynceus
from browsers import CHROMIUM, LATE, MISSING, PATIENCE_S, until
from dashboards import JOB, READ, WRITE, Dashboard, served
from lynceus.storage.access_token import Role
from lynceus.storage.sql.storage import Storage
from lynceus.storage.sql.tokens import TokenStore

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
LONG = "project:a-project-with-a-rather-long-name-that-goes-on-and-on-without-a-space"


@dataclass
class Team:
    """A server, a study that two budgets pay, and tokens."""

    server: Dashboard
    client: lynceus.Client
    secrets: dict[Role, str]


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    url = f"sqlite:///{tmp_path}/s.db"
    with Storage(url) as storage:
        secrets = {role: TokenStore(storage).add(f"my-{role}", role, by="boss")[1] for role in Role}
    with served(url, tmp_path, read=READ) as running:
        client = lynceus.Client(running.url, WRITE)
        client.create_study(JOB | {"project": "forecasts", "owner": "ana", "policy": "sweep"})
        for account, amount in (("project:forecasts", "100 USD"), ("owner:ana", "90 USD"), (LONG, 0)):
            client.set_budget(account, amount)
        yield Team(running, client, secrets)


def opened(
    browser: Browser, team: Team, token: str, path: str = "/", *, width: int = 1280, scheme: str = "light"
) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page.add_init_script(LATE)
    page.set_default_timeout(1000 * PATIENCE_S)
    page.goto(f"{team.server.url}/login?next={path}")
    page.get_by_label("token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()
    return page


def shown(page: Page, account: str) -> list[str]:
    """Limit, spent, reserved and left of an account."""
    return [text.strip() for text in page.locator(f'tr[data-account="{account}"] td').all_inner_texts()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_card_has_no_serious_problem_and_fits_a_phone(
    browser: Browser, team: Team, width: int, scheme: str
) -> None:
    page = opened(browser, team, team.secrets[Role.VIEWER], width=width, scheme=scheme)
    page.locator("tr[data-account]").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page).response["violations"]
    assert [one["help"] for one in found if one["impact"] in ("serious", "critical")] == []
    page.close()


def test_the_card_shows_what_the_storage_has_and_follows_it(browser: Browser, team: Team) -> None:
    page = opened(browser, team, team.secrets[Role.VIEWER])
    page.locator("tr[data-account]").first.wait_for()
    assert page.locator("tr[data-account] th").all_inner_texts() == ["owner:ana", LONG, "project:forecasts"]
    assert shown(page, "project:forecasts") == ["$100.00", "$0", "$0", "$100.00"]
    assert shown(page, LONG) == ["$0", "$0", "$0", "$0"]
    assert "1 " in page.locator("#budgets .card-head").inner_text()
    until(page, "() => document.querySelector('.live')?.textContent === 'live'")
    study = team.client.study("toy")
    first, second = study.ask(), study.ask()
    assert first is not None
    assert second is not None
    study.tell(first, runtime=100.0)
    until(
        page, "() => document.querySelector('tr[data-account=\"owner:ana\"] td:nth-of-type(2)').innerText === '$1.00'"
    )
    budgets = {one["account"]: one for one in team.client.budgets()}
    for account in ("owner:ana", "project:forecasts"):
        one = budgets[account]
        assert shown(page, account) == [
            f"${one[name]:.2f}" for name in ("usd", "charged_usd", "reserved_usd", "left_usd")
        ]
    page.close()


def test_without_budgets_there_is_no_card(browser: Browser, team: Team) -> None:
    for one in team.client.budgets():
        team.client.remove_budget(one["account"])
    page = opened(browser, team, READ)
    page.locator("tr[data-study]").first.wait_for()
    assert page.locator("#budgets").is_hidden()
    page.close()


@pytest.mark.parametrize(
    ("role", "buttons"),
    [
        (Role.VIEWER, []),
        (Role.RUNNER, ["Stop the study", "Rename"]),
        (Role.ADMIN, ["Stop the study", "Rename", "Delete"]),
    ],
)
def test_a_role_sees_its_name_and_the_buttons_that_it_may_press(
    browser: Browser, team: Team, role: Role, buttons: list[str]
) -> None:
    page = opened(browser, team, team.secrets[role], "/studies/toy")
    page.locator("h1 .badge, h1 #state").first.wait_for()
    until(page, "() => document.querySelector('#next-config') !== null")
    assert f"my-{role} · {role}" in page.locator(".account").inner_text()
    assert page.locator(".actions button").all_inner_texts() == buttons
    assert team.secrets[role] not in page.content() + page.url
    page.close()


def test_an_expired_token_says_so(browser: Browser, team: Team) -> None:
    secret = team.client.add_token("short", "viewer", expires=0.01)
    page = browser.new_page()
    page.goto(f"{team.server.url}/login")
    page.get_by_label("token").fill(secret)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("The token short has expired; ask for a new one.").wait_for()
    page.close()


def test_a_browser_is_signed_out_when_its_token_is_revoked(browser: Browser, team: Team) -> None:
    page = opened(browser, team, team.secrets[Role.RUNNER])
    page.locator("tr[data-study]").first.wait_for()
    team.client.revoke_token("my-runner")
    page.reload()
    page.get_by_role("heading", name="Sign in").wait_for()
    page.get_by_label("token").fill(team.secrets[Role.RUNNER])
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("The token is wrong, or was revoked.").wait_for()
    page.close()
