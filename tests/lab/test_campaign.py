"""Campaigns: no cell runs twice, a crash affects only its cell, and every engine gives the same traces."""

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
from lab_cases import Counting, Deadly, Slow, changed, without_times
from lynceus.errors import InfrastructureError, InputError, LynceusError, MissingExtraError
from lynceus.replay.run import Replay
from lynceus_lab.campaign import run_cells
from lynceus_lab.cell import Cell, run_cell
from lynceus_lab.engines import Crashed, InProcess, Processes, engine_named
from lynceus_lab.experiment import load_experiment
from lynceus_lab.trace_store import Store


def test_traces_round_trip(experiment_file, tmp_path):
    store = Store(tmp_path / "store")
    for cell in load_experiment(experiment_file).cells(1):
        done = run_cell(cell)
        store.keep(done)
        kept = store.read(cell.setting, [cell.seed])
        assert len(kept) == 1
        assert repr(kept[0].replay) == repr(done.replay)
        assert kept[0].made["lynceus"]
        assert kept[0].made["wall_s"] > 0


def test_traces_of_version_0_1_can_be_read(experiment_file, tmp_path):
    import pyarrow.parquet

    store, cell = Store(tmp_path / "store"), load_experiment(experiment_file).cells(1)[0]
    done = run_cell(cell)
    store.keep(done)
    table = pyarrow.parquet.read_table(store.path(cell))
    names = ["told_s" if name == "target_s" else name for name in table.column_names]
    renamed = table.rename_columns(names).replace_schema_metadata(table.schema.metadata)
    pyarrow.parquet.write_table(renamed, store.path(cell))
    (kept,) = store.read(cell.setting, [cell.seed])
    assert repr(kept.replay) == repr(done.replay)


def test_finished_cells_do_not_run_again(experiment_file, tmp_path):
    store, cells = Store(tmp_path / "store"), load_experiment(experiment_file).cells()
    interrupted = Counting(stop_after=5)
    with pytest.raises(KeyboardInterrupt):
        run_cells(cells, interrupted, store)
    rest = Counting()
    ran = run_cells(cells, rest, store)
    assert (ran.asked, ran.found, ran.made, ran.crashed) == (12, 5, 7, ())
    assert interrupted.ran + rest.ran == cells
    assert run_cells(cells, Counting(), store).made == 0


def test_a_crash_affects_only_its_cell(experiment_file, tmp_path):
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


def test_a_longer_replay_is_used_for_a_shorter_one(experiment_file, tmp_path):
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
            assert without_times(kept.replay)[2] == without_times(alone)[2], place


def test_a_prefix_has_the_recommendation_of_a_replay_of_its_own(experiment_file, tmp_path):
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


def test_a_prefix_that_reached_its_target_has_no_recommendation(experiment_file, tmp_path):
    store = Store(tmp_path / "store")
    changed(experiment_file, "seeds: 4\n", "seeds: 4\noptions: {budget: {means: 4}}\n")
    run_cells(load_experiment(experiment_file).cells(), InProcess(), store)
    changed(experiment_file, "seeds: 4\n", "seeds: 4\nuntil: 1.9\n")
    for cell in load_experiment(experiment_file).cells():
        (kept,) = store.read(cell.setting, [cell.seed])
        assert kept.replay.cno_at_stop == run_cell(cell).replay.cno_at_stop


def test_no_prefix_is_used_where_the_limit_on_trials_changes_decisions(experiment_file, tmp_path):
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
    assert store.missing(load_experiment(experiment_file).cells(1)) == [], "a longer replay with the same limit is used"


def test_no_prefix_is_used_of_parallel_trials(experiment_file, tmp_path):
    store = Store(tmp_path / "store")
    changed(experiment_file, "seeds: 4\n", "seeds: 4\nparallel: 3\n")
    run_cells(load_experiment(experiment_file).cells(1), InProcess(), store)
    changed(experiment_file, "parallel: 3\n", "parallel: 3\nuntil: 1.5\n")
    cells = load_experiment(experiment_file).cells(1)
    assert store.missing(cells) == cells


