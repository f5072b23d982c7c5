"""Policies of other packages: found by entry points, only when needed, and broken ones are named."""

import importlib.metadata
import subprocess
import sys
from dataclasses import dataclass

import pytest

from lynceus.errors import InputError
from lynceus.models.state import State
from lynceus.policy import plugins
from lynceus.policy.interfaces import Chooser
from lynceus.policy.planners.simple import Uniform
from lynceus.policy.plugins import PolicyPlugin, Row, policy_plugins
from lynceus.policy.policy import Policy
from lynceus.policy.policy_file import compose, describe
from lynceus.policy.presets import PRESETS, all_presets, preset
from lynceus.policy.timeouts.by_name import TIMEOUTS, all_timeouts, timeout_named
from lynceus.policy.timeouts.timeout import Timeout
from lynceus.trial.order import Plan


@dataclass(frozen=True)
class LastRow:
    """The open row with the largest number."""

    offset: int = 0

    def __call__(self, state: State, surrogate: object, seed: int) -> Plan | None:
        return None


PLUGIN = PolicyPlugin(
    presets={
        "last": Row("the last row", lambda lookahead, timeout: Policy("last", LastRow(), timeout=timeout or Timeout())),
        "sweep": Row("cannot replace a built-in preset", lambda lookahead, timeout: Policy("sweep", LastRow())),
    },
    timeouts={"forever": Timeout(), "tg": Timeout()},
    parts={Chooser: (LastRow, Uniform)},
    former_names={"final-row": "last-row"},
    former_fields={("last-row", "from_the_end", True): {"offset": 1}},
)


@pytest.fixture
def installed(monkeypatch):
    """Replaces the installed plugins by those of an entry point."""

    def install(value: str) -> None:
        point = importlib.metadata.EntryPoint("mine", value, plugins.GROUP)
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [point])
        policy_plugins.cache_clear()

    yield install
    monkeypatch.undo()
    policy_plugins.cache_clear()


def test_a_plugin_adds_presets_timeouts_and_parts(installed):
    installed(f"{__name__}:PLUGIN") if __name__ in sys.modules else pytest.skip("the test module has no import name")
    assert list(all_presets()) == [*PRESETS, "last"]
    assert preset("last").choose == LastRow()
    assert preset("last", timeout="forever").timeout == Timeout()
    assert list(all_timeouts()) == [*TIMEOUTS, "forever"]
    assert timeout_named("tg") == TIMEOUTS["tg"]
    policy = Policy("mine", LastRow(offset=2))
    assert compose(describe(policy)) == policy
    assert compose({"choose": {"kind": "final-row", "from_the_end": True}}).choose == LastRow(offset=1)
    assert preset("sweep") == PRESETS["sweep"].make(None, None)
    assert isinstance(compose({"choose": "uniform"}).choose, Uniform)


def test_a_broken_plugin_is_named_and_built_in_names_still_work(installed):
    installed("lynceus_is_not_here:PLUGIN")
    assert preset("sweep").name == "sweep"
    assert compose({"choose": "uniform", "timeout": "tg"}).timeout == TIMEOUTS["tg"]
    with pytest.raises(InputError, match=r"The policy plugin 'mine' \(lynceus_is_not_here:PLUGIN\) cannot be loaded"):
        preset("last")


def test_something_else_than_a_plugin_is_an_error(installed):
    installed("lynceus.policy.plugins:GROUP")
    with pytest.raises(InputError, match="is not a PolicyPlugin"):
        all_presets()


def test_built_in_policies_load_no_plugin():
    script = """
import sys
from lynceus.policy.policy_file import compose, describe
from lynceus.policy.presets import PRESETS, preset
for name in PRESETS:
    assert compose(describe(preset(name, timeout="tg"))) == preset(name, timeout="tg")
print([name for name in sys.modules if name.startswith("lynceus_lab")])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
