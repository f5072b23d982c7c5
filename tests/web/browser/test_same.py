"""What scripts compute in the browser is what Python computes: words for numbers, the best so far, the front, the what-if."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from playwright.sync_api import Page

from browsers import CHROMIUM, MISSING
from lynceus.cli.output import percent
from lynceus.insight import finished_points, pareto_front, steps
from lynceus.units import format_duration, format_money
from lynceus.view import study_view, subject_of, whatif_view
from pages import Place

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
Look = Callable[..., Page]


def numbers() -> list[float]:
    luck = np.random.default_rng(5)
    spread = np.exp(luck.uniform(np.log(1e-6), np.log(1e7), 600))
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
def test_numbers_read_the_same_in_pages_and_commands(look: Look, name: str, python: Callable[[float], str]) -> None:
    page = look("/login")
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


def test_shares_read_the_same(look: Look) -> None:
    shares = [0.0, 0.001, 0.0099, 0.01, 0.42, 0.99, 0.995, 1.0]
    shown = look("/login").evaluate("async (all) => all.map((await import('/static/lib/format.js')).percent)", shares)
    assert shown == [percent(share) for share in shares]


STORE = """const { newTrials, append, course, typicalPlaces, front, underDeadline } = await import('/static/lib/trials.js');
  const store = newTrials(view.space); append(store, view.trials); const goal = { metric: 'cost', maximise: false };"""


def test_the_way_to_the_best_is_the_same(look: Look, place: Place) -> None:
    study = place.study("nightly").study
    view = study_view(subject_of(place.study("nightly")))
    got = look("/login").evaluate(f"async (view) => {{ {STORE} return course(store, goal); }}", view)
    wanted = steps(study.problem, study.history)
    assert got["spent"] == pytest.approx([step.spent_usd for step in wanted], rel=1e-6)
    shown = [None if place is None else view["trials"]["number"][place] for place in got["incumbent"]]
    assert shown == [step.incumbent for step in wanted]


def test_the_front_is_the_same(look: Look, place: Place) -> None:
    one = place.study("nightly")
    problem = one.study.problem
    free = problem.with_limits([limit for limit in problem.limits if limit.metric != "time"])
    wanted = [point.number for point in pareto_front(p for p in finished_points(free, one.known) if p.keeps_limits)]
    script = (
        f"async (view) => {{ {STORE} return front(store, typicalPlaces(store)).map((place) => store.number[place]); }}"
    )
    assert look("/login").evaluate(script, study_view(subject_of(one))) == wanted


def test_other_deadlines_have_the_same_answer(look: Look, place: Place) -> None:
    subject = subject_of(place.study("nightly"))
    deadlines = np.geomspace(600, 4000, 25).tolist()
    script = f"""async ([view, deadlines]) => {{ {STORE}
      const found = deadlines.map((one) => underDeadline(store, typicalPlaces(store), goal, one));
      return found.map((at) => (at === null ? null : store.row[at])); }}"""
    got = look("/login").evaluate(script, [study_view(subject), deadlines])
    wanted = [whatif_view(subject, deadline)["measured"] for deadline in deadlines]
    assert got == [None if found is None else found["row"] for found in wanted]
    assert len(set(got)) > 2, "the deadline should matter"


def test_parts_of_a_study_make_the_same_store_as_the_whole(look: Look, place: Place) -> None:
    subject = subject_of(place.study("nightly"))
    parts = [study_view(subject, since) for since in (0, 5, 11)]
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
      const maps = (store) => [[...store.details], [...store.reasons], [...store.places]];
      const plain = (store) => JSON.stringify([store, maps(store), store.number.map((_, place) => paramsOf(store, place))]);
      const one = newTrials(whole.space), other = newTrials(whole.space);
      append(one, whole.trials);
      const followed = parts.map((part) => append(other, part.trials));
      return [plain(one) === plain(other), followed, append(other, parts[0].trials)];
    }"""
    same, followed, refused = look("/login").evaluate(script, [study_view(subject), parts])
    assert same
    assert followed == [True, True, True]
    assert refused is False, "what is there already is not appended again"
