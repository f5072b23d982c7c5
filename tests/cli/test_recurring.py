"""Recurring jobs on the command line: adopt, config, exec, record, jobs, job, mode, hold, rollback, retune."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lynceus.library.recurring.recurring_job import RecurringJob
from lynceus.server.job_metrics import JobMetrics
from lynceus.storage.sql.jobs import JobStore
from lynceus.storage.sql.storage import Storage

JOB = """\
name: search
run: [sh, -c, 'echo "threads=$1 $2"; exit $LYNCEUS_TEST_EXIT', job, '${threads}']
space: {threads: [1, 2, 4]}
price: 36 if threads == 1 else 3600 * threads
constraints: ["runtime <= 1m"]
budget: {cost: 10000 USD, max_trials: 4}
policy: sweep
trial: {timeout: none, grace: 100ms}
"""


@pytest.fixture
def here(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LYNCEUS_HOME", str(here / "home"))
    (here / "job.yaml").write_text(JOB)
    return here


@pytest.fixture
def adopted(here: Path, lynceus) -> Path:
    """A job in production whose configuration the user gave."""
    code, out, _ = lynceus(
        "adopt", "nightly", "--from", "job.yaml", "-p", "threads=2", "--by", "ana", "--reason", "as is"
    )
    assert (code, out) == (0, "nightly: version 1 is in production: threads=2\n")
    return here


def test_the_answer_of_a_study_goes_into_production(here: Path, lynceus) -> None:
    assert lynceus("run", "job.yaml", "-y")[0] == 0
    code, out, _ = lynceus("adopt", "search", "-o", "json")
    assert (code, json.loads(out)["version"]) == (0, 1)
    code, out, _ = lynceus("job", "search", "-o", "json")
    document = json.loads(out)
    assert (document["version"]["reason"], document["next"]["kind"]) == ("the answer of study search", "keep")
    assert document["version"]["expected"]["cost_usd"] > 0


def test_schedulers_read_the_configuration_in_their_format(adopted: Path, lynceus) -> None:
    code, out, _ = lynceus("config", "nightly")
    assert (code, out.splitlines()) == (
        0,
        ["# nightly: version 1", "LYNCEUS_PARAM_THREADS=2", "LYNCEUS_JOB=nightly", "LYNCEUS_JOB_VERSION=1"],
    )
    assert lynceus("config", "nightly", "--to", "args")[1] == "--threads=2\n"
    found = json.loads(lynceus("config", "nightly", "--to", "json")[1])
    assert (found["params"], found["canary"], found["timeout_s"]) == ({"threads": 2}, False, None)
    task = yaml.safe_load(lynceus("config", "nightly", "--to", "skypilot")[1])
    assert (task["name"], task["envs"]["LYNCEUS_PARAM_THREADS"]) == ("nightly", "2")
    assert lynceus("config", "nightly", "--to", "spark")[1].endswith("# threads 2\n")
    assert "LYNCEUS_RUN_ID=r1\n" in lynceus("config", "nightly", "--run-id", "r1")[1]
    code, _, err = lynceus("config", "nightly", "--to", "xml")
    assert (code, err) == (2, "lynceus: config: the format is 'xml'; use one of env, json, args, skypilot, spark.\n")
    assert lynceus("config", "nightli")[2].split(" See ")[0].endswith("--from STUDY. Did you mean 'nightly'?")
    code, _, err = lynceus("config", "weekly")
    assert code == 2
    assert err.endswith(
        "known are: nightly; adopt it with: lynceus adopt weekly --from STUDY. See docs/recurring.md#adopt-run-record\n"
    )


def test_schedulers_do_not_wait_for_models_and_job_files(adopted: Path) -> None:
    """What `config` prints was computed when the version was first seen; printing it again loads nothing that computes."""
    heavy = ["scipy", "yaml", "alembic", "lynceus.jobfile.job", "lynceus.models", "lynceus.policy"]
    script = f"""
import sys
from lynceus.cli.app import main
sys.argv = ["lynceus", "config", "nightly"]
try:
    main()
