"""The stop button, on a site of its own, because it changes the study."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page

from browsers import CHROMIUM, MISSING, until
from local_runs import eventually
from lynceus.trial.outcome import FailureReason
from pages import QUICK, SLOW, Site, running_site

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("stop")) as here:
        yield here


def test_the_stop_button_stops_a_trial(open_page: Callable[..., Page], site: Site) -> None:
    """The page is updated by an event."""
    page = open_page("/studies/running", token=site.server.token)
    run = site.study("running").study.record.open_runs[0]
    number = run.order.number
    page.evaluate("() => { window.sameDocument = true; }")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name=f"Stop trial {number}").click()
    eventually(lambda: site.study("running").storage.trials("running", number)[0].outcome is not None)
    outcome = site.study("running").storage.trials("running", number)[0].outcome
    assert outcome is not None
    assert outcome.reason is FailureReason.USER
    until(page, "n => document.querySelector(`#open li[data-trial='${n}']`) === null", number)
    until(page, "want => document.getElementById('trials-count').textContent === want", str(QUICK + 1))
    assert page.evaluate("() => window.sameDocument"), "the page was not reloaded"
    assert len(site.study("running").study.record.open_runs) == SLOW - 1, "the other trial continues"