@pytest.mark.parametrize("damage", ["empty", "not parquet", "truncated", "corrupt", "without metadata"])
def test_a_damaged_trace_is_missing_and_runs_again(experiment_file, tmp_path, caplog, damage):
    store, cells = Store(tmp_path / "store"), load_experiment(experiment_file).cells(2)
    run_cells(cells, InProcess(), store)
    path = store.path(cells[0])
    whole = path.read_bytes()
    if damage == "without metadata":
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.parquet.read_table(path).replace_schema_metadata(None), path)
    else:
        path.write_bytes(
            {
                "empty": b"",
                "not parquet": b"this is not parquet",
                "truncated": whole[:-100],
                "corrupt": whole[:4] + bytes(len(whole) - 12) + whole[-8:],
            }[damage]
        )
    kept = store.read(cells[0].setting, range(2))
    assert [one.replay.seed for one in kept] == [1]
    (warning,) = caplog.messages
    assert warning == f"{path}: the trace is damaged and counts as missing; it was renamed to 0.parquet.damaged."
    assert store.missing(cells) == [cells[0]]
    assert run_cells(cells, InProcess(), store).made == 1
    assert len(store.read(cells[0].setting, range(2))) == 2


def test_a_trace_names_the_machine_on_which_it_ran(experiment_file, tmp_path, monkeypatch):
    store, cell = Store(tmp_path / "store"), load_experiment(experiment_file).cells(1)[0]
    monkeypatch.setattr("platform.machine", lambda: "far-away")
    done = run_cell(cell)
    monkeypatch.undo()
    store.keep(done)
    assert "far-away" in store.read(cell.setting, [0])[0].made["machine"]


def test_the_trace_of_a_peer_has_the_versions_of_its_libraries(experiment_file, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "lynceus_lab.cell.replay_peer", lambda job, peer, seed, until: Replay(peer.name, seed, (), "", 2.0)
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


def test_several_processes_give_the_same_traces_as_one(experiment_file):
    cells = load_experiment(experiment_file).cells(2)
    alone = {result.cell: without_times(result.replay) for result in InProcess()(cells)}
    together = {result.cell: without_times(result.replay) for result in Processes(2)(cells)}
    assert together == alone


def test_cells_of_a_process_that_dies_run_again(experiment_file, monkeypatch):
    experiment = load_experiment(experiment_file)
    cells = experiment.cells(2)
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


def test_only_the_cell_that_kills_its_process_counts_as_crashed(experiment_file):
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
from lynceus_lab.cell import Cell
from lynceus_lab.engines import Processes
from lynceus_lab.experiment import load_experiment

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
    """The processes of a session, from /proc."""
    stats = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            stats.append(stat.read_text())
    return [stat for stat in stats if int(stat.rpartition(")")[2].split()[3]) == leader]


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_peer_crashes_only_its_cell(experiment_file, tmp_path, monkeypatch, workers):
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
def test_only_errors_that_affect_every_cell_end_a_campaign(experiment_file, monkeypatch, error, ends):
    def fails(cell):
        raise error

    monkeypatch.setattr("lynceus_lab.engines.run_cell", fails)
    cells = load_experiment(experiment_file).cells(1)
    if ends:
        with pytest.raises(LynceusError, match=str(error).split(":")[0]):
            list(InProcess()(cells))
    else:
        assert [type(result) for result in InProcess()(cells)] == [Crashed] * 3


@pytest.mark.parametrize(
    ("name", "workers", "message"),
    [
        ("lokal", 1, "engine: got 'lokal'; choose local, ray, or ray://"),
        ("local", 0, "workers: got 0; give at least 1"),
    ],
)
def test_invalid_engines_are_refused(name, workers, message):
    with pytest.raises(InputError, match=message):
        engine_named(name, workers)


def test_a_store_that_cannot_be_written_is_an_input_error(experiment_file, tmp_path):
    (tmp_path / "file").write_text("")
    done = run_cell(load_experiment(experiment_file).cells(1)[0])
    with pytest.raises(InputError, match=r"--store: .* cannot be written"):
        Store(tmp_path / "file").keep(done)
