"""The live board and the lines of a running study."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import Console

import lynceus
from lynceus.cli.live_board import Board, EventLines
from lynceus.executors.interface import Outage
from lynceus.study.study import Study
from lynceus.trial.trial import Trial
from retry_cases import problem_of


def study_of() -> Study:
    space = lynceus.Space.build([lynceus.Integer("nodes", 1, 4)], price="3.6 * nodes")
    return lynceus.create_study(
        space=space, constraints=["runtime <= 10m"], budget="$10", policy=lynceus.preset("sweep", timeout="none")
    )


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
        "finished, violates time <=",
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
    assert printed.count("; new best: nodes=") == 1


def asked_until_resumed(study: Study) -> Iterator[Trial]:
    """All trials of a study that is resumed once."""
    for _ in range(2):
        while (trial := study.ask()) is not None:
            yield trial
        study.resume()


def test_only_the_trial_of_the_best_configuration_is_praised() -> None:
    """The first run was lucky. Its repetition is stopped, others run longer then, and what they tell of each other changes the best."""
    study, text = Study(problem_of(usd=10_000.0), lynceus.preset("lynceus")), io.StringIO()
    lines, said = EventLines(study, Console(file=text, width=400)), []
    for trial in asked_until_resumed(study):
        row = study.pending[0].row
        seconds = 30.0 if trial.number == 0 else 150.0 if row == study.observations[0].row else 50.0
        if seconds > (trial.timeout or 1000.0):
            study.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            study.tell(trial, runtime=seconds)
        text.seek(text.truncate(0))
        lines.settled(study.observations[-1])
        said.append((trial.params["n"], text.getvalue()))
    praised = [(n, line) for n, line in said if "new best" in line]
    assert praised
    assert all(f"; new best: n={n} at $" in line and " finished after " in line for n, line in praised)
    changed = [(n, line) for n, line in said if "; the best is now n=" in line]
    assert changed, "what other trials tell may change the recommendation, too"
    assert all(f"; the best is now n={n} at $" not in line for n, line in changed)


def test_an_outage_is_named_and_nothing_is_counted_on() -> None:
    study = study_of()
    assert study.ask() is not None
    study.runs.launched(0, "ticket")
    now = [100.0]
    board = Board(study, began_s=0.0, now=lambda: now[0])
    board.outage = Outage("squeue has not answered for 3 s", 60.0)
    board.update()
    text = drawn(board)
    assert "no answer since" in text
    assert "(40s): squeue has not answered for 3 s" in text
    assert "1m passed" in text
    assert "unseen" in text
    now[0] = 500.0
    later = drawn(board)
    assert "1m passed" in later
    assert "(7m20s)" in later
    board.outage = None
    assert "8m20s passed" in drawn(board)


def test_lines_say_when_something_does_not_answer_and_when_it_does() -> None:
    study, text = study_of(), io.StringIO()
    lines, outage = EventLines(study, Console(file=text, width=200)), Outage("the database is away", 0.0)
    lines.outage(outage, None)
    lines.outage(None, outage)
    first, second = text.getvalue().splitlines()
    assert (
        "the database is away; nothing is started until it answers; Ctrl-C leaves, and 'lynceus resume study'" in first
    )
    assert "everything answers again after" in second
