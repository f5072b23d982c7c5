"""python docs/screenshots.py: the pictures of docs/dashboard.md, made from seeded studies in a real browser."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from lynceus.cli.opened import Opened
from lynceus.cli.opened import opened as opened_again
from lynceus.insight import steps
from lynceus.job.execution import study_folder

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))

from browsers import CHROMIUM, until  # noqa: E402
from dashboards import WRITE, dashboard  # noqa: E402
from made_up import made_up  # noqa: E402
from pages import Place, sign_in  # noqa: E402

COLOURS = 256
"""A page has few colours: a palette makes the files small without a visible difference."""


def studies_of(folder: Path) -> Opened:
    """Four studies: one that runs with open trials, one that is over, one without a feasible run, one that has not begun."""
    made_up(folder, "weekly-training", 0, seed=5)
    made_up(folder, "ad-hoc-export", 7, seed=5, policy="random", deadline="6m")
    made_up(folder, "hourly-report", 200, seed=3, budget=6.0)
    one = made_up(folder, "nightly-sessions", 30)
    for _ in range(2):
        trial = one.study.ask()
        assert trial is not None
        one.study.launched(trial.number, str(folder / str(trial.number)))
    wrote = study_folder(one.prepared.job, one.study) / str(best_of(one))
    wrote.mkdir(parents=True)
    stages = [f"stage {stage} of 20 done, {stage * 5} % of the sessions" for stage in range(1, 21)]
    (wrote / "stdout").write_text(
        "\n".join(["reading 1.4 TB of events", *stages, "accuracy=0.93"]) + "\n", encoding="utf-8"
    )
    (wrote / "stderr").write_text("WARN TaskSetManager: stage 7 contains a task of very large size\n", encoding="utf-8")
    return one


def best_of(one: Opened) -> int:
    """The trial of the best run."""
    number = steps(one.study.problem, one.study.history)[-1].incumbent
    assert number is not None
    return number


def beating(one: Opened) -> None:
    """Look after the open trials, as a worker would, for as long as pictures are made."""

    def beat() -> None:
        kept = opened_again(one.storage, one.record)
        while True:
            kept.study.heartbeat([order.number for order in kept.study.pending])
            time.sleep(2)

    threading.Thread(target=beat, daemon=True).start()


def shot(page: Page, name: str, height: int | None = None, *, top: int = 0) -> None:
    """A stretch of a page, in few colours."""
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


def opened(browser: Browser, url: str, ready: str, *, width: int = 1280, scheme: str = "light") -> Page:
    """A page of its own, when its content is there."""
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()  # type: ignore[arg-type]
    page.goto(url)
    until(page, "ready => document.querySelector(ready) !== null", ready)
    return page


def main() -> None:
    """Write every picture."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        one = studies_of(folder)
        with dashboard("sqlite:///studies.db", folder) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            beating(one)
            study = f"{server.url}/studies/nightly-sessions"
            shot(opened(browser, f"{server.url}/", "tr[data-study]"), "studies", 560)
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            sign_in(page, Place(server, folder), WRITE)
            page.goto(study)
            until(page, "() => document.getElementById('next-config') !== null")
            shot(page, "study", 1300)
            shot(page, "study-below", 1500, top=1300)
            shot(opened(browser, f"{study}/trials/{best_of(one)}", "#runtime"), "trial")
            shot(
                opened(browser, f"{server.url}/compare?a=nightly-sessions&b=hourly-report", "#params table"), "compare"
            )
            shot(opened(browser, f"{server.url}/studies/ad-hoc-export", "#next-config"), "infeasible", 1200)
            shot(opened(browser, study, "#next-config", scheme="dark"), "dark", 1560)
            shot(opened(browser, study, "#next-config", width=390), "phone", 1700)
            shot(opened(browser, f"{server.url}/login", "form"), "login", 560)
            browser.close()


if __name__ == "__main__":
    main()
