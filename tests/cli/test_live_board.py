"""The live board and the lines of a running study."""

from __future__ import annotations

import io

from rich.console import Console

import lynceus
from lynceus.cli.live_board import Board, EventLines
from lynceus.study.study import Study


def study_of() -> Study:
    space = lynceus.Space.build([lynceus.Integer("nodes", 1, 4)], price="3.6 * nodes")
    return lynceus.create_study(space=space, constraints=["runtime <= 10m"], budget="$10", policy="sweep")


def drawn(board: Board) -> str:
    text = io.StringIO()
    Console(file=text, width=160).print(board)
    return text.getvalue()


def test_the_board_shows_money_open_trials_and_the_best() -> None:
    study = study_of()
    board = Board(study, began_s=0.0, now=lambda: 90.0, note="Ctrl-C stops")
    assert "starting …" in drawn(board)
    board.update()
    assert "no configuration has met every constraint yet" in drawn(board)
    for seconds in (300.0, 900.0):
        trial = study.ask()
        assert trial is not None
        study.tell(trial, runtime=seconds)
    study.ask()
    board.update()
    text = drawn(board)
    best = study.best_params["nodes"]
    for expected in (
        f"best nodes={best}",
        "finished, violates a constraint",
        "2 trials, 1m30s passed",
        "reserved of $10.00",
    ):
        assert expected in text
    assert text.rstrip().endswith("Ctrl-C stops")


def test_lines_name_a_new_best_once() -> None:
    study, text = study_of(), io.StringIO()
    lines = EventLines(study, Console(file=text, width=200))
    for seconds in (300.0, 500.0):
        trial = study.ask()
        assert trial is not None
        lines.ordered(study.pending[-1])
        study.tell(trial, runtime=seconds)
        lines.settled(study.observations[-1])
    printed = text.getvalue()
    assert printed.count(" starts: nodes=") == 2
    assert printed.count("; new best: ") == 1
