"""Executors of other packages, through real entry points of an installed package, valid and broken ones."""

import json
import sys
from pathlib import Path

import pytest

from lynceus.cli.app import main
from lynceus.errors import InputError
from lynceus.executors.registry import BUILT_IN, executor_plugin, executor_plugins
from lynceus.jobfile.executor import executor_of
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare

MODULE = '''
from lynceus.errors import InputError
from lynceus.executors.local import LocalExecutor
from lynceus.executors.plugin import Plugin
from lynceus.problem.fields import Section


class Options(Section):
    """Where on the moon."""

    crater: str
    depth: int = 3


def check(options, space):
    if options.crater not in ("Tycho", "Plato"):
        raise InputError(f"crater: got {options.crater!r}; expected Tycho or Plato.")


def make(context, options):
    executor = LocalExecutor(context.problem, context.job, context.root / options.crater)
    executor.depth = options.depth
    return executor


PLUGIN = Plugin(make, Options, check, about="somewhere on the moon")
NOT_A_PLUGIN = 42
'''

POINTS = """\
[lynceus.executors]
moon = moon_executor:PLUGIN
missing = no_such_module:PLUGIN
wrong = moon_executor:NOT_A_PLUGIN
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
    """A package with entry points, as an installer writes it."""
    site = tmp_path / "site"
    info = site / "moonshot-2.5.dist-info"
    info.mkdir(parents=True)
    (site / "moon_executor.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: moonshot\nVersion: 2.5\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "moon_executor", raising=False)


def test_plugins_are_listed_with_package_and_version_and_the_problem_of_broken_ones() -> None:
    found = {one.name: one for one in executor_plugins()}
    assert list(found)[: len(BUILT_IN)] == list(BUILT_IN)
    assert {found[name].package for name in BUILT_IN} == {"lynceus"}, "a package cannot replace a built-in executor"
    moon = found["moon"]
    assert (moon.package, moon.version, moon.about, moon.problem) == ("moonshot", "2.5", "somewhere on the moon", "")
    assert found["missing"].problem == "No module named 'no_such_module'."
    assert found["wrong"].problem == "moon_executor:NOT_A_PLUGIN is a int, not a lynceus.executors.plugin.Plugin."
    assert found["empty"].problem == "module 'moon_executor' has no attribute 'NOTHING'."
    assert {found[name].problem for name in BUILT_IN} == {""}


def test_an_executor_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lynceus.executors.ray.executor.find_spec", lambda name: None)
    (ray,) = (one for one in executor_plugins() if one.name == "ray")
    assert ray.problem == "Trials on Ray need an optional package: pip install 'lynceus-opt[ray]'."


def test_lynceus_plugins_shows_them(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_a_plugin_receives_its_options_from_the_job_file(tmp_path: Path) -> None:
    prepared = prepare(Job.parse(JOB + "executor: {kind: moon, crater: Tycho, depth: 5}", tmp_path))
    with executor_of(prepared, {}) as executor:
        assert executor.depth == 5  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("executor", "message"),
    [
        ("moon", "job.yaml:6: executor.crater: the field 'crater' is missing; add it."),
        (
            "{kind: moon, crater: Tycho, dept: 4}",
            "job.yaml:6: executor.dept: there is no field 'dept'; did you mean 'depth'?",
        ),
        (
            "{kind: moon, crater: Tycho, depth: x}",
            "job.yaml:6: executor.depth: got 'x'; expected a whole number.",
        ),
        ("{kind: moon, crater: Mare}", "job.yaml:6: executor: crater: got 'Mare'; expected Tycho or Plato."),
        (
            "missing",
            "executor.kind: The executor 'missing' of moonshot 2.5 cannot be used: No module named 'no_such_module'.",
        ),
    ],
)
def test_errors_name_the_line_and_the_field(tmp_path: Path, executor: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        prepare(Job.parse(JOB + f"executor: {executor}", tmp_path))
    assert message in str(caught.value)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(InputError, match=r"There is no executor 'mon'\. Did you mean 'moon'"):
        executor_plugin("mon")
