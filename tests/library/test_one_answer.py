"""Runs of a configuration differ: whatever they are, every answer names the same configuration, with the same expected cost."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from dashboards import dashboard
from lynceus.analysis.answer import answer
from lynceus.analysis.documents.json import to_json
from lynceus.analysis.documents.study import study_document
from lynceus.analysis.overview import overview
from lynceus.analysis.whatif import unchanged, whatifs
from lynceus.cli.live_board import Board
from lynceus.jobfile.prepared_study import prepare_file
from lynceus.library.open_study import OpenStudy, create_or_open, open_record
from lynceus.library.overview import stored_overview
from lynceus.library.studies import studies_document
from lynceus.library.study_context import study_context
from lynceus.notify.events import _best as best_of_message
from lynceus.trial.incumbents import incumbent
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Outcome

JOB = """\
name: noisy
run: "true"
space: {{vm: [a, b, c, d]}}
price: "30 if vm == 'a' else 36 if vm == 'b' else 42 if vm == 'c' else 60"
constraints: ["runtime <= 10m{confidence}"]
budget: {{cost: 500 USD}}
policy: {policy}
"""


def opened(folder: Path, policy: str = "lynceus", confidence: str = "") -> OpenStudy:
    (folder / "job.yaml").write_text(JOB.format(policy=policy, confidence=confidence))
    return create_or_open(prepare_file(folder / "job.yaml"), f"sqlite:///{folder}/lynceus.db")


def settle(one: OpenStudy, row: int, seconds: float, limit_s: float = 600.0) -> None:
    study = one.study
    number = study.record.started
    order = Order(number, row, limit_s, 10.0, Plan(row, why="a test"))
    study.journal.ordered(order, {})
    end = End.TIMEOUT if seconds > limit_s else End.FINISHED
    study.runs.settle(order, Outcome(end, min(seconds, limit_s), 0.01 * min(seconds, limit_s)))


def named(one: OpenStudy) -> list[tuple[object, int | None, float | None]]:
    """Configuration, trial and objective by everything that names a best one."""
    context, study = study_context(one), one.study
    record = one.storage.load_study("noisy")
    lines: list[dict[str, Any]] = [
        to_json(overview(context)),
        to_json(stored_overview(one.storage, record, ())),
        study_document(context)["head"],
        studies_document(one.storage)["studies"][0],
    ]
    found = [(line["best_params"], line["best_trial"], line["best_value"]) for line in lines]
    best, again = to_json(answer(context)), open_record(one.storage, record).study
    found.append((best["params"], best["trial"], best["value"]))
    found.append((dict(study.best_params), study.best_trial.number, study.best_value))
    found.append((dict(again.best_params), again.best_trial.number, again.best_value))
    recommended = study.recommend()
    assert recommended is not None
    found.append((dict(recommended.params), best["trial"], recommended.value))
    message = best_of_message(study)
    assert message is not None
    found.append((message["params"], best["trial"], message["value"]))
    measured = whatifs(context, [unchanged(study.problem)]).answers[0].measured
    assert measured is not None
    found.append((dict(measured.params), best["trial"], measured.value))
    shown = f"best vm={study.best_params['vm']} "
    assert shown.replace("best ", "best: ") in re.sub(r"<[^>]+>", " ", study._repr_html_())
    board, console = Board(study), Console(width=200, record=True, file=io.StringIO())
    board.update()
    console.print(board)
    assert shown in console.export_text()
    return [(json.dumps(params), trial, round(value, 9)) for params, trial, value in found]


def runs_of(noise: float, seed: int, count: int) -> list[tuple[int, float]]:
    """Configurations and times; all cost about the same, so luck decides which of them looks best."""
    random = np.random.default_rng(seed)
    times = (500.0, 410.0, 350.0, 260.0)
    rows = [int(random.integers(4)) for _ in range(count)]
    return [(row, times[row] * float(np.exp(noise * random.normal()))) for row in rows]


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    noise=st.sampled_from([0.0, 0.1, 0.3]),
    seed=st.integers(0, 10_000),
    count=st.integers(1, 14),
    confidence=st.sampled_from(["", " @ 0.9"]),
    policy=st.sampled_from(["lynceus", "lynceus-2020", "sweep"]),
)
def test_every_answer_names_the_same_configuration(
    tmp_path_factory: pytest.TempPathFactory, noise: float, seed: int, count: int, confidence: str, policy: str
) -> None:
    one = opened(tmp_path_factory.mktemp("noisy"), policy, confidence)
    settle(one, 0, 400.0)
    for row, seconds in runs_of(noise, seed, count):
        settle(one, row, seconds)
    answers = named(one)
    assert len(set(answers)) == 1, answers
    one.storage.close()


def test_the_answer_is_not_the_luckiest_run_and_the_api_names_it_too(tmp_path: Path) -> None:
    one = opened(tmp_path)
    for row, seconds in [(1, 300.0), (1, 306.0), (1, 303.0), (0, 352.0), (0, 585.0), (2, 258.0)]:
        settle(one, row, seconds)
    lucky = incumbent(one.study.problem, one.study.observations)
    assert lucky is not None
    (best,) = set(named(one))
    assert json.loads(str(best[0])) != one.study.problem.space.point(lucky.row)
    with dashboard(one.storage.url, tmp_path) as server:
        study, said = server.get("studies/noisy").json, server.get("studies/noisy/best").json
    assert (json.dumps(study["best_params"]), study["best_trial"], round(study["best_value"], 9)) == best
    assert (json.dumps(said["params"]), said["trial"], round(said["value"], 9)) == best
