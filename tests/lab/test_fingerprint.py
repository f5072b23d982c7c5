"""Traces have a fingerprint of the code that made them: decisions count, comments do not, and traces of different code never mix."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab_cases import changed
from lynceus.policy.policy_file import describe
from lynceus.policy.presets import preset
from lynceus_lab import fingerprint as fingerprint_module
from lynceus_lab.campaign import run_cells
from lynceus_lab.cell import Cell, Setting, run_cell
from lynceus_lab.engines import InProcess
from lynceus_lab.experiment import load_experiment
from lynceus_lab.experiment_page import experiment_page
from lynceus_lab.fingerprint import code_fingerprint, modules, modules_of
from lynceus_lab.summary import summarise
from lynceus_lab.trace_store import Store
from lynceus_lab.verify import verify

SOURCES = Path(fingerprint_module.__file__).parents[1]


def written(name: str) -> str:
    return json.dumps(describe(preset(name)))


def forget() -> None:
    """Read sources and tables again."""
    module = fingerprint_module
    for cached in (module._code_of, module._text, module._imports, module._file, module._data_of):
        cached.cache_clear()


@pytest.fixture
def copied_sources(tmp_path, monkeypatch) -> Iterator[Path]:
    """A copy of the sources, from which fingerprints are taken."""
    copy = tmp_path / "changed"
    for package in ("lynceus", "lynceus_lab"):
        ignored = shutil.ignore_patterns("*.so", "__pycache__", "static", ".mypy_cache")
        shutil.copytree(SOURCES / package, copy / package, ignore=ignored)
    monkeypatch.setattr(fingerprint_module, "_SOURCES", copy)
    forget()
    yield copy
    monkeypatch.undo()
    forget()


def test_all_modules_that_decide_are_covered():
    found = {*modules_of(written("lynceus")), *modules_of(written("bo"))}
    assert found >= {
        *(
            "lynceus.policy.next_step",
            "lynceus.policy.retries",
            "lynceus.policy.interfaces",
        ),
        *("lynceus.policy.recommendation", "lynceus.policy.stopping", "lynceus.policy.planners.lookahead"),
        *("lynceus.study.study", "lynceus.study.run_loop", "lynceus.study.worker", "lynceus.storage.memory"),
        *("lynceus.trial.record", "lynceus.trial.order", "lynceus.trial.outcome", "lynceus.trial.incumbents"),
        *("lynceus.problem.preemption", "lynceus.problem.billing", "lynceus.space.table"),
        *("lynceus.models.interfaces", "lynceus.models.state", "lynceus.models._kernel.native"),
        *(
            "lynceus.executors.table",
            "lynceus.executors.simulation",
            "lynceus_lab.worlds",
            "lynceus.replay.run",
            "lynceus.replay.score",
        ),
    }
    packages = {".".join(name.split(".")[:2]) for name in found - {"lynceus_lab.worlds"}}
    assert packages <= {
        f"lynceus.{name}"
        for name in (
            "space",
            "problem",
            "trial",
            "models",
            "acquisition",
            "policy",
            "storage",
            "executors",
            "study",
            "replay",
        )
    }
    assert not [name for name in found if name.startswith("lynceus.storage.sql")]


def test_parts_of_the_published_program_are_covered():
    assert "lynceus_lab.published_program" in modules_of(written("authors-2020"))
    assert "lynceus_lab.published_program" not in modules_of(written("lynceus-2020"))


def test_parts_of_other_packages_are_covered(tmp_path, monkeypatch):
    plugin = tmp_path / "their_plugin"
    plugin.mkdir()
    (plugin / "__init__.py").write_text("")
    (plugin / "chooser.py").write_text(
        "import json\nfrom lynceus.policy.designs import LatinHypercube\nfrom .more import X\n"
    )
    (plugin / "more.py").write_text("X = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    found = modules(["their_plugin.chooser"])
    assert {"their_plugin.chooser", "their_plugin.more", "lynceus.policy.designs"} <= set(found)
    before = fingerprint_module._hash_of(found)
    (plugin / "more.py").write_text("X = 2\n")
    forget()
    assert fingerprint_module._hash_of(found) != before
    forget()


@pytest.mark.parametrize(
    ("file", "old", "new", "name", "differs"),
    [
        ("policy/planners/lookahead.py", "@dataclass", "# why\n@dataclass", "bo", False),
        ("policy/next_step.py", '"""', '"""Another docstring. ', "bo", False),
        ("policy/next_step.py", "\n\ndef ", "\n\nMORE = 1\n\n\ndef ", "bo", True),
        ("study/worker.py", "_PATIENCE_S = 60.0", "_PATIENCE_S = 61.0", "random", True),
        ("trial/record.py", "\n\n@dataclass", "\n\nMORE = 1\n\n\n@dataclass", "random", True),
        ("models/_kernel/forest.c", "#include", "/* why */ #include", "bo", False),
        ("models/_kernel/forest.c", "#include", "#define MORE 1\n#include", "bo", True),
        (
            "models/_kernel/forest.c",
            "#include",
            "#define MORE 1\n#include",
            "random",
            True,
        ),  # its answer may be predicted
        ("policy/default.py", "def default", "MORE = 1\n\n\ndef default", "bo", False),
        ("models/fabolas.py", "@dataclass(frozen=True", "MORE = 1\n@dataclass(frozen=True", "bo", False),
        ("models/fabolas.py", "@dataclass(frozen=True", "MORE = 1\n@dataclass(frozen=True", "fabulinus", True),
        ("storage/sql/storage.py", "\n\nclass ", "\n\nMORE = 1\n\n\nclass ", "bo", False),
        ("jobfile/yaml/errors.py", "got {given}", "received {given}", "bo", False),
    ],
)
def test_only_what_can_change_a_decision_counts(copied_sources, job, file, old, new, name, differs):
    before = code_fingerprint(written(name), str(job))
    path = copied_sources / "lynceus" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    forget()
    assert (code_fingerprint(written(name), str(job)) != before) is differs


def test_the_table_and_the_job_count_but_not_its_description(job):
    policy = written("random")
    first = code_fingerprint(policy, str(job))
    table = next(job.parent.glob("*.csv"))
    forget()
    job.write_text(job.read_text() + "\ndescription: another one\n")
    assert code_fingerprint(policy, str(job)) == first
    forget()
    table.write_text(table.read_text() + "\n")
    assert code_fingerprint(policy, str(job)) != first
    forget()


def as_of_other_code(store: Store, cells: list[Cell], code: str) -> None:
    """Move traces to the folder of other code."""
    for cell in cells:
        target = store.path(cell, code)
        target.parent.mkdir(parents=True, exist_ok=True)
        store.path(cell).rename(target)


def test_traces_of_other_code_are_shown_but_never_mixed_and_do_not_replace_new_ones(experiment_file, tmp_path):
    code = "0123456789ab"
    store, experiment = Store(tmp_path / "store"), load_experiment(experiment_file)
    cells = experiment.cells()
    run_cells(cells, InProcess(), store)
    as_of_other_code(store, cells, code)
    assert store.missing(cells) == cells
    summary = summarise(experiment, store)
    assert {row["current"] for row in summary["table"]} == {False}
    assert "code that has changed since" in experiment_page(summary, [])
    setting = cells[0].setting
    for seed, shown in ((0, code), (1, setting.code), (2, setting.code)):
        run_cells([Cell(setting, seed)], InProcess(), store)
        kept = store.read(setting, range(4))
        assert {one.code for one in kept} == {shown}, "all of one code: the current one once it has half as many traces"
        assert len(kept) == (4 if shown == code else seed + 1)


def test_equal_traces_of_other_code_are_adopted_after_a_check(experiment_file, tmp_path):
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
        # The replay of another seed, as if other code had made it with this seed.
        done = run_cell(Cell(setting, 17 + seed))
        store.keep(type(done)(Cell(setting, seed), done.replay, done.wall_s))
    as_of_other_code(store, [Cell(setting, seed) for seed in range(4)], "0123456789ab")
    (found,) = verify([experiment], store)
    assert (len(found.differing), found.adopted) == (2, 0)
    assert len(store.missing([Cell(setting, seed) for seed in range(4)])) == 2


@pytest.mark.parametrize(("per", "checked"), [(1, [2]), (2, [2, 1]), (3, [2, 0, 1]), (9, [2, 3, 0, 1])])
def test_the_longest_replay_is_always_checked(experiment_file, tmp_path, per, checked):
    store, experiment = Store(tmp_path / "store"), load_experiment(experiment_file)
    setting: Setting = next(iter(experiment.settings.values()))
    for seed, wall_s in enumerate((3.0, 1.0, 9.0, 5.0)):
        done = run_cell(Cell(setting, seed))
        store.keep(type(done)(done.cell, done.replay, wall_s))
    as_of_other_code(store, [Cell(setting, seed) for seed in range(4)], "0123456789ab")
    (found,) = verify([experiment], store, per)
    assert list(found.checked) == checked
    assert found.adopted == 4 - len(checked)


def test_the_command_prints_its_findings(experiment_file, tmp_path):
    from typer.testing import CliRunner

    from lynceus_lab.cli import lab

    store, experiment = Store(tmp_path / "store"), load_experiment(experiment_file)
    run_cells(experiment.cells(), InProcess(), store)
    as_of_other_code(store, experiment.cells(), "0123456789ab")
    printed = CliRunner().invoke(lab, ["verify", str(experiment_file), "--store", str(store.folder)])
    assert printed.exit_code == 0
    assert "settings had only traces of other code" in printed.output
    changed(experiment_file, "title: A toy", "title: Another toy")
    refused = CliRunner().invoke(lab, ["verify", str(experiment_file), "--per", "0"])
    assert refused.exit_code != 0


def test_a_peer_depends_on_its_own_library_only():
    source = Path(fingerprint_module.__file__).with_name("peers").joinpath("server.py").read_text()
    other = source.replace("min_samples_leaf=1", "min_samples_leaf=2")
    assert other != source
    assert fingerprint_module._of_library(other, "botorch") == fingerprint_module._of_library(source, "botorch")
    assert fingerprint_module._of_library(other, "smac") != fingerprint_module._of_library(source, "smac")
