"""Campaigns: nothing is run twice, a crash loses nothing else, and every engine gives the same traces."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import pytest

import lab_cases
from lab_cases import Counting, Deadly, Slow, changed, timeless
from lynceus.errors import InfrastructureError, InputError, LynceusError, MissingExtraError
from lynceus.lab.campaign import run_cells
from lynceus.lab.cell import Cell, run_cell
from lynceus.lab.engines import Crashed, InProcess, Processes, engine_named
from lynceus.lab.experiment import load_experiment
from lynceus.lab.store import Store
from lynceus.replay import Replay


def test_a_trace_comes_back_as_it_was(experiment_file, tmp_path):
    store = Store(tmp_path / "store")
    for cell in load_experiment(experiment_file).cells(1):
        done = run_cell(cell)
        store.keep(done)
        kept = store.read(cell.setting, [cell.seed])
        assert len(kept) == 1
        assert repr(kept[0].replay) == repr(done.replay)
        assert kept[0].made["lynceus"]
        assert kept[0].made["wall_s"] > 0


def test_finished_cells_are_not_run_again(experiment_file, tmp_path):
    store, cells = Store(tmp_path / "store"), load_experiment(experiment_file).cells()
    interrupted = Counting(stop_after=5)
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, interrupted, store)
    rest = Counting()
    ran = run_cells(cells, rest, store)
    assert (ran.asked, ran.found, ran.made, ran.crashed) == (12, 5, 7, ())
    assert interrupted.ran + rest.ran == cells
    assert run_cells(cells, Counting(), store).made == 0


def test_a_crash_in_one_cell_loses_nothing_else(experiment_file, tmp_path):
    store, cells = Store(tmp_path / "store"), load_experiment(experiment_file).cells()
    ran = run_cells(cells, Counting(crash=[3]), store)
    assert ran.made == 11
    assert [one.cell for one in ran.crashed] == [cells[3]]
    assert store.missing(cells) == [cells[3]]


def test_experiments_share_equal_cells(experiment_file, tmp_path):
    store = Store(tmp_path / "store")
    run_cells(load_experiment(experiment_file).cells(), InProcess(), store)
    changed(experiment_file, "title: A toy", "title: Another toy")
    changed(experiment_file, "  plain: random\n", "  plain: random\n  sweep: sweep\n")
    cells = load_experiment(experiment_file).cells()
    assert {cell.setting.written()["policy"]["name"] for cell in store.missing(cells)} == {"sweep"}


def test_a_longer_replay_stands_for_a_shorter_one(experiment_file, tmp_path):
    store = Store(tmp_path / "store")
    whole = load_experiment(experiment_file)
    run_cells(whole.cells(), InProcess(), store)
    changed(experiment_file, "seeds: 4\n", "seeds: 4\nuntil: 1.5\ntrials: 15\n")
    short = load_experiment(experiment_file)
    assert store.missing(short.cells()) == []
    for place, setting in short.settings.items():
        for seed in range(4):
            (kept,) = store.read(setting, [seed])
            alone = run_cell(Cell(setting, seed)).replay
            assert timeless(kept.replay)[2] == timeless(alone)[2], place


def test_a_shorter_replay_recommends_what_it_would_have_recommended_alone(experiment_file, tmp_path):
    store = Store(tmp_path / "store")
    run_cells(load_experiment(experiment_file).cells(), InProcess(), store)
    changed(experiment_file, "seeds: 4\n", "seeds: 4\ntrials: 3\n")
    short = load_experiment(experiment_file)
    assert store.missing(short.cells()) == []
    for cell in short.cells():
        (kept,) = store.read(cell.setting, [cell.seed])
        alone = run_cell(cell).replay
        assert [step.row for step in kept.replay.steps] == [step.row for step in alone.steps]
        assert kept.replay.cno_at_stop == alone.cno_at_stop


def test_a_replay_that_reached_its_goal_on_the_way_to_another_was_not_asked(experiment_file, tmp_path):
    store = Store(tmp_path / "store")
    changed(experiment_file, "seeds: 4\n", "seeds: 4\noptions: {budget: {means: 4}}\n")
    run_cells(load_experiment(experiment_file).cells(), InProcess(), store)
    changed(experiment_file, "seeds: 4\n", "seeds: 4\nuntil: 1.9\n")
    for cell in load_experiment(experiment_file).cells():
        (kept,) = store.read(cell.setting, [cell.seed])
        assert kept.replay.cno_at_stop == run_cell(cell).replay.cno_at_stop


def test_where_few_trials_are_planned_otherwise_no_longer_replay_stands_for_them(experiment_file, tmp_path):
    store = Store(tmp_path / "store")
    changed(experiment_file, "plain: random\n", "plain: lynceus\n")
    run_cells(load_experiment(experiment_file).cells(1), InProcess(), store)
    changed(experiment_file, "seeds: 4\n", "seeds: 4\ntrials: 13\n")
    assert store.missing(load_experiment(experiment_file).cells(1)) == []
    changed(experiment_file, "trials: 13\n", "trials: 12\n")
    (missing,) = store.missing(load_experiment(experiment_file).cells(1))
    assert missing.setting.written()["policy"]["name"] == "lynceus"
    store.keep(run_cell(missing))
    changed(experiment_file, "trials: 12\n", "trials: 12\nuntil: 1.1\n")
    assert store.missing(load_experiment(experiment_file).cells(1)) == [], "of as many trials, a longer one does"


def test_trials_side_by_side_are_no_part_of_a_longer_replay(experiment_file, tmp_path):
    store = Store(tmp_path / "store")
    changed(experiment_file, "seeds: 4\n", "seeds: 4\nparallel: 3\n")
    run_cells(load_experiment(experiment_file).cells(1), InProcess(), store)
    changed(experiment_file, "parallel: 3\n", "parallel: 3\nuntil: 1.5\n")
    cells = load_experiment(experiment_file).cells(1)
    assert store.missing(cells) == cells


@pytest.mark.parametrize("damage", ["empty", "no parquet", "cut off", "inside", "without facts"])
def test_a_damaged_trace_is_missing_and_made_anew(experiment_file, tmp_path, caplog, damage):
    store, cells = Store(tmp_path / "store"), load_experiment(experiment_file).cells(2)
    run_cells(cells, InProcess(), store)
    path = store.path(cells[0])
    whole = path.read_bytes()
    if damage == "without facts":
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.parquet.read_table(path).replace_schema_metadata(None), path)
    else:
        path.write_bytes(
            {
                "empty": b"",
                "no parquet": b"no parquet at all",
                "cut off": whole[:-100],
                "inside": whole[:4] + bytes(len(whole) - 12) + whole[-8:],
            }[damage]
        )
    kept = store.read(cells[0].setting, range(2))
    assert [one.replay.seed for one in kept] == [1]
    (warning,) = caplog.messages
    assert warning == f"{path}: the trace is damaged and counts as missing; it is set aside as 0.parquet.damaged."
    assert store.missing(cells) == [cells[0]]
    assert run_cells(cells, InProcess(), store).made == 1
    assert len(store.read(cells[0].setting, range(2))) == 2


def test_a_trace_says_where_it_was_run_not_where_it_is_kept(experiment_file, tmp_path, monkeypatch):
    store, cell = Store(tmp_path / "store"), load_experiment(experiment_file).cells(1)[0]
    monkeypatch.setattr("platform.machine", lambda: "far-away")
    done = run_cell(cell)
    monkeypatch.undo()
    store.keep(done)
    assert "far-away" in store.read(cell.setting, [0])[0].made["machine"]


def test_a_trace_of_a_peer_says_which_libraries_made_it(experiment_file, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "lynceus.lab.cell.replay_peer", lambda job, peer, seed, until: Replay(peer.name, seed, (), "", 2.0)
    )
    installed = tmp_path / "lib" / "python3.11" / "site-packages" / "optuna-4.2.1.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: optuna\nVersion: 4.2.1\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    monkeypatch.setenv("LYNCEUS_PEERS", str(tmp_path))
    changed(experiment_file, "  plain: random\n", "  plain: random\n  TPE: {peer: optuna-tpe}\n")
    store, cells = Store(tmp_path / "store"), load_experiment(experiment_file).cells(1)
    (cell,) = [cell for cell in cells if cell.setting.peer]
    store.keep(run_cell(cell))
    (kept,) = store.read(cell.setting, [0])
    assert kept.made["libraries"] == {"optuna": "4.2.1"}


def test_processes_give_the_traces_of_one_process(experiment_file):
    cells = load_experiment(experiment_file).cells(2)
    alone = {result.cell: timeless(result.replay) for result in InProcess()(cells)}
    together = {result.cell: timeless(result.replay) for result in Processes(2)(cells)}
    assert together == alone


def test_a_process_that_dies_takes_only_its_cell_along(experiment_file, monkeypatch):
    experiment = load_experiment(experiment_file)
    cells = experiment.cells(2)
    # A job file that is a named pipe without a writer would hang; one that kills its reader is simpler: a policy cannot
    # do that, so the pool itself is killed from outside while it works.
    engine = Processes(1)
    results = []
    killed = False
    for result in engine(cells):
        results.append(result)
        if not killed:
            killed = True
            import multiprocessing

            for child in multiprocessing.active_children():
                os.kill(child.pid, signal.SIGKILL)
    assert killed
    assert {result.cell for result in results} == set(cells)
    assert not [result for result in results if isinstance(result, Crashed)]


def test_of_cells_that_run_together_the_one_that_kills_its_process_is_to_blame(experiment_file):
    cells = load_experiment(experiment_file).cells(2)
    given = {field.name: getattr(cells[0].setting, field.name) for field in fields(cells[0].setting)}
    culprit = Cell(Deadly(**given), 0)
    mixed = [*(Cell(Slow(**given), seed) for seed in range(3)), culprit, *cells]
    results = list(Processes(2)(mixed))
    assert len(results) == len(mixed)
    assert {result.cell for result in results} == set(mixed)
    (crashed,) = [result for result in results if isinstance(result, Crashed)]
    assert crashed.cell == culprit
    assert "its process died" in crashed.reason


CAMPAIGN = """
import sys
from lab_cases import Slow
from lynceus.lab.cell import Cell
from lynceus.lab.engines import Processes
from lynceus.lab.experiment import load_experiment

