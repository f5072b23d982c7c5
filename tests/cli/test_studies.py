"""Studies from the command line: real processes, a real database, exit codes, and what is printed."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from local_runs import eventually
from lynceus.cli import main
from lynceus.cli.look import _unattended
from lynceus.ledger.sql import Storage

JOB = """\
name: toy
run: |
  sleep "$(awk "BEGIN {print 0.2 / ${threads} + 0.01 * ${level}}")"
  echo "quality: $((10 - level))"
space: {threads: [1, 2, 4], level: [1, 2]}
price: 36.0 * threads
metrics: {quality: 'quality: (\\d+)'}
constraints: ["runtime <= 1m", "quality >= 9"]
budget: {cost: 100 USD, max_trials: 6}
policy: sweep
trial: {timeout: none, grace: 100ms}
baseline: {threads: 4, level: 1}
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LYNCEUS_STORAGE", raising=False)
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


@pytest.fixture
def lynceus(monkeypatch, capsys):
    """Run a command: (exit code, stdout, stderr)."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["lynceus", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


def test_a_search_from_plan_to_export(lynceus, here: Path) -> None:
    code, out, _ = lynceus("check", "job.yaml")
    assert (code, "6 configurations" in out) == (0, True)
    code, out, _ = lynceus("plan", "job.yaml", "-o", "json")
    plan = json.loads(out)["forecast"]
    assert plan["configurations"] == 6
    assert plan["worst_spend_usd"] <= 100

    code, out, _ = lynceus("run", "job.yaml", "-y")
    assert code == 0
    assert out.count(" starts: ") == 6
    assert "every configuration has been run" in out or "all 6 trials" in out

    code, out, _ = lynceus("status", "-o", "json")
    (facts,) = json.loads(out)
    assert (facts["name"], facts["state"], facts["trials"], facts["running"]) == ("toy", "FINISHED", 6, 0)
    assert 0 < facts["spent_usd"] <= 100

    code, out, _ = lynceus("trials", "toy", "-o", "json")
    rows = json.loads(out)
    assert [row["state"] for row in rows] == ["COMPLETE"] * 6
    assert all(row["metrics"]["quality"] == 10 - row["params"]["level"] for row in rows)
    assert {row["params"]["level"] for row in rows if row["keeps_limits"]} == {1}
    code, out, _ = lynceus("trials", "toy", "--where", "threads == 4", "--feasible", "-o", "json")
    assert [row["params"] for row in json.loads(out)] == [{"threads": 4, "level": 1}]

    code, out, _ = lynceus("best", "-o", "json")
    best = json.loads(out)
    cheapest = min((row for row in rows if row["keeps_limits"]), key=lambda row: row["cost_usd"])
    assert (code, best["params"]) == (0, cheapest["params"])
    assert best["cost_usd"] == pytest.approx(cheapest["cost_usd"])
    assert best["saving"] == pytest.approx(1 - best["cost_usd"] / best["baseline_usd"])
    assert "(measured)" in best["cost_basis"]

    code, out, _ = lynceus("logs", "toy", "0")
    assert out.startswith("quality: ")
    code, out, _ = lynceus("export", "--to", "csv")
    exported = list(csv.DictReader(io.StringIO(out)))
    assert len(exported) == 6
    assert exported[0]["params_threads"] in "124"
    code, out, _ = lynceus("export", "--to", "skypilot")
    assert yaml.safe_load(out)["envs"]["LYNCEUS_PARAM_THREADS"] == str(best["params"]["threads"])
    lynceus("export", "--to", "parquet", "--file", "t.parquet")
    import pyarrow.parquet

    assert pyarrow.parquet.read_table("t.parquet").num_rows == 6
    code, out, _ = lynceus("report", "-o", "r.html")
    assert "quality" in Path("r.html").read_text()


def test_conclusions_for_people_and_programs(lynceus) -> None:
    lynceus("run", "job.yaml", "-y", "--policy", "bo")
    code, out, _ = lynceus("explain", "toy", "-o", "json")
    explained = json.loads(out)
    assert {part["parameter"] for part in explained["importance"]} == {"threads", "level"}
    assert "stop" in explained["next"]
    code, out, _ = lynceus("explain")
    assert "which parameters matter" in out
    code, out, _ = lynceus("whatif", "--deadline", "1ms,1m", "--price", "price * 2", "-o", "json")
    answers = json.loads(out)["answers"]
    assert [answer["label"] for answer in answers] == ["as it is", "runtime <= 1ms", "runtime <= 1m", "price price * 2"]
    assert answers[1]["measured"] is None
    assert answers[3]["measured"]["cost_usd"] == pytest.approx(2 * answers[0]["measured"]["cost_usd"])
    assert answers[0]["measured"] == answers[2]["measured"]
    code, out, _ = lynceus("whatif", "--deadline", "1m")
    assert "cost against time" in out
    code, out, _ = lynceus("best", "--deadline", "1ms")
    assert code == 3
    assert "is known to keep" in out


def test_it_asks_before_it_spends(lynceus, monkeypatch) -> None:
    code, out, err = lynceus("run", "job.yaml")
    assert code == 2
    assert "worst case" in out
    assert "add -y" in err
    code, _, err = lynceus("status")
    assert code == 2
    assert "there is no such file" in err, "nothing was created"


def test_nothing_feasible_is_exit_code_3(lynceus, here: Path) -> None:
    text = (here / "job.yaml").read_text().replace("quality >= 9", "quality >= 99")
    (here / "job.yaml").write_text(text)
    code, out, _ = lynceus("run", "job.yaml", "-y", "-o", "json")
    assert code == 3
    assert json.loads(out)["best"] is None


def test_failing_jobs_pause_the_study_with_exit_code_4(lynceus, here: Path) -> None:
    (here / "job.yaml").write_text(
        JOB.split("run:")[0] + "run: [sh, -c, 'echo broken pipe >&2; exit 3']\n" + JOB[JOB.index("space:") :]
    )
    code, out, _ = lynceus("run", "job.yaml", "-y")
    assert code == 4
    assert "the last 5 trials failed (5 job)" in out
    assert "exit code 3: broken pipe" in out
    assert "lynceus resume toy" in out
    code, out, _ = lynceus("status", "toy", "-o", "json")
    assert json.loads(out)["state"] == "PAUSED"


def test_setup_runs_once_and_its_failure_is_infrastructure(lynceus, here: Path) -> None:
    text = (here / "job.yaml").read_text()
    (here / "job.yaml").write_text(text + "setup: echo again >> times\n")
    assert lynceus("run", "job.yaml", "-y")[0] == 0
    assert lynceus("resume", "toy", "--add-budget", "1 USD")[0] == 0
    assert (here / "times").read_text() == "again\n"
    (here / "bad.yaml").write_text(text.replace("name: toy", "name: bad") + "setup: [sh, -c, 'exit 9']\n")
    code, _, err = lynceus("run", "bad.yaml", "-y")
    assert code == 4
    assert "setup: it ended with exit code 9" in err


def test_when_every_run_failed_limits_are_not_blamed(lynceus, here: Path) -> None:
    failing = JOB.split("run:")[0] + "run: [sh, -c, 'echo no such table >&2; exit 3']\n" + JOB[JOB.index("space:") :]
    (here / "job.yaml").write_text(failing.replace("max_trials: 6", "max_trials: 3"))
    code, out, _ = lynceus("run", "job.yaml", "-y")
    assert code == 4
    assert "all 3 trials failed; the last: exit code 3: no such table" in out
    assert "keep every limit" not in out
    assert "export" not in out
    assert "lynceus logs toy 2" in out


def test_a_misspelt_objective_is_refused_before_it_is_paid_for(lynceus, here: Path) -> None:
    for word, hint in (
        ("cst", "Did you mean 'cost'?"),
        ("cheap", "Known are cost, time, quality."),
        ("qualty", "'quality'"),
    ):
        (here / "job.yaml").write_text(JOB + f"objective: {word}\n")
        for command in (["check", "job.yaml"], ["plan", "job.yaml"], ["run", "job.yaml", "-y"]):
            code, _, err = lynceus(*command)
            assert (code, hint in err) == (2, True), err
    for word in ("minimize cheap", "quality", "runtime"):
        (here / "job.yaml").write_text(JOB + f"objective: {word}\n")
        assert lynceus("check", "job.yaml")[0] == 0


def test_a_study_that_is_over_is_not_stopped_again(lynceus) -> None:
    lynceus("run", "job.yaml", "-y")
    before = json.loads(lynceus("status", "toy", "-o", "json")[1])
    code, out, _ = lynceus("stop", "toy")
    assert (code, out.startswith("toy is over already: ")) == (0, True)
    after = json.loads(lynceus("status", "toy", "-o", "json")[1])
    assert [after[name] for name in ("state", "reason")] == [before[name] for name in ("state", "reason")]
    assert after["state"] == "FINISHED"


def test_a_dashboard_of_nothing_is_refused(lynceus, here: Path, monkeypatch) -> None:
    monkeypatch.delenv("LYNCEUS_WRITE_TOKEN", raising=False)
    code, _, err = lynceus("dashboard", "sqlite:///nothere.db")
    assert (code, "there is no such file" in err) == (2, True)
    assert not (here / "nothere.db").exists()


def test_a_narrow_terminal_cuts_no_names_states_or_money(lynceus, monkeypatch) -> None:
    lynceus("run", "job.yaml", "-y")
    monkeypatch.setattr("lynceus.cli.look.console", lambda: Console(width=80, highlight=False))
    for command in ("status", "trials"):
        out = lynceus(command)[1]
        assert "…" not in out
        assert max(len(line) for line in out.splitlines()[:4]) <= 80
    assert "COMPLETE" in out
    assert "why" not in out


def test_a_bare_enter_spends_nothing(lynceus, here: Path, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    code, out, _ = lynceus("run", "job.yaml")
    assert (code, "[y/N]" in out) == (0, True)
    assert not (here / "lynceus.db").exists()


def test_past_measurements_are_free_knowledge(lynceus, here: Path) -> None:
    (here / "past.csv").write_text("threads,level,runtime,quality\n1,1,0.3s,9\n4,1,0.1,9\n8,1,0.1,9\n")
    code, _, err = lynceus("import", "job.yaml", "past.csv")
    assert code == 2
    assert "past.csv:4: The parameter 'threads' cannot be 8" in err
    assert not (here / "lynceus.db").exists(), "a refused table leaves nothing behind"
    code, out, _ = lynceus("import", "job.yaml", "past.csv", "--skip-unknown", "-o", "json")
    assert json.loads(out) == {"study": "toy", "imported": 2, "known_before": 0, "skipped": 1}
    code, out, _ = lynceus("import", "toy", "past.csv", "--skip-unknown", "-o", "json")
    assert json.loads(out)["known_before"] == 2
    assert lynceus("import", "toy", "past.csv")[0] == 2
    assert len(json.loads(lynceus("trials", "toy", "-o", "json")[1])) == 2, "all rows, or none"
    code, out, _ = lynceus("best", "toy", "-o", "json")
    best = json.loads(out)
    assert best["spent_usd"] == 0
    assert best["params"] == {"threads": 1, "level": 1}
    code, out, _ = lynceus("run", "job.yaml", "-y", "-o", "json")
    rows = json.loads(lynceus("trials", "toy", "-o", "json")[1])
    assert [row["charged_usd"] for row in rows][:2] == [0.0, 0.0]
    assert len({tuple(row["params"].items()) for row in rows}) == len(rows), "known configurations are not run again"


def test_what_was_exported_can_be_imported(lynceus, here: Path) -> None:
    lynceus("run", "job.yaml", "-y")
    lynceus("export", "toy", "--to", "csv", "--file", "all.csv")
    (here / "other.yaml").write_text((here / "job.yaml").read_text().replace("name: toy", "name: other"))
    _, out, _ = lynceus("import", "other.yaml", "all.csv", "-o", "json")
    assert json.loads(out)["imported"] == 6


def test_init_writes_what_check_accepts(lynceus, here: Path) -> None:
    code, _, _ = lynceus(
        "init",
        "new.yaml",
        "-y",
        "--name",
        "mine",
        "-p",
        "threads=1, 2",
        "-p",
        "mode=fast, slow",
        "--command",
        "run ${threads} ${mode}",
    )
    assert code == 0
    assert lynceus("check", "new.yaml")[0] == 0
    code, _, err = lynceus("init", "new.yaml", "-y")
    assert (code, "--force" in err) == (2, True)


def test_a_changed_job_file_is_not_mixed_into_an_old_study(lynceus, here: Path) -> None:
    lynceus("run", "job.yaml", "-y")
    (here / "job.yaml").write_text(
        (here / "job.yaml").read_text().replace("[1, 2, 4]", "[1, 2, 8]").replace("threads: 4", "threads: 8")
    )
    code, _, err = lynceus("run", "job.yaml", "-y")
    assert code == 2
    assert "space.threads is " in err
    assert "give the job another name" in err


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("100 USD", "200 USD", "budget.cost is 200 USD here and 100 USD in the study"),
        ("max_trials: 6", "max_trials: 9", "budget.max_trials is 9 here and 6 in the study"),
        (
            "policy: sweep",
            "policy: lynceus\nseed: 3",
            "policy is lynceus here and sweep in the study, seed is 3 here and 0",
        ),
        (
            "timeout: none",
            "timeout: none, max_duration: 1h",
            "trial.max_duration is 1h here and not given in the study",
        ),
        ("policy: sweep", "policy: sweep\nexecutor: slurm", "executor.kind is slurm here and local in the study"),
        ("36.0 * threads", "35.0 * threads", "lynceus prices apply job.yaml"),
    ],
)
def test_what_a_study_keeps_for_life_is_refused_by_name(
    lynceus, here: Path, before: str, after: str, said: str
) -> None:
    lynceus("run", "job.yaml", "-y")
    (here / "job.yaml").write_text(JOB.replace(before, after))
    for command in (["run", "job.yaml", "-y"], ["resume", "job.yaml"]):
        code, _, err = lynceus(*command)
        assert (code, said in err, err.count("\n")) == (2, True, 1), err
    code, out, err = lynceus("best", "job.yaml", "-o", "json")
    assert (code, json.loads(out)["study"]) == (0, "toy")
    assert "job.yaml has changed since" in err
    assert "job.yaml has changed since" in lynceus("status", "job.yaml")[2]


def test_a_mended_command_is_adopted_and_written_down(lynceus, here: Path) -> None:
    right = JOB.replace("grace: 100ms", "grace: 100ms, max_failures: 1")
    wrong = right.replace("quality: $((", "qualty: $((")
    (here / "job.yaml").write_text("setup: echo once >> setups\n" + wrong)
    assert lynceus("run", "job.yaml", "-y")[0] == 4
    (here / "job.yaml").write_text("setup: echo twice >> setups\n" + right)
    code, out, err = lynceus("resume", "job.yaml")
    assert code == 0, out + err
    assert "toy: trials from now on follow the changed file (setup, run);" in err
    assert (here / "setups").read_text().split() == ["once", "twice"]
    with Storage("sqlite:///lynceus.db") as storage:
        revised = [event.detail for event in storage.events("toy") if event.kind == "revised"]
        assert "qualty" not in storage.load_study("toy").document["job"]["run"]
    assert len(revised) == 1
    assert "changed" not in lynceus("best", "job.yaml")[2]
    assert "changed" not in lynceus("resume", "toy")[2]


def test_the_file_may_catch_up_with_added_money(lynceus, here: Path) -> None:
    lynceus("run", "job.yaml", "-y")
    lynceus("resume", "toy", "--add-budget", "5 USD")
    (here / "job.yaml").write_text(JOB.replace("100 USD", "105 USD"))
    code, _, err = lynceus("run", "job.yaml", "-y")
    assert (code, "budget" in err) == (0, False)
    assert json.loads(lynceus("status", "toy", "-o", "json")[1])["budget_usd"] == 105


def test_money_does_not_slip_in_with_prices(lynceus, here: Path) -> None:
    lynceus("run", "job.yaml", "-y")
    (here / "job.yaml").write_text(JOB.replace("100 USD", "200 USD").replace("36.0 *", "35.0 *"))
    code, _, err = lynceus("prices", "apply", "job.yaml")
    assert (code, "budget.cost is 200 USD here" in err) == (2, True)
    (here / "job.yaml").write_text(JOB.replace("36.0 *", "35.0 *"))
    assert lynceus("prices", "apply", "job.yaml")[0] == 0
    assert lynceus("run", "job.yaml", "-y")[0] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["best", "nobody"],
        ["trials", "toy", "--state", "GONE"],
        ["logs", "toy", "99"],
        ["whatif", "toy", "--deadline", "soon"],
    ],
)
def test_mistakes_are_one_line(lynceus, arguments: list[str]) -> None:
    lynceus("import", "job.yaml", "missing.csv")
    code, out, err = lynceus(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("lynceus: ")
    assert err.count("\n") == 1


NASTY = [
    "plain",
    "two words",
    'it\'s "quoted"',
    "a;b|c&d",
    "$(touch hacked) `touch hacked`",
    "line one\nline two",
    "Überraschung €",
]


@pytest.mark.parametrize(
    ("run", "shell"),
    [("[sh, -c, 'printf %s \"$1\" > got-$LYNCEUS_TRIAL', sh, '${text}']", "false"),
     ("'printf %s \"${text}\" > got-$LYNCEUS_TRIAL'", "false"), ("'printf %s ${text} > got-$LYNCEUS_TRIAL'", "true")],
    ids=["arguments", "script", "pasted and quoted"],
)  # fmt: skip
def test_values_reach_the_job_byte_for_byte(lynceus, here: Path, run: str, shell: str) -> None:
    values = json.dumps(NASTY, ensure_ascii=False)
    (here / "job.yaml").write_text(
        f"name: toy\nrun: {run}\nshell: {shell}\nspace:\n  text: {values}\nprice: 1\nbudget: {{max_trials: 7}}\n"
        "policy: sweep\ntrial: {timeout: none}\n"
    )
    assert lynceus("run", "job.yaml", "-y")[0] == 0
    rows = json.loads(lynceus("trials", "-o", "json")[1])
    for row in rows:
        assert (here / f"got-{row['number']}").read_text() == row["params"]["text"]
    assert sorted(row["params"]["text"] for row in rows) == sorted(NASTY)
    assert not (here / "hacked").exists()


def test_the_best_is_confirmed_before_it_is_recommended(lynceus, here: Path) -> None:
    text = (
        (here / "job.yaml")
        .read_text()
        .replace("timeout: none", "timeout: none, confirm_best: 2")
        .replace("max_trials: 6", "max_trials: 9")
        .replace(
            "36.0 * threads", "36.0 * threads * threads * threads"
        )  # no delay of a busy machine changes which is best
    )
    (here / "job.yaml").write_text(text)
    code, out, _ = lynceus("run", "job.yaml", "-y", "-o", "json")
    best = json.loads(out)["best"]
    assert code == 0
    rows = json.loads(lynceus("trials", "-o", "json")[1])
    assert sum(row["why"].startswith("confirms the best") for row in rows) == 2
    assert best["runs"] >= 2
    assert best["trials"] == len(rows)


# Real processes, real signals -------------------------------------------------------------------------------------------

SLOW = (
    JOB.split("run:")[0]
    + "run: [sleep, '300']\n"
    + JOB[JOB.index("space:") :].replace("metrics: {quality: 'quality: (\\d+)'}\n", "")
)


def started(here: Path, *arguments: str, job: str = SLOW) -> subprocess.Popen[str]:
    (here / "job.yaml").write_text(job)
    process = subprocess.Popen(
        [sys.executable, "-m", "lynceus.cli", *arguments],
        cwd=here,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if " starts: " in line:
            return process
    raise AssertionError("it never started a trial")


def test_ctrl_c_twice_ends_the_trial_and_leaves_130(here: Path, lynceus) -> None:
    process = started(here, "run", "job.yaml", "-y")
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert any("stopping: open trials come to their end" in line for line in process.stdout)
    assert process.poll() is None, "the first one lets the open trial come to its end"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "lynceus resume toy" in out
    rows = json.loads(lynceus("trials", "toy", "-o", "json")[1])
    assert [(row["state"], row["reason"]) for row in rows] == [("FAIL", "user")]
    assert rows[0]["charged_usd"] > 0
    facts = json.loads(lynceus("status", "toy", "-o", "json")[1])
    assert (facts["state"], facts["running"]) == ("INTERRUPTED", 0)
    assert "lynceus resume toy" in lynceus("status")[1]
    process = started(here, "resume", "toy")
    assert json.loads(lynceus("status", "toy", "-o", "json")[1])["state"] == "RUNNING"
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)  # counts as a second Ctrl-C; two equal signals could become one
    process.communicate(timeout=60)


def test_stop_from_elsewhere_and_leftovers(here: Path, lynceus) -> None:
    process = started(here, "run", "job.yaml", "-y")
    _, out, _ = lynceus("status", "toy", "-o", "json")
    assert json.loads(out)["running"] == 1
    _, out, _ = lynceus("stop", "toy", "--kill")
    assert "1 open are ended" in out
    process.communicate(timeout=40)
    assert process.returncode == 3, "it was stopped, and nothing feasible is known"
    assert json.loads(lynceus("gc", "toy", "-o", "json")[1])["leftovers"] == []
    _, out, _ = lynceus("gc", "toy", "--outputs", "--yes")
    assert "toy: directory " in out
    assert lynceus("gc", "toy", "--outputs")[1] == "toy: nothing is left over.\n"


def test_stop_ends_what_a_dead_worker_left_running(here: Path, lynceus) -> None:
    process = started(here, "run", "job.yaml", "-y")
    process.kill()
    process.communicate()
    code, out, _ = lynceus("stop", "toy")
    assert (code, "nobody works on the 1 open: end them with: lynceus gc toy --abandoned --yes" in out) == (0, True)
    code, out, _ = lynceus("stop", "toy", "--kill")
    assert (code, "1 open that nobody worked on was ended" in out) == (0, True), out
    rows = json.loads(lynceus("trials", "toy", "-o", "json")[1])
    assert [(row["state"], row["reason"]) for row in rows] == [("FAIL", "user")]
    assert json.loads(lynceus("gc", "toy", "-o", "json")[1])["leftovers"] == []


def test_a_stopped_study_with_open_trials_is_unattended() -> None:
    facts = {"state": "STOPPED", "running": 2, "worker_seen_s": time.time() - 3600}
    assert "nobody works on it" in _unattended(facts)
    assert _unattended(facts | {"running": 0}) == ""


def test_a_killed_search_is_resumed_without_a_second_start(here: Path, lynceus) -> None:
    """kill -9 while a trial runs: the trial goes on, `resume` adopts it, and every trial is started and charged once."""
    slow = (
        JOB.split("run:")[0]
        + "run: [sh, -c, 'echo $LYNCEUS_TRIAL >> started; sleep 1; echo quality: 9']\n"
        + JOB[JOB.index("space:") :]
    )
    process = started(here, "run", "job.yaml", "-y", job=slow)
    process.kill()
    process.communicate()
    assert json.loads(lynceus("status", "toy", "-o", "json")[1])["running"] == 1
    code, out, _ = lynceus("resume", "toy", "--parallel", "5", "-o", "json")
    assert code == 0
    rows = json.loads(lynceus("trials", "toy", "-o", "json")[1])
    assert [(row["number"], row["state"]) for row in rows] == [(number, "COMPLETE") for number in range(6)]
    assert sorted((here / "started").read_text().split()) == [str(number) for number in range(6)]
    assert sum(row["charged_usd"] for row in rows) == pytest.approx(json.loads(out)["spent_usd"])
    assert json.loads(lynceus("gc", "toy", "-o", "json")[1])["leftovers"] == []


def test_a_detached_search_is_seen_and_stopped(here: Path, lynceus) -> None:
    (here / "job.yaml").write_text(SLOW)
    code, out, _ = lynceus("run", "job.yaml", "-y", "--detach")
    assert code == 0
    worker = int(out.split("process ")[1].split(",")[0])
    eventually(lambda: json.loads(lynceus("status", "toy", "-o", "json")[1])["running"] == 1)
    lynceus("stop", "toy", "--kill")
    os.waitpid(worker, 0)
    assert json.loads(lynceus("status", "toy", "-o", "json")[1])["running"] == 0


def test_secrets_reach_the_job_and_nothing_else(here: Path, lynceus, monkeypatch) -> None:
    secret, from_file = "hunter2-environment", "hunter2-file"
    monkeypatch.setenv("MY_TOKEN", secret)
    (here / "key").write_text(from_file + "\n")
    text = JOB.split("run:")[0] + (
        'run: [sh, -c, \'ps axww > ps-$LYNCEUS_TRIAL; echo got $TOKEN and $KEY; echo err $TOKEN >&2; test -n "$TOKEN" -a -n "$KEY"\']\n'
        "secrets: {TOKEN: env:MY_TOKEN, KEY: file:key}\nsetup: echo setup $TOKEN\n"
    )
    body = (
        JOB[JOB.index("space:") :]
        .replace("metrics: {quality: 'quality: (\\d+)'}\n", "")
        .replace(', "quality >= 9"', "")
    )
    (here / "job.yaml").write_text(text + body)
    code, out, err = lynceus("run", "job.yaml", "-y")
    assert code == 0, "the job saw both"
    shown = out + err
    for command in (
        ["logs", "toy", "0"],
        ["best"],
        ["explain"],
        ["trials"],
        ["status"],
        ["export", "--to", "json"],
        ["export", "--to", "env"],
        ["export", "--to", "skypilot"],
    ):
        shown += "".join(map(str, lynceus(*command)))
    lynceus("report", "-o", "r.html")
    assert "got" in shown
    kept = b"".join(path.read_bytes() for path in here.rglob("*") if path.is_file() and path.name != "key")
    for value in (secret, from_file):
        assert value not in shown
        assert value.encode() not in kept, [
            path for path in here.rglob("*") if path.is_file() and value.encode() in path.read_bytes()
        ]


def test_a_study_in_postgresql_is_shared(lynceus, here: Path, postgres) -> None:
    address = postgres.database("command-line")
    assert lynceus("run", "job.yaml", "-y", "--storage", address)[0] == 0
    (facts,) = json.loads(lynceus("status", "--storage", address, "-o", "json")[1])
    assert (facts["state"], facts["trials"]) == ("FINISHED", 6)
    code, out, _ = lynceus("storage", "upgrade", "--storage", address, "-o", "json")
    versions = json.loads(out)
    assert code == 0
    assert versions["before"] == versions["after"]
    assert not (here / "lynceus.db").exists()
