"""Traces know the code that made them: what decides counts, what explains does not, and different code is never mixed."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab_cases import changed
from lynceus.lab import code as code_module
from lynceus.lab.campaign import run_cells
from lynceus.lab.cell import Cell, Setting, run_cell
from lynceus.lab.code import fingerprint
from lynceus.lab.engines import InProcess
from lynceus.lab.experiment import load_experiment
from lynceus.lab.page import page
from lynceus.lab.store import Store
from lynceus.lab.summary import summarise
from lynceus.lab.verify import verify
from lynceus.policy import preset
from lynceus.policy.compose import describe

SOURCES = Path(code_module.__file__).parents[1]


def written(name: str) -> str:
    return json.dumps(describe(preset(name)))


def forget() -> None:
    """Read sources and tables anew."""
    for kept in (code_module._code_of, code_module._text, code_module._imports, code_module._data_of):
        kept.cache_clear()


@pytest.fixture
def copied_sources(tmp_path, monkeypatch) -> Iterator[Path]:
    """A copy of the sources, from which fingerprints are taken."""
    copy = tmp_path / "changed" / "lynceus"
    shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("*.so", "__pycache__", "static"))
    monkeypatch.setattr(code_module, "_PACKAGE", copy)
    yield copy
    forget()


@pytest.mark.parametrize(
    ("file", "old", "new", "name", "differs"),
    [
        ("choose/rollout.py", "@dataclass", "# why\n@dataclass", "bo", False),
        ("policy/decide.py", '"""The next run,', '"""Some run,', "bo", False),
        ("policy/decide.py", "_ROUNDING = 1e-9", "_ROUNDING = 1e-8", "bo", True),
        ("surrogate/_kernel/forest.c", "#include", "/* why */ #include", "bo", False),
        ("surrogate/_kernel/forest.c", "#include", "#define MORE 1\n#include", "bo", True),
        ("surrogate/_kernel/forest.c", "#include", "#define MORE 1\n#include", "random", False),
        ("policy/default.py", "def default", "MORE = 1\n\n\ndef default", "bo", False),
        ("surrogate/fabolas.py", "@dataclass(frozen=True", "MORE = 1\n@dataclass(frozen=True", "bo", False),
        ("surrogate/fabolas.py", "@dataclass(frozen=True", "MORE = 1\n@dataclass(frozen=True", "fabulinus", True),
        ("cli/lab.py", "_EVERY_S = 30.0", "_EVERY_S = 3.0", "bo", False),
    ],
)
def test_only_what_decides_for_a_policy_counts(copied_sources, job, file, old, new, name, differs):
    forget()
    before = fingerprint(written(name), str(job))
    text = (copied_sources / file).read_text(encoding="utf-8")
    assert old in text
    (copied_sources / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    forget()
    assert (fingerprint(written(name), str(job)) != before) is differs


def test_the_table_and_the_job_count_but_not_what_is_said_of_it(job):
    policy = written("random")
    first = fingerprint(policy, str(job))
    table = next(job.parent.glob("*.csv"))
    forget()
    job.write_text(job.read_text() + "\ndescription: another one\n")
    assert fingerprint(policy, str(job)) == first
    forget()
    table.write_text(table.read_text() + "\n")
    assert fingerprint(policy, str(job)) != first
    forget()


def as_of_other_code(store: Store, cells: list[Cell], code: str) -> None:
    """Move traces to where other code would have put them."""
    for cell in cells:
        target = store.path(cell, code)
        target.parent.mkdir(parents=True, exist_ok=True)
        store.path(cell).rename(target)


def test_traces_of_other_code_are_shown_but_never_mixed_and_never_stand_for_new_ones(experiment_file, tmp_path):
    code = "0123456789ab"
    store, experiment = Store(tmp_path / "store"), load_experiment(experiment_file)
    cells = experiment.cells()
    run_cells(cells, InProcess(), store)
    as_of_other_code(store, cells, code)
    assert store.missing(cells) == cells
    summary = summarise(experiment, store)
    assert {row["current"] for row in summary["table"]} == {False}
    assert "code that has changed since" in page([summary], {})
    setting = cells[0].setting
    for seed, shown in ((0, code), (1, setting.code), (2, setting.code)):
        run_cells([Cell(setting, seed)], InProcess(), store)
        kept = store.read(setting, range(4))
        assert {one.code for one in kept} == {shown}, "all of one code; that of now from half as many traces on"
        assert len(kept) == (4 if shown == code else seed + 1)


def test_equal_traces_of_other_code_are_adopted_after_a_look(experiment_file, tmp_path):
    store, experiment = Store(tmp_path / "store"), load_experiment(experiment_file)
    cells = experiment.cells()
    run_cells(cells, InProcess(), store)
    as_of_other_code(store, cells, "0123456789ab")
    store.path(cells[-1], "0123456789ab").write_bytes(b"damaged")
    found = verify([experiment], store)
    run_cells(cells[-1:], InProcess(), store)
    assert 1 + sum(one.adopted + len(one.checked) for one in found) == len(cells)
    assert not any(one.differing for one in found)
    assert store.missing(cells) == []
    adopted = [
        kept.made["adopted"]
        for cell in cells
        for kept in store.read(cell.setting, [cell.seed])
        if "adopted" in kept.made
    ]
    assert adopted
    assert all(one["from"] == "0123456789ab" and len(one["checked"]) == 2 for one in adopted)
    assert verify([experiment], store) == []


def test_traces_that_differ_are_not_adopted(experiment_file, tmp_path):
    store, experiment = Store(tmp_path / "store"), load_experiment(experiment_file)
    setting: Setting = next(iter(experiment.settings.values()))
    for seed in range(4):
        # What seed 17 did, kept as if other code had done it with this seed.
        done = run_cell(Cell(setting, 17 + seed))
        store.keep(type(done)(Cell(setting, seed), done.replay, done.wall_s))
    as_of_other_code(store, [Cell(setting, seed) for seed in range(4)], "0123456789ab")
    (found,) = verify([experiment], store)
    assert (len(found.differing), found.adopted) == (2, 0)
    assert len(store.missing([Cell(setting, seed) for seed in range(4)])) == 2


@pytest.mark.parametrize(("per", "checked"), [(1, [2]), (2, [2, 1]), (3, [2, 0, 1]), (9, [2, 3, 0, 1])])
def test_the_longest_is_always_looked_at(experiment_file, tmp_path, per, checked):
    store, experiment = Store(tmp_path / "store"), load_experiment(experiment_file)
    setting: Setting = next(iter(experiment.settings.values()))
    for seed, wall_s in enumerate((3.0, 1.0, 9.0, 5.0)):
        done = run_cell(Cell(setting, seed))
        store.keep(type(done)(done.cell, done.replay, wall_s))
    as_of_other_code(store, [Cell(setting, seed) for seed in range(4)], "0123456789ab")
    (found,) = verify([experiment], store, per)
    assert list(found.checked) == checked
    assert found.adopted == 4 - len(checked)


def test_the_command_says_what_it_found(experiment_file, tmp_path):
    from typer.testing import CliRunner

    from lynceus.cli.app import app

    store, experiment = Store(tmp_path / "store"), load_experiment(experiment_file)
    run_cells(experiment.cells(), InProcess(), store)
    as_of_other_code(store, experiment.cells(), "0123456789ab")
    said = CliRunner().invoke(app, ["lab", "verify", str(experiment_file), "--store", str(store.folder)])
    assert said.exit_code == 0
    assert "settings had traces of other code" in said.output
    changed(experiment_file, "title: A toy", "title: Another toy")
    refused = CliRunner().invoke(app, ["lab", "verify", str(experiment_file), "--per", "0"])
    assert refused.exit_code != 0


def test_a_peer_depends_on_its_own_library_only():
    source = Path(code_module.__file__).with_name("peers").joinpath("server.py").read_text()
    other = source.replace("min_samples_leaf=1", "min_samples_leaf=2")
    assert other != source
    assert code_module._of_library(other, "botorch") == code_module._of_library(source, "botorch")
    assert code_module._of_library(other, "smac") != code_module._of_library(source, "smac")
