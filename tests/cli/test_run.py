"""`lynceus run` with real jobs and a real database: exit codes, output, and what the job gets."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import yaml

from cli_jobs import JOB

pytestmark = pytest.mark.usefixtures("here")


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
    assert {row["params"]["level"] for row in rows if row["keeps_constraints"]} == {1}
    code, out, _ = lynceus("trials", "toy", "--where", "threads == 4", "--feasible", "-o", "json")
    assert [row["params"] for row in json.loads(out)] == [{"threads": 4, "level": 1}]

    code, out, _ = lynceus("best", "-o", "json")
    best = json.loads(out)
    cheapest = min((row for row in rows if row["keeps_constraints"]), key=lambda row: row["cost_usd"])
    assert (code, best["params"]) == (0, cheapest["params"])
    assert best["cost_usd"] == pytest.approx(cheapest["cost_usd"])
    assert best["saving"] == pytest.approx(1 - best["cost_usd"] / best["baseline_usd"])
    assert "(measured)" in best["cost_basis"]

    assert lynceus("logs", "toy") == lynceus("logs", "toy", "5"), "the last of six trials"
    assert lynceus("logs") == lynceus("logs", "toy"), "the only study"
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
    code, out, _ = lynceus("report", "--file", "r.html")
    assert "quality" in Path("r.html").read_text()


def test_it_asks_before_it_spends_money(lynceus, monkeypatch) -> None:
    code, out, err = lynceus("run", "job.yaml")
    assert code == 2
    assert "worst case" in out
    assert "add -y" in err
    code, _, err = lynceus("status")
    assert code == 2
    assert "there is no such file" in err, "nothing was created"


def test_enter_alone_spends_nothing(lynceus, here: Path, monkeypatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    code, out, _ = lynceus("run", "job.yaml")
    assert (code, "[y/N]" in out) == (0, True)
    assert not (here / "lynceus.db").exists()


def test_an_infeasible_study_is_exit_code_3(lynceus, here: Path) -> None:
    text = (here / "job.yaml").read_text().replace("quality >= 9", "quality >= 99")
    (here / "job.yaml").write_text(text)
    code, out, _ = lynceus("run", "job.yaml", "-y", "-o", "json")
    assert code == 3
    assert json.loads(out)["best"] is None


def test_failing_jobs_pause_the_study_with_exit_code_4(lynceus, here: Path) -> None:
    (here / "job.yaml").write_text(
        JOB.split("run:")[0] + "run: [sh, -c, 'echo broken pipe. >&2; exit 3']\n" + JOB[JOB.index("space:") :]
    )
    code, out, _ = lynceus("run", "job.yaml", "-y")
    assert code == 4
    assert "the last 5 trials failed (5 job failures)" in out
    assert "exit code 3: broken pipe.\n" in out, "one full stop"
    assert "lynceus logs toy 4" in out
    assert "lynceus resume toy" in out
    code, out, _ = lynceus("status", "toy", "-o", "json")
    assert json.loads(out)["state"] == "PAUSED"


def test_setup_runs_once_and_its_failure_is_infrastructure(lynceus, here: Path) -> None:
    text = (here / "job.yaml").read_text()
    (here / "job.yaml").write_text(text + "setup: echo again >> times\n")
    assert lynceus("run", "job.yaml", "-y")[0] == 0
    code, _, err = lynceus("resume", "toy", "--add-budget", "1 USD", "--add-trials", "1")
    assert (code, "toy: the budget is now $101.00, 7 trials.\n" in err) == (0, True)
    assert (here / "times").read_text() == "again\n"
    (here / "bad.yaml").write_text(text.replace("name: toy", "name: bad") + "setup: [sh, -c, 'exit 9']\n")
    code, _, err = lynceus("run", "bad.yaml", "-y")
    assert code == 4
    assert "setup: it failed with exit code 9" in err


def test_when_every_run_failed_the_constraints_are_not_blamed(lynceus, here: Path) -> None:
    failing = JOB.split("run:")[0] + "run: [sh, -c, 'echo no such table >&2; exit 3']\n" + JOB[JOB.index("space:") :]
    (here / "job.yaml").write_text(failing.replace("max_trials: 6", "max_trials: 3"))
    code, out, _ = lynceus("run", "job.yaml", "-y")
    assert code == 4
    assert "all 3 trials failed; the last: exit code 3: no such table" in out
    assert "meet every constraint" not in out
    assert "export" not in out
    assert "lynceus logs toy 2" in out
    assert "When the job is mended, continue with: lynceus resume toy --add-trials 20\n" in out


def test_when_every_configuration_failed_the_end_says_how_to_run_them_again(lynceus, here: Path) -> None:
    failing = (
        JOB.split("run:")[0]
        + "run: [test, -f, mended]\n"
        + JOB[JOB.index("space:") :].replace("metrics:", "# metrics:")
    )
    failing = (
        failing.replace(', "quality >= 9"', "").replace("[1, 2, 4]", "[1, 4]").replace("level: [1, 2]", "level: [1]")
    )
    (here / "job.yaml").write_text(failing)
    code, out, _ = lynceus("run", "job.yaml", "-y")
    assert (code, "When the job is mended, continue with: lynceus resume toy\n" in out) == (4, True), out
    (here / "mended").touch()
    assert lynceus("resume", "toy")[0] == 0


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
def test_values_reach_the_job_unchanged(lynceus, here: Path, run: str, shell: str) -> None:
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


def test_secrets_reach_only_the_job(here: Path, lynceus, monkeypatch) -> None:
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
    lynceus("report", "--file", "r.html")
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
