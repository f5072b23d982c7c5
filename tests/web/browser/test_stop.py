"""The stop button, on a place of its own: it changes the study, in whatever order tests run."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page

from browsers import CHROMIUM, MISSING, until
from local_runs import eventually
from lynceus.history import Reason
from pages import QUICK, SLOW, Place, running_place

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with running_place(tmp_path_factory.mktemp("stop")) as here:
        yield here


def test_the_stop_button_really_stops_a_trial(look: Callable[..., Page], place: Place) -> None:
    """The page hears of it by itself."""
    page = look("/studies/running", token=place.server.token)
    run = place.study("running").study.open_runs[0]
    number = run.order.number
    page.evaluate("() => { window.sameDocument = true; }")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name=f"Stop trial {number}").click()
    eventually(lambda: place.study("running").storage.trials("running", number)[0].outcome is not None)
    outcome = place.study("running").storage.trials("running", number)[0].outcome
    assert outcome is not None
    assert outcome.reason is Reason.USER
    until(page, "n => document.querySelector(`#open li[data-trial='${n}']`) === null", number)
    until(page, "want => document.getElementById('trials-count').textContent === want", str(QUICK + 1))
    assert page.evaluate("() => window.sameDocument"), "the page was not loaded again"
    assert len(place.study("running").study.open_runs) == SLOW - 1, "the other trial goes on"
