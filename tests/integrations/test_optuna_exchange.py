"""Studies from and to Optuna's storages."""

import json
import sqlite3
import subprocess
import time
import urllib.request
from contextlib import closing
from pathlib import Path

import optuna
import pytest

import lynceus
from lynceus.errors import InputError, LynceusError
from lynceus.integrations.optuna.exchange import export_study, past_runs
from optuna_storages import optuna_storage
from ports import free_ports
from told_times import seconds_of, space, study

optuna.logging.set_verbosity(optuna.logging.WARNING)


def with_every_state() -> lynceus.Study:
    """Finished, stopped and failed runs, and one that is open."""
    one = lynceus.create_study(space=space(), constraints=["runtime <= 20m", "accuracy >= 0.9"], budget="5 USD", seed=1)
    for number in range(8):
        trial = one.ask()
        assert trial is not None
        seconds = seconds_of(trial.params)
        if number == 2:
            one.tell(trial, runtime=12.0, state="FAIL", reason="oom", detail="exit code 137")
        elif number == 3:
            one.tell(trial, state="FAIL", reason="infra", detail="the node vanished")
        elif trial.timeout is not None and seconds > trial.timeout:
            one.tell(trial, runtime=trial.timeout, state="TIMEOUT")
        else:
            one.tell(trial, runtime=seconds, accuracy=0.95)
    assert one.ask() is not None
    return one


@pytest.mark.parametrize("name", ["optuna.db", "journal.log", "sqlite"])
def test_a_study_survives_the_way_to_optuna_and_back(tmp_path: Path, name: str) -> None:
    address = f"sqlite:///{tmp_path}/named.db" if name == "sqlite" else str(tmp_path / name)
    one = with_every_state()
    assert export_study(one, address) == 8
    assert export_study(one, address) == 0, "a second export adds what is new"
    runs, running = past_runs(address, None, one.problem)
    assert running == 0
    back = lynceus.create_study(space=space(), constraints=["runtime <= 20m", "accuracy >= 0.9"], seed=1)
    back.add_trials(runs)
    facts = [
        (one.params, one.state, one.runtime_s, one.reason, one.detail, dict(one.metrics)) for one in one.trials[:8]
    ]
    assert [
        (one.params, one.state, one.runtime_s, one.reason, one.detail, dict(one.metrics)) for one in back.trials
    ] == facts
    assert {str(state) for _, state, *_ in facts} == {"COMPLETE", "TIMEOUT", "FAIL"}
    assert back.best_params == one.best_params
    assert back.spent_usd == 0.0


def test_optuna_reads_what_was_exported(tmp_path: Path) -> None:
    """Values, constraints and times are Optuna's own: its best trial is ours."""
    one, address = study(), f"sqlite:///{tmp_path}/optuna.db"
    one.optimize(lambda trial: min(seconds_of(trial.params), trial.timeout or 1e9))
    export_study(one, address)
    with optuna_storage(address) as storage:
        theirs = optuna.load_study(study_name=one.name, storage=storage)
        assert len(theirs.trials) == len(one.trials)
        assert (
            theirs.best_params
            == min((t for t in one.trials if t.keeps_constraints), key=lambda t: t.cost_usd or 0.0).params
        )
        assert theirs.metric_names == ["cost"]
        assert theirs.trials[0].user_attrs["runtime_s"] == one.trials[0].runtime_s


def test_a_study_of_optuna_is_past_knowledge(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/theirs.db"
    with optuna_storage(address) as storage:
        theirs = optuna.create_study(study_name="theirs", storage=storage, direction="maximize")
        for nodes, accuracy in ((1, 0.7), (4, 0.9)):
            trial = theirs.ask()
            trial.suggest_int("nodes", nodes, nodes)
            trial.suggest_float("rate", 0.1, 0.2)
            trial.set_user_attr("runtime_s", 600.0 / nodes)
            theirs.tell(trial, accuracy)
    ours = lynceus.create_study(
        space=lynceus.Space.build([lynceus.Integer("nodes", 1, 4)], price="nodes"), objective="maximize accuracy"
    )
    runs, _ = past_runs(address, "theirs", ours.problem)
    ours.add_trials(runs)
    assert [dict(one.metrics) for one in ours.trials] == [{"accuracy": 0.7}, {"accuracy": 0.9}]
    assert ours.best_params == {"nodes": 4}


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    problem = study().problem
    with pytest.raises(InputError, match="there is no such file"):
        past_runs(str(tmp_path / "none.log"), None, problem)
    (tmp_path / "text.log").write_text("no journal\n")
    with pytest.raises(InputError, match=r"text\.log"):
        past_runs(str(tmp_path / "text.log"), None, problem)
    address = f"sqlite:///{tmp_path}/two.db"
    with optuna_storage(address) as storage:
        for name in ("one", "two"):
            optuna.create_study(study_name=name, storage=storage)
    with pytest.raises(InputError, match="--optuna-study"):
        past_runs(address, None, problem)
    with pytest.raises(InputError, match="Did you mean 'one'"):
        past_runs(address, "onne", problem)


def test_a_database_that_is_no_storage_is_closed(tmp_path: Path) -> None:
    damaged, foreign = tmp_path / "damaged.db", tmp_path / "foreign.db"
    damaged.write_bytes(b"SQLite format 3\0" + b"x" * 4096)
    with closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE version_info (version)")
    for file in (damaged, foreign):
        with pytest.raises(LynceusError):
            past_runs(str(file), None, study().problem)
        descriptors = [str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
        assert str(file) not in descriptors


@pytest.mark.slow
def test_the_real_optuna_dashboard_shows_our_study(tmp_path: Path) -> None:
    """`make optuna-tools` installs it in an environment of its own."""
    program = Path(__file__).parents[2] / ".venv-optuna" / "bin" / "optuna-dashboard"
    if not program.exists():
        pytest.skip("optuna-dashboard is not installed; make optuna-tools installs it")
    one, address = with_every_state(), f"sqlite:///{tmp_path}/optuna.db"
    export_study(one, address)
    (port,) = free_ports(1)
    server = subprocess.Popen(
        [program, address, "--port", str(port)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        until = time.monotonic() + 60
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/studies") as answer:
                    studies = json.load(answer)
                break
            except OSError:
                assert time.monotonic() < until
                time.sleep(0.2)
        (summary,) = studies["study_summaries"]
        assert summary["study_name"] == one.name
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/studies/{summary['study_id']}") as answer:
            detail = json.load(answer)
        states = [trial["state"] for trial in detail["trials"]]
        ours = {"COMPLETE": "Complete", "TIMEOUT": "Pruned", "FAIL": "Fail"}
        assert states == [ours[str(trial.state)] for trial in one.trials[:8]]
    finally:
        server.terminate()
        server.wait()
