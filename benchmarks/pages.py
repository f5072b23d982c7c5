"""python -m benchmarks.pages: how fast the pages are in a real browser, on a study of ten thousand trials.

Prints a table: the first useful paint (facts of the study are on the screen) and an update after one more trial, by the clock of the
browser, each the median and the worst of several.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from browsers import CHROMIUM, until
from dashboards import Dashboard, dashboard
from sample_studies import large_study


def first_paint(page: Page, address: str) -> dict[str, float]:
    """Milliseconds from the start of the navigation."""
    page.goto(address)
    until(page, "() => performance.getEntriesByName('useful').length > 0")
    until(page, "() => performance.getEntriesByName('first-contentful-paint').length > 0")
    found: dict[str, float] = page.evaluate(
        """() => {
          const view = performance.getEntriesByType('resource').find((one) => one.name.includes('view'));
          return {
            'first paint': performance.getEntriesByName('first-contentful-paint')[0].startTime,
            'document of the study (server and transfer)': view.responseEnd - view.startTime,
            'first useful paint': performance.getEntriesByName('useful')[0].startTime,
          };
        }"""
    )
    return found


def update(page: Page, server: Dashboard, name: str) -> dict[str, float]:
    """Ask and tell one more trial, and measure how long the page takes to fetch and to draw it."""
    number = server.post(f"studies/{name}/ask", {}, {"Idempotency-Key": f"ask-{time.time_ns()}"}).json["trial"][
        "number"
    ]
    until(page, "n => document.querySelector(`[data-trial='${n}']`) !== null", number)
    page.evaluate("() => { performance.clearMeasures('update'); performance.clearResourceTimings(); }")
    before = page.locator("#trials-count").inner_text()
    result = {"runtime": 600.0, "metrics": {"accuracy": 0.9}}
    server.post(f"studies/{name}/trials/{number}/tell", result, {"Idempotency-Key": f"tell-{time.time_ns()}"})
    until(page, "old => document.getElementById('trials-count').textContent !== old", before)
    until(page, "() => performance.getEntriesByName('update').length > 0")
    found: dict[str, float] = page.evaluate(
        """() => {
          const view = performance.getEntriesByType('resource').findLast((one) => one.name.includes('view?since'));
          const drawn = performance.getEntriesByName('update').at(-1);
          return {
            'update: fetch what is new': view.responseEnd - view.startTime,
            'update: draw it': drawn.duration,
            'update: both': view.responseEnd - view.startTime + drawn.duration,
          };
        }"""
    )
    return found


def report(title: str, runs: list[dict[str, float]], wanted_ms: dict[str, float]) -> None:
    """One line per quantity."""
    print(f"\n{title}\n")
    print(f"| {'':<46} | median ms | worst ms | wanted |")
    print("|---|---|---|---|")
    for name in runs[0]:
        values = [run[name] for run in runs]
        wanted = f"< {wanted_ms[name]:.0f}" if name in wanted_ms else ""
        print(f"| {name:<46} | {statistics.median(values):9.0f} | {max(values):8.0f} | {wanted:>6} |")


def main(arguments: Any = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--trials", type=int, default=10_000)
    options.add_argument("--repeats", type=int, default=7)
    given = options.parse_args(arguments)
    if CHROMIUM is None:
        raise SystemExit("Chromium is not installed: apt-get install chromium")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        large_study(folder, "large", given.trials).storage.close()
        with dashboard(f"sqlite:///{folder}/studies.db", folder) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            address = f"{server.url}/studies/large"
            paints = []
            for _ in range(given.repeats + 1):  # the first one also rebuilds the study on the server
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                paints.append(first_paint(page, address))
                page.close()
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            first_paint(page, address)
            until(page, "() => document.getElementById('next-config') !== null", patience_s=120.0)
            updates = [update(page, server, "large") for _ in range(given.repeats)]
            browser.close()
    title = f"A study of {given.trials:,} trials in Chromium"
    print(f"{title}: the very first visit, which rebuilds the study: {paints[0]['first useful paint']:.0f} ms")
    report(f"{title}, {given.repeats} visits", paints[1:], {"first useful paint": 1000})
    report(f"{title}, {given.repeats} updates", updates, {"update: both": 100})


if __name__ == "__main__":
    main()
