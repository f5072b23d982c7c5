"""Make the screenshots of docs/dashboard.md from seeded studies in a real browser: python docs/screenshots.py."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

import lynceus
from lynceus.analysis.progress import progress
from lynceus.jobfile.run_folder import study_folder
from lynceus.library.open_study import OpenStudy, open_record

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from browsers import CHROMIUM, until  # noqa: E402
from dashboards import WRITE, dashboard  # noqa: E402
from pages import Site, sign_in  # noqa: E402
from sample_studies import sample_study  # noqa: E402

OWNER = "ana"
"""Who has started the studies."""
COLOURS = 256
"""Pages have few colours, so a palette makes the files small without a visible difference."""


def create_studies(folder: Path) -> OpenStudy:
    """Create four studies: running with open trials, finished, without a feasible run, and not started. Returns the running one."""
    sample_study(folder, "weekly-training", 0, seed=5)
    sample_study(folder, "ad-hoc-export", 7, seed=5, policy="random", deadline="6m")
    sample_study(folder, "hourly-report", 200, seed=3, budget=6.0)
    one = sample_study(folder, "nightly-sessions", 20)
    for _ in range(2):
        trial = one.study.ask()
        assert trial is not None
        one.study.runs.launched(trial.number, str(folder / str(trial.number)))
    wrote = study_folder(one.prepared.job, one.study) / str(best_trial(one))
    wrote.mkdir(parents=True)
    stages = [f"stage {stage} of 20 done, {stage * 5} % of the sessions" for stage in range(1, 21)]
    (wrote / "stdout").write_text(
        "\n".join(["reading 1.4 TB of events", *stages, "accuracy=0.93"]) + "\n", encoding="utf-8"
    )
    (wrote / "stderr").write_text("WARN TaskSetManager: stage 7 contains a task of very large size\n", encoding="utf-8")
    return one


def best_trial(one: OpenStudy) -> int:
    """The number of the trial with the best run."""
    number = progress(one.study.problem, one.study.observations)[-1].best_trial
    assert number is not None
    return number


def send_heartbeats(one: OpenStudy) -> None:
    """Send heartbeats for the open trials in the background, as a worker would."""

    def beat() -> None:
        kept = open_record(one.storage, one.record)
        while True:
            kept.study.runs.heartbeat([order.number for order in kept.study.pending])
            time.sleep(2)

    threading.Thread(target=beat, daemon=True).start()


def screenshot(page: Page, name: str, height: int | None = None, *, top: int = 0) -> None:
    """Save part of a page as a PNG file with few colours."""
    whole, width = page.evaluate("() => [document.documentElement.scrollHeight, innerWidth]")
    page.set_viewport_size({"width": width, "height": whole})
    page.wait_for_timeout(1200)
    whole = page.evaluate("() => document.documentElement.scrollHeight")
    file = HERE / "images" / f"dashboard-{name}.png"
    clip = {"x": 0, "y": top, "width": width, "height": min(whole - top, height or whole)}
    page.screenshot(path=file, clip=clip)  # type: ignore[arg-type]
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)
    size = file.stat().st_size
    sys.stdout.write(f"{file.relative_to(HERE.parent)}: {size / 1000:.0f} kB\n")
    assert size < 200_000, f"{file} has {size} bytes"


def open_page(browser: Browser, url: str, ready: str, *, width: int = 1280, scheme: str = "light") -> Page:
    """Open a page in a new browser context and wait for its content."""
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()  # type: ignore[arg-type]
    page.goto(url)
    until(page, "ready => document.querySelector(ready) !== null", ready)
    return page


def main() -> None:
    """Write all screenshots."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        os.environ["LYNCEUS_USER"] = OWNER
        one = create_studies(folder)
        with dashboard("sqlite:///studies.db", folder) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            send_heartbeats(one)
            study = f"{server.url}/studies/nightly-sessions"
            screenshot(open_page(browser, f"{server.url}/", "tr[data-study]"), "studies", 560)
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            sign_in(page, Site(server, folder), WRITE)
            page.goto(study)
            until(page, "() => document.getElementById('next-config') !== null")
            screenshot(page, "study", 1300)
            screenshot(page, "study-below", 1500, top=1300)
            screenshot(open_page(browser, f"{study}/trials/{best_trial(one)}", "#runtime"), "trial")
            screenshot(
                open_page(browser, f"{server.url}/compare?a=nightly-sessions&b=hourly-report", "#params table"),
                "compare",
            )
            screenshot(open_page(browser, f"{server.url}/studies/ad-hoc-export", "#next-config"), "infeasible", 1200)
            screenshot(open_page(browser, study, "#next-config", scheme="dark"), "dark", 1560)
            screenshot(open_page(browser, study, "#next-config", width=390), "phone", 1700)
            screenshot(open_page(browser, f"{server.url}/login", "form"), "login", 560)
            client = lynceus.Client(server.url, WRITE)
            for account, amount in ((f"owner:{OWNER}", "50 USD"), ("project:forecasts", "200 USD")):
                client.set_budget(account, amount)
            screenshot(open_page(browser, f"{server.url}/", "tr[data-account]"), "budgets", 420)
            browser.close()


if __name__ == "__main__":
    main()