finally:
    print([name for name in {heavy!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "LYNCEUS_PARAM_THREADS=2" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_exec_prints_what_the_job_prints_and_ends_as_it_ends(adopted: Path, lynceus, monkeypatch) -> None:
    assert lynceus("exec", "nightly", "--input", "120GB", "--run-id", "a", "--", "--date=today")[:2] == (
        0,
        "threads=2 --date=today\n",
    )
    monkeypatch.setenv("LYNCEUS_TEST_EXIT", "3")
    code, out, err = lynceus("exec", "nightly", "--run-id", "b")
    assert (code, out) == (1, "threads=2 \n")
    assert "run b failed: exit code 3" in err
    document = json.loads(lynceus("job", "nightly", "-o", "json")[1])
    assert [(run["run_id"], run["state"], run["size"]) for run in document["runs"]] == [
        ("a", "COMPLETE", 1.2e11),
        ("b", "FAIL", None),
    ]


def test_a_run_made_elsewhere_is_recorded_once(adopted: Path, lynceus) -> None:
    run = ("record", "nightly", "--runtime", "31m", "--input", "120GB", "--cost", "$1.20", "--run-id", "r1")
    assert lynceus(*run)[:2] == (0, "nightly: recorded.\n")
    assert lynceus(*run)[:2] == (0, "nightly: this run was recorded before; nothing was changed.\n")
    code, _, err = lynceus("record", "nightly", "--runtime", "32m", "--run-id", "r1")
    assert code == 2
    assert "run 'r1' of job 'nightly' was recorded already with other values" in err
    code, _, err = lynceus("record", "nightly", "--input", "1GB")
    assert (code, err.count("\n")) == (2, 1)
    code, out, _ = lynceus("record", "nightly", "--runtime", "5m", "--state", "fail", "--why", "infra", "-o", "json")
    assert (code, json.loads(out)) == (0, {"job": "nightly", "new": True, "waiting": 0, "changes": []})
    (line,) = json.loads(lynceus("jobs", "-o", "json")[1])
    assert (line["totals"]["runs"], line["totals"]["failed"], line["mode"]) == (2, 1, "observe")


def test_versions_are_shown_changed_and_rolled_back(adopted: Path, lynceus) -> None:
    assert lynceus("adopt", "nightly", "-p", "threads=4", "--reason", "faster")[0] == 0
    code, out, _ = lynceus("rollback", "nightly", "--by", "bo", "--reason", "too expensive")
    assert (code, out) == (0, "nightly: version 1 is in production again: threads=2\n")
    lynceus("record", "nightly", "--runtime", "90s", "--cost", "$0.02", "--run-id", "r1")
    shown = lynceus("job", "nightly", "--audit")[1]
    for text in (
        "brought: runs 1, runtime 1m30s, cost $0.02, late 1",
        "version 1: threads=2",
        "by ana: as is",
        "rollback version 1, by bo: too expensive",
        "evidence: before 2",
    ):
        assert text in shown
    assert "nightly" in lynceus("jobs")[1]
    assert lynceus("rollback", "nightly", "--to", "9")[0] == 2


def test_what_is_in_production_is_not_adopted_again(adopted: Path, lynceus) -> None:
    command = ("adopt", "nightly", "--from", "job.yaml", "-p", "threads=2", "--by", "ana", "--reason", "as is")
    assert lynceus(*command)[:2] == (0, "nightly: version 1 is in production: threads=2\n")
    (adopted / "job.yaml").write_text(JOB.replace("1m", "2m"))
    assert lynceus(*command)[:2] == (0, "nightly: version 2 is in production: threads=2\n"), (
        "the job file is another one"
    )
    lynceus("record", "nightly", "--runtime", "30s", "--input", "7GB", "--run-id", "r1")
    for _ in range(2):
        code, out, _ = lynceus(*command)
        assert (code, "version 3" in out) == (0, True), "it is chosen for another size of the input"


def test_an_allowance_of_nothing_is_named_and_the_audit_says_what_changed(lynceus, adopted: Path) -> None:
    assert "nothing is tried" not in lynceus("mode", "nightly", "apply", "--allowance", "$20")[1]
    assert "$0 a month: nothing is tried that may cost more" in lynceus("mode", "nightly", "--allowance", "$0")[1]
    audit = lynceus("job", "nightly", "--audit")[1]
    assert "changed allowance: $0 → $20.00, mode: observe → apply" in audit
    assert "changed allowance: $20.00 → $0" in audit


def test_modes_and_the_kill_switch(adopted: Path, lynceus) -> None:
    options = ("--allowance", "$20", "--exclude", "sat", "--exclude", "mon-fri 08:00-18:00", "--deadline", "45m")
    code, out, _ = lynceus("mode", "nightly", "apply", *options, "--timezone", "Europe/Lisbon", "-o", "json")
    settings = json.loads(out)
    assert (code, settings["mode"], settings["allowance_usd"], settings["deadline_s"]) == (0, "apply", 20.0, 2700.0)
    assert settings["exclude"] == ["sat", "mon-fri 08:00-18:00"]
    assert lynceus("hold", "--all", "--reason", "release week")[:2] == (
        0,
        "nightly: held: nothing is tried or changed.\n",
    )
    assert "held" in lynceus("mode", "nightly")[1]
    assert lynceus("hold", "nightly", "--release")[:2] == (0, "nightly: changes are allowed again.\n")
    for words in (("mode", "nightly", "wild"), ("mode", "nightly", "--exclude", "someday"), ("hold",)):
        code, _, err = lynceus(*words)
        assert (code, err.count("\n")) == (2, 1), words
    with Storage(f"sqlite:///{adopted}/lynceus.db") as storage:
        kinds = [one.kind for one in JobStore(storage).load("nightly").record.changes]
    assert kinds == ["adopt", "settings", "hold", "hold"]


def test_a_job_is_forgotten_only_on_purpose(adopted: Path, lynceus) -> None:
    lynceus("record", "nightly", "--runtime", "1m", "--run-id", "a")
    assert lynceus("retire", "nightly")[0] == 2
    assert lynceus("retire", "nightly", "--yes")[:2] == (0, "nightly: forgotten with 1 recorded run.\n")
    assert lynceus("config", "nightly")[0] == 2
    assert "no recurring job yet" in lynceus("jobs")[1]


def test_a_search_for_a_job_is_a_study_of_its_own(adopted: Path, lynceus) -> None:
    for number in range(3):
        lynceus("record", "nightly", "--runtime", "30s", "--run-id", str(number))
    code, _, err = lynceus("retune", "nightly", "--yes")
    assert (code, "nothing is left of this month's allowance" in err) == (2, True)
    lynceus("mode", "nightly", "apply", "--allowance", "$5000")
    code, out, _ = lynceus("retune", "nightly", "--yes")
    assert (code, "nightly-retune-1" in out) == (0, True)
    document = json.loads(lynceus("job", "nightly", "-o", "json")[1])
    start, end = [one for one in document["changes"] if one["kind"] == "retune"]
    assert (start["evidence"]["study"], start["cost_usd"]) == ("nightly-retune-1", 5000.0)
    assert end["evidence"]["spent_usd"] == pytest.approx(5000.0 + end["cost_usd"])
    assert document["totals"]["search_usd"] == pytest.approx(end["evidence"]["spent_usd"])
    assert document["allowance_left_usd"] == pytest.approx(5000.0 - end["evidence"]["spent_usd"])
    assert end["version"] == 2, "in mode apply its answer is adopted, on probation"
    assert document["version"]["source"] == "retune"
    study = json.loads(lynceus("status", "nightly-retune-1", "-o", "json")[1])
    assert (study["state"], study["budget_usd"]) == ("FINISHED", 5000.0)


DRIFTING = """\
name: search
run: 'grep -w "$threads" good'
space: {threads: [1, 2, 4]}
price: 36 if threads == 2 else 36000
constraints: ["runtime <= 1m"]
budget: {cost: 10000 USD, max_trials: 3}
policy: sweep
trial: {timeout: none, grace: 100ms}
"""
"""A canary of another configuration, stopped at the deadline, would cost $600: more than the allowance, unlike a search of short trials."""


def test_in_mode_apply_a_search_starts_by_itself_and_its_answer_is_adopted(here: Path, lynceus) -> None:
    (here / "job.yaml").write_text(DRIFTING)
    (here / "good").write_text("4\n")
    assert lynceus("adopt", "nightly", "--from", "job.yaml", "-p", "threads=2")[0] == 0
    assert lynceus("mode", "nightly", "apply", "--allowance", "$100")[0] == 0
    job = RecurringJob("nightly", f"sqlite:///{here}/lynceus.db")
    for number in range(16):  # first on time, then not
        job.record((20.0 if number < 8 else 90.0) * (1 + 0.02 * (number % 3)), run_id=str(number))
    code, _, err = lynceus("exec", "nightly", "--run-id", "last")
    assert (code, "run last failed: exit code 1" in err) == (1, True)
    (started,) = re.findall(r"searching again in the background \(process (\d+), (.+)\)", err)
    assert os.waitstatus_to_exitcode(os.waitpid(int(started[0]), 0)[1]) == 0, Path(started[1]).read_text()
    document = json.loads(lynceus("job", "nightly", "-o", "json")[1])
    begun, over = [one for one in document["changes"] if one["kind"] == "retune"]
    assert begun["evidence"] == {"study": "nightly-retune-1", "budget_usd": 60.0}, "what the decider gave it"
    assert (begun["by"], "miss the deadline of 1m" in begun["reason"]) == ("lynceus", True)
    assert (over["version"], over["evidence"]["before"]) == (2, 1)
    assert document["version"]["source"] == "retune", "on probation"
    assert document["version"]["params"] == {"threads": 4}
    assert lynceus("hold", "nightly")[0] == 0
    assert lynceus("exec", "nightly", "--run-id", "next")[:2] == (0, "4\n")
    (last,) = [run for run in json.loads(lynceus("job", "nightly", "-o", "json")[1])["runs"] if run["run_id"] == "next"]
    assert (last["version"], last["state"]) == (2, "COMPLETE")


def test_a_damaged_job_does_not_keep_others_from_being_held(adopted: Path, lynceus) -> None:
    for name in ("alpha", "omega"):
        assert lynceus("adopt", name, "--from", "job.yaml", "-p", "threads=1")[0] == 0
    with sqlite3.connect(adopted / "lynceus.db") as connection:
        connection.execute("UPDATE jobs SET settings = '{' WHERE name = 'nightly'")
    connection.close()
    code, out, err = lynceus("hold", "--all")
    assert (code, out.count("held: nothing is tried or changed")) == (4, 2)
    assert re.fullmatch(r"lynceus: job 'nightly' in storage \S+ is damaged .*\n", err)
    with Storage(f"sqlite:///{adopted}/lynceus.db", create=False) as storage:
        assert [one.job.record.name for one in JobMetrics(storage).read()] == ["alpha", "omega"]
