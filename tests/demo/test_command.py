"""The command `lynceus demo`."""

import io
import json
import re
import sys
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from lynceus.cli.demo import demo
from lynceus.demo.job import demo_job
from lynceus.demo.plot import save_plot
from lynceus.demo.screen import Screen, money_bar
from lynceus.demo.trajectory import Trajectory, run_study
from lynceus.errors import InputError

app = typer.Typer()
app.command()(demo)


def test_plain_output_has_one_line_per_run_and_the_recommendation() -> None:
    shown = CliRunner().invoke(app, ["--fast", "--policy", "random+timeouts", "--budget", "$2"])
    assert shown.exit_code == 0, shown.output
    lines = re.findall(r"^ *(\d+)[* ] .*spent +\$([\d.]+) of \$2.00  best", shown.output, re.MULTILINE)
    assert [int(number) for number, _ in lines] == list(range(1, len(lines) + 1))
    assert float(lines[-1][1]) <= 2.0
    assert "Recommendation" in shown.output
    assert "\x1b" not in shown.output


def test_json_is_one_document_within_the_budget() -> None:
    shown = CliRunner().invoke(app, ["--fast", "-p", "lynceus-2020", "--budget", "3", "--seed", "1", "-o", "json"])
    assert shown.exit_code == 0, shown.output
    record = json.loads(shown.stdout)
    assert record["spent_usd"] <= record["job"]["budget_usd"] == 3.0
    assert sum(trial["charged_usd"] for trial in record["trials"]) == pytest.approx(record["spent_usd"])
    assert record["recommendation"]["cost_over_optimum"] >= 1
    assert record["comparison"] is None


def test_comparison_and_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[demo.__module__], "COMPARISON_S", 600.0)  # all of them, even on a slow machine
    plot = tmp_path / "plot.png"
    shown = CliRunner().invoke(app, ["-p", "sweep", "--budget", "2", "--plot", str(plot), "-o", "json"])
    assert shown.exit_code == 3, "the cheapest machines never meet the deadline; the comparison runs anyway"
    summaries = json.loads(shown.stdout)["comparison"]
    assert [one["policy"] for one in summaries] == ["sweep", "bo", "random"]
    assert all(one["seeds"] > 0 for one in summaries)
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert plot.stat().st_size < 200_000


def test_a_plot_of_searches_without_a_feasible_run(tmp_path: Path) -> None:
    save_plot([Trajectory("bo", 0, (1.0, 2.0), (float("inf"), float("inf")))], 5.0, 1.1, tmp_path / "empty.svg")
    assert "<svg" in (tmp_path / "empty.svg").read_text()


def test_a_budget_that_is_too_small_suggests_a_larger_one() -> None:
    shown = CliRunner().invoke(app, ["--fast", "-p", "sweep", "--budget", "0.01"])
    assert shown.exit_code == 3, shown.output
    assert "larger --budget" in " ".join(shown.output.split())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["-p", "nonsense"], "nonsense"), (["--budget", "lots"], "--budget"), (["--budget", "0"], "budget")],
)
def test_errors_name_the_option(arguments: list[str], words: str) -> None:
    shown = CliRunner().invoke(app, ["--fast", *arguments])
    assert isinstance(shown.exception, InputError)
    assert words in str(shown.exception)


def test_a_plot_without_a_folder_is_refused_before_the_demo_starts(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["--plot", str(tmp_path / "none" / "x.png")])
    assert isinstance(shown.exception, InputError)
    assert "--plot: there is no folder" in str(shown.exception)
    assert shown.output == ""


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_the_screen_fits_its_terminal(width: int) -> None:
    job = demo_job(0, budget_usd=3.0)
    target = io.StringIO()
    console = Console(file=target, force_terminal=True, width=width, height=24, color_system=None)
    with Screen(job, console, paced=False) as screen:
        run_study(job, "random+timeouts", 0, screen.ordered, screen.settled)
    still = Console(file=io.StringIO(), width=width, height=24, record=True)
    still.print(screen.view())
    text = still.export_text()
    assert max(map(len, text.splitlines())) <= width
    assert len(text.splitlines()) < 24
    assert "…" not in text
    assert f"{len(screen.tally.lines)}  " in text


@pytest.mark.parametrize(("spent", "reserved"), [(0, 0), (0.01, 0), (5, 5), (10, 0), (9.99, 0.01), (3, 1)])
def test_the_bar_always_has_its_width(spent: float, reserved: float) -> None:
    bar = money_bar(spent, reserved, budget=10, width=20).plain
    assert len(bar) == 20
    assert bar.startswith("█") == (spent > 0)
    assert ("▒" in bar) == (reserved > 0 and bar.count("█") < 20)


def test_without_matplotlib_the_demo_names_the_extra_and_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    shown = CliRunner().invoke(app, ["-p", "sweep", "--budget", "1", "--plot", str(tmp_path / "plot.png")])
    assert shown.exit_code == 3, "no run met the deadline"
    assert "pip install 'lynceus-opt[plot]'" in shown.output
    assert not (tmp_path / "plot.png").exists()


def test_a_plot_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["-p", "sweep", "--budget", "1", "--plot", str(tmp_path / "no" / "plot.png")])
    assert isinstance(shown.exception, InputError)
    assert "--plot" in str(shown.exception)
