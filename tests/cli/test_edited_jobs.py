"""Job files that were edited after their study had been created."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from cli_jobs import JOB
from lynceus.storage.sql.storage import Storage

pytestmark = pytest.mark.usefixtures("here")


def test_another_space_is_refused_for_an_existing_study(lynceus, here: Path) -> None:
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
def test_edits_that_a_study_refuses_are_named(lynceus, here: Path, before: str, after: str, said: str) -> None:
    lynceus("run", "job.yaml", "-y")
    (here / "job.yaml").write_text(JOB.replace(before, after))
    for command in (["run", "job.yaml", "-y"], ["resume", "job.yaml"]):
        code, _, err = lynceus(*command)
        assert (code, said in err, err.count("\n")) == (2, True, 1), err
    code, out, err = lynceus("best", "job.yaml", "-o", "json")
    assert (code, json.loads(out)["study"]) == (0, "toy")
    assert "job.yaml has changed since" in err
    assert "job.yaml has changed since" in lynceus("status", "job.yaml")[2]


def test_a_corrected_command_is_adopted_and_recorded(lynceus, here: Path) -> None:
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


def test_the_file_may_state_the_added_money(lynceus, here: Path) -> None:
    lynceus("run", "job.yaml", "-y")
    lynceus("resume", "toy", "--add-budget", "5 USD")
    (here / "job.yaml").write_text(JOB.replace("100 USD", "105 USD"))
    code, _, err = lynceus("run", "job.yaml", "-y")
    assert (code, "budget" in err) == (0, False)
    assert json.loads(lynceus("status", "toy", "-o", "json")[1])["budget_usd"] == 105


def test_trials_can_be_added_and_the_file_may_state_them(lynceus, here: Path) -> None:
    job = JOB.replace("max_trials: 6", "max_trials: 2")
    (here / "job.yaml").write_text(job)
    assert "all 2 trials of the budget were used" in lynceus("run", "job.yaml", "-y")[1]
    (here / "job.yaml").write_text(job.replace("max_trials: 2", "max_trials: 3"))
    assert "to go on so, run: lynceus resume toy --add-trials 1; otherwise" in lynceus("run", "job.yaml", "-y")[2]
    assert "all 3 trials of the budget were used" in lynceus("resume", "toy", "--add-trials", "1")[1]
    code, _, err = lynceus("run", "job.yaml", "-y")
    assert (code, "budget" in err) == (0, False)
    assert json.loads(lynceus("status", "toy", "-o", "json")[1])["budget_trials"] == 3


def test_a_refused_edit_names_the_commands_that_make_it_and_shows_no_plan(lynceus, here: Path) -> None:
    lynceus("run", "job.yaml", "-y")
    edited = JOB.replace("100 USD", "100.5 USD").replace("max_trials: 6", "max_trials: 9").replace("<= 1m", "<= 3m")
    (here / "job.yaml").write_text(edited)
    code, out, err = lynceus("run", "job.yaml", "-y")
    assert (code, out) == (2, "")
    command = "resume toy --constraint 'runtime <= 3m' --add-budget '0.5 USD' --add-trials 3"
    assert f"to go on so, run: lynceus {command}; otherwise restore the file, or give the job another name." in err
    assert lynceus(*shlex.split(command))[0] == 0
    code, _, err = lynceus("run", "job.yaml", "-y")
    assert (code, "budget" in err or "constraints" in err) == (0, False), err


def test_what_no_command_can_change_is_named_apart_from_what_one_can(lynceus, here: Path) -> None:
    lynceus("run", "job.yaml", "-y")
    (here / "job.yaml").write_text(JOB.replace("max_trials: 6", "max_trials: 5").replace("100 USD", "101 USD"))
    err = lynceus("run", "job.yaml", "-y")[2]
    assert "'toy' keeps budget.max_trials for its whole life; restore the file, or give the job another name" in err
    assert "the other changes can be made with: lynceus resume toy --add-budget '1 USD'" in err


def test_trials_cannot_be_added_where_they_are_not_limited(lynceus, here: Path) -> None:
    (here / "job.yaml").write_text(JOB.replace(", max_trials: 6", ""))
    lynceus("run", "job.yaml", "-y")
    code, _, err = lynceus("resume", "toy", "--add-trials", "1")
    assert (code, "resume: 1 trials cannot be added; the study has no limit on trials." in err) == (2, True)


def test_applying_prices_does_not_change_the_budget(lynceus, here: Path) -> None:
    lynceus("run", "job.yaml", "-y")
    (here / "job.yaml").write_text(JOB.replace("100 USD", "200 USD").replace("36.0 *", "35.0 *"))
    code, _, err = lynceus("prices", "apply", "job.yaml")
    assert (code, "budget.cost is 200 USD here" in err) == (2, True)
    (here / "job.yaml").write_text(JOB.replace("36.0 *", "35.0 *"))
    assert lynceus("prices", "apply", "job.yaml")[0] == 0
    assert lynceus("run", "job.yaml", "-y")[0] == 0
