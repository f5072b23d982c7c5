"""Executors of other packages: real entry points of installed packages, good and broken ones."""

import json
import sys
from pathlib import Path

import pytest

from lynceus.cli import main
from lynceus.errors import InputError
from lynceus.job import Job
from lynceus.job.execution import executor_of
from lynceus.job.prepare import prepare
from lynceus.plugins import BUILT_IN, executor_plugin, executor_plugins

MODULE = '''
from lynceus.document import Section
from lynceus.errors import InputError
from lynceus.executor.local import LocalExecutor
from lynceus.executor.plugin import Plugin


class Options(Section):
    """Where on the moon."""

    crater: str
    depth: int = 3


def check(options, space):
    if options.crater not in ("Tycho", "Plato"):
        raise InputError(f"crater: {options.crater!r} came; known are Tycho, Plato.")


def make(setting, options):
    executor = LocalExecutor(setting.problem, setting.job, setting.root / options.crater)
    executor.depth = options.depth
    return executor


PLUGIN = Plugin(make, Options, check, about="somewhere on the moon")
NOT_ONE = 42
'''

POINTS = """\
[lynceus.executors]
moon = moon_executor:PLUGIN
lost = no_such_module:PLUGIN
odd = moon_executor:NOT_ONE
empty = moon_executor:NOTHING
local = moon_executor:PLUGIN
"""

JOB = """\
name: far
run: 'true'
space: {n: [1, 2]}
price: 1.0
budget: {max_trials: 2}
"""


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with entry points, as an installer would leave it."""
    site = tmp_path / "site"
    info = site / "moonshot-2.5.dist-info"
    info.mkdir(parents=True)
    (site / "moon_executor.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: moonshot\nVersion: 2.5\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "moon_executor", raising=False)


def test_all_are_listed_with_package_and_version_and_a_reason_for_broken_ones() -> None:
    found = {one.name: one for one in executor_plugins()}
    assert list(found)[: len(BUILT_IN)] == list(BUILT_IN)
    assert {found[name].package for name in BUILT_IN} == {"lynceus"}, "nobody takes the name of a built-in executor"
    moon = found["moon"]
    assert (moon.package, moon.version, moon.about, moon.problem) == ("moonshot", "2.5", "somewhere on the moon", "")
    assert found["lost"].problem == "No module named 'no_such_module'."
    assert found["odd"].problem == "moon_executor:NOT_ONE is a int, not a lynceus.executor.plugin.Plugin."
    assert found["empty"].problem == "module 'moon_executor' has no attribute 'NOTHING'."
    assert {found[name].problem for name in BUILT_IN} == {""}


def test_the_command_shows_them(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for output in ("json", "table"):
        monkeypatch.setattr(sys, "argv", ["lynceus", "plugins", "-o", output])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        out = capsys.readouterr().out
        if output == "json":
            assert [one["version"] for one in json.loads(out) if one["name"] == "moon"] == ["2.5"]
        else:
            assert "moonshot" in out
            assert "somewhere on the moon" in " ".join(out.split())
            assert "No module named" in out


def test_a_job_file_reaches_a_plugin_with_checked_options(tmp_path: Path) -> None:
    prepared = prepare(Job.parse(JOB + "executor: {kind: moon, crater: Tycho, depth: 5}", tmp_path))
    with executor_of(prepared, {}) as executor:
        assert executor.depth == 5  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("executor", "words"),
    [
        ("moon", "job.yaml:6: executor.crater: the field 'crater' is missing; add it."),
        (
            "{kind: moon, crater: Tycho, dept: 4}",
            "job.yaml:6: executor.dept: there is no field 'dept'; did you mean 'depth'?",
        ),
        (
            "{kind: moon, crater: Tycho, depth: x}",
            "job.yaml:6: executor.depth: 'x' came, but a whole number is needed.",
        ),
        ("{kind: moon, crater: Mare}", "job.yaml:6: executor: crater: 'Mare' came; known are Tycho, Plato."),
        (
            "lost",
            "executor.kind: The executor 'lost' of moonshot 2.5 cannot be used: No module named 'no_such_module'.",
        ),
    ],
)
def test_mistakes_name_the_place(tmp_path: Path, executor: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        prepare(Job.parse(JOB + f"executor: {executor}", tmp_path))
    assert words in str(caught.value)


def test_an_unknown_name_hints_at_the_nearest() -> None:
    with pytest.raises(InputError, match=r"There is no executor 'mon'\. Did you mean 'moon'"):
        executor_plugin("mon")
