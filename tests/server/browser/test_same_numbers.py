"""The numbers of the pages are those of Python: formats, best so far, Pareto front, other deadlines."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page

from browsers import CHROMIUM, MISSING
from lynceus.analysis.documents.study import study_document
from lynceus.analysis.pareto import cost_time_front
from lynceus.analysis.progress import progress
from lynceus.analysis.whatif import deadline_case, whatifs
from lynceus.cli.output import percent
from lynceus.library.study_context import study_context
from lynceus.problem.units import format_duration, format_metric, format_money
from pages import Site

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
OpenPage = Callable[..., Page]


def numbers() -> list[float]:
    rng = np.random.default_rng(5)
    spread = np.exp(rng.uniform(np.log(1e-6), np.log(1e7), 600))
    edges = [
        0.0,
        0.995,
        0.9949,
        0.9995,
        1.0,
        59.94,
        59.95,
        60.0,
        3599.4,
        3599.6,
        86399.0,
        86400.0,
        999.99,
        999.996,
        1e-13,
    ]
    return [*spread.tolist(), *edges]


@pytest.mark.parametrize(("name", "python"), [("money", format_money), ("duration", format_duration)])
def test_numbers_are_formatted_as_on_the_command_line(
    open_page: OpenPage, name: str, python: Callable[[float], str]
) -> None:
    page = open_page("/login")
    script = (
        "async ([name, values]) => { const all = await import('/static/lib/format.js'); return values.map(all[name]); }"
    )
    shown = page.evaluate(script, [name, numbers()])
    different = [
        (value, want, got) for value, got in zip(numbers(), shown, strict=True) if (want := python(value)) != got
    ]
    assert len(different) <= 2, different  # exact halves are rounded to even in Python
    for _, want, got in different:
        assert len(want) == len(got)


@pytest.mark.parametrize(
    ("name", "low", "high", "clock"),
    [
        ("money", 1.234, 1.241, False),
        ("money", 0.0413, 0.0416, False),
        ("money", 12345.1, 12345.9, False),
        ("money", 9.995, 1200.0, False),
        ("duration", 754.2, 754.9, True),
        ("duration", 11520.0, 11559.0, True),
        ("duration", 93600.0, 93900.0, True),
        ("duration", 93600.25, 93600.3, True),
        ("duration", 59.99, 60.02, True),
        ("duration", 42.001, 42.004, False),
        ("duration", 0.0310001, 0.0310009, False),
        ("formatNumber", 123456.1, 123456.9, False),
        ("formatNumber", 0.12345671, 0.12345679, False),
        ("formatNumber", 1e-9, 1.5, False),
        ("bytes", 4.3121e9, 4.3139e9, False),
    ],
)
def test_no_two_ticks_of_an_axis_read_the_same(
    open_page: OpenPage, name: str, low: float, high: float, clock: bool
) -> None:
    script = """async ([name, low, high, clock]) => {
      const format = await import('/static/lib/format.js'), { scale, ticks, tickTexts } = await import('/static/lib/scale.js');
      const found = ticks(scale(low, high, 0, 400), 5, clock);
      return [found, found.map((one) => format[name](one)), tickTexts(found, format[name])];
    }"""
    found, usual, texts = open_page("/login").evaluate(script, [name, low, high, clock])
    assert len(found) >= 2
    assert len(set(texts)) == len(found), texts
    if len(set(usual)) == len(usual):
        assert texts == usual, "no more digits than are needed"


def test_more_digits_say_the_same_time_more_exactly(open_page: OpenPage) -> None:
    script = """async (all) => { const { duration } = await import('/static/lib/format.js');
      return all.map(([seconds, more]) => duration(seconds, { more })); }"""
    cases = [
        [93784.26, 0],
        [93784.26, 1],
        [93784.26, 2],
        [93784.26, 3],
        [754.96, 1],
        [754.96, 2],
        [3600, 2],
        [86399.99, 1],
        [59.99, 1],
    ]
    shown = open_page("/login").evaluate(script, cases)
    assert shown == ["1d2h", "1d2h3m", "1d2h3m4s", "1d2h3m4.3s", "12m35s", "12m34.96s", "1h", "24h", "59.99s"]


def test_texts_that_no_digit_tells_apart_stand_once(open_page: OpenPage) -> None:
    script = """async () => { const { tickTexts } = await import('/static/lib/scale.js');
      return tickTexts([1, 2, 3, 4], (tick) => (tick === 4 ? "" : tick > 1 ? "much" : "little")); }"""
    assert open_page("/login").evaluate(script) == ["little", "much", "", ""]


def test_shares_are_formatted_as_on_the_command_line(open_page: OpenPage) -> None:
    shares = [0.0, 0.001, 0.0099, 0.01, 0.42, 0.99, 0.995, 1.0]
    shown = open_page("/login").evaluate(
        "async (all) => all.map((await import('/static/lib/format.js')).percent)", shares
    )
    assert shown == [percent(share) for share in shares]


def test_metrics_are_formatted_as_on_the_command_line(open_page: OpenPage) -> None:
    values = [2170343.0, 4312345.6, 123456.0, 0.123456789, 42.0, -250000.4, 0.0]
    shown = open_page("/login").evaluate(
        "async (all) => all.map((await import('/static/lib/format.js')).formatNumber)", values
    )
    assert shown == [format_metric(value) for value in values]


def test_an_improvement_that_computations_err_by_is_none(open_page: OpenPage) -> None:
    script = """async (all) => { const { gainText, money } = await import('/static/lib/format.js');
      return all.map((one) => gainText(one, money)); }"""
    assert open_page("/login").evaluate(script, [2.3e-16, 0.000028]) == ["none", "$0.000028"]


STORE = """const { newTrials, append, spentBy, medianRuns, paretoFront, underDeadline } = await import('/static/lib/trials.js');
  const store = newTrials(view.space); append(store, view.trials); const objective = { metric: 'cost', maximise: false };"""


def test_the_best_so_far_is_the_same(open_page: OpenPage, site: Site) -> None:
    study = site.study("nightly").study
    view = study_document(study_context(site.study("nightly")))
    script = f"async (view) => {{ {STORE} return [spentBy(store), store.best_value, store.best_trial]; }}"
    spent, values, trials = open_page("/login").evaluate(script, view)
    points = progress(study.problem, study.observations)
    assert spent == pytest.approx([point.spent_usd for point in points], rel=1e-6)
    assert trials == [point.best_trial for point in points]
    assert [value for value in values if value is not None] == pytest.approx(
        [point.best_value for point in points if point.best_trial is not None], rel=1e-6
    )


def test_the_pareto_front_is_the_same(open_page: OpenPage, site: Site) -> None:
    one = site.study("nightly")
    wanted = [point.number for point in cost_time_front(one.study.problem, study_context(one).known)]
    script = f"async (view) => {{ {STORE} return paretoFront(store, medianRuns(store)).map((index) => store.number[index]); }}"
    assert open_page("/login").evaluate(script, study_document(study_context(one))) == wanted


def test_other_deadlines_have_the_same_answer(open_page: OpenPage, site: Site) -> None:
    subject = study_context(site.study("nightly"))
    deadlines = np.geomspace(600, 4000, 25).tolist()
    script = f"""async ([view, deadlines]) => {{ {STORE}
      const found = deadlines.map((one) => underDeadline(store, medianRuns(store), objective, one));
      return found.map((at) => (at === null ? null : store.row[at])); }}"""
    got = open_page("/login").evaluate(script, [study_document(subject), deadlines])
    cases = [deadline_case(subject.study.problem, deadline) for deadline in deadlines]
    wanted = [found.measured for found in whatifs(subject, cases).answers]
    assert got == [None if found is None else found.row for found in wanted]
    assert len(set(got)) > 2, "the deadline matters"


def test_limits_open_on_the_one_that_most_runs_violated(open_page: OpenPage, site: Site) -> None:
    view = study_document(study_context(site.study("nightly")))
    for limit in view["limits"]:
        if limit["metric"] == "accuracy":
            limit["bound"] = 1.01
    script = f"""async (view) => {{ {STORE} const {{ limitsChart }} = await import('/static/components/limits.js');
      return [view.limits, [...view.limits].reverse()].map((limits) => {{
        const host = document.createElement('div');
        limitsChart(host, {{ limits, store, link: null }});
        return host.querySelector('select').selectedOptions[0].textContent; }}); }}"""
    assert open_page("/login").evaluate(script, view) == 2 * ["accuracy >= 0.9"], "whichever comes first"


def test_a_store_from_several_documents_equals_one_from_a_single_document(open_page: OpenPage, site: Site) -> None:
    subject = study_context(site.study("nightly"))
    parts = [study_document(subject, since) for since in (0, 5, 11)]
    for part, end in zip(parts, (5, 11, 18), strict=True):
        columns, first = part["trials"], part["trials"]["first"]
        keep = end - first
        for name, values in columns.items():
            if isinstance(values, list) and name != "whys":
                columns[name] = values[:keep]
        for group in ("params", "metrics"):
            columns[group] = {name: values[:keep] for name, values in columns[group].items()}
        for group in ("details", "reasons"):
            columns[group] = {at: text for at, text in columns[group].items() if int(at) < keep}
    script = """async ([whole, parts]) => {
      const { newTrials, append, paramsOf } = await import('/static/lib/trials.js');
      const maps = (store) => [[...store.details], [...store.reasons], [...store.indices]];
      const plain = (store) => JSON.stringify([store, maps(store), store.number.map((_, index) => paramsOf(store, index))]);
      const one = newTrials(whole.space), other = newTrials(whole.space);
      append(one, whole.trials);
      const followed = parts.map((part) => append(other, part.trials));
      return [plain(one) === plain(other), followed, append(other, parts[0].trials)];
    }"""
    same, followed, refused = open_page("/login").evaluate(script, [study_document(subject), parts])
    assert same
    assert followed == [True, True, True]
    assert refused is False, "trials in the store are not appended again"