if __name__ == "__main__":
    setting = load_experiment(sys.argv[1]).cells(1)[0].setting
    slow = Slow(setting.job, setting.policy, setting.options)
    for result in Processes(2)([Cell(slow, seed) for seed in range(10_000)]):
        print(result.cell.seed, flush=True)
"""


@pytest.mark.parametrize("killer", [signal.SIGTERM, signal.SIGKILL])
def test_workers_do_not_outlive_a_campaign_that_is_killed(experiment_file, tmp_path, killer):
    script = tmp_path / "campaign.py"
    script.write_text(CAMPAIGN)
    path = os.pathsep.join([str(Path(lab_cases.__file__).parent), *sys.path])
    campaign = subprocess.Popen(
        [sys.executable, script, experiment_file],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path},
        start_new_session=True,
    )
    with campaign:
        assert campaign.stdout is not None
        assert campaign.stdout.readline()
        assert len(session(campaign.pid)) >= 3
        campaign.send_signal(killer)
        campaign.wait()
    deadline = time.monotonic() + 30
    while left := session(campaign.pid):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def session(leader: int) -> list[str]:
    """The processes of a session, as /proc tells of them."""
    stats = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            stats.append(stat.read_text())
    return [stat for stat in stats if int(stat.rpartition(")")[2].split()[3]) == leader]


@pytest.mark.parametrize("workers", [1, 2])
def test_what_a_peer_or_a_machine_does_wrong_is_one_crashed_cell(experiment_file, tmp_path, monkeypatch, workers):
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(
        "#!/bin/sh\necho '{}'\nwhile read line; do echo '{\"error\": \"NotPSDError: one bad fit\"}'; done\n"
    )
    python.chmod(0o755)
    monkeypatch.setenv("LYNCEUS_PEERS", str(tmp_path))
    changed(experiment_file, "  plain: random\n", "  plain: random\n  TPE: {peer: optuna-tpe}\n")
    store, cells = Store(tmp_path / "store"), load_experiment(experiment_file).cells(2)
    ran = run_cells(cells, engine_named("local", workers), store)
    assert ran.made == 6
    assert {one.cell.setting.peer for one in ran.crashed} == {"optuna-tpe"}
    assert all("NotPSDError: one bad fit" in one.reason for one in ran.crashed)
    assert store.missing(cells) == [one for one in cells if one.setting.peer]


@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (InputError("a mistake"), True),
        (MissingExtraError("Tables", "parquet"), True),
        (InfrastructureError("a machine"), False),
        (ValueError("a bug"), False),
    ],
)
def test_only_what_every_cell_would_meet_ends_a_campaign(experiment_file, monkeypatch, error, ends):
    def fails(cell):
        raise error

    monkeypatch.setattr("lynceus.lab.engines.run_cell", fails)
    cells = load_experiment(experiment_file).cells(1)
    if ends:
        with pytest.raises(LynceusError, match=str(error).split(":")[0]):
            list(InProcess()(cells))
    else:
        assert [type(result) for result in InProcess()(cells)] == [Crashed] * 3


@pytest.mark.parametrize(
    ("name", "workers", "message"),
    [
        ("lokal", 1, "engine: 'lokal' came; choose local, ray, or ray://"),
        ("local", 0, "workers: 0 came; give at least 1"),
    ],
)
def test_an_engine_is_chosen_by_name(name, workers, message):
    with pytest.raises(InputError, match=message):
        engine_named(name, workers)


def test_a_store_that_cannot_be_written_is_one_sentence(experiment_file, tmp_path):
    (tmp_path / "file").write_text("")
    done = run_cell(load_experiment(experiment_file).cells(1)[0])
    with pytest.raises(InputError, match=r"--store: .* cannot be written"):
        Store(tmp_path / "file").keep(done)
