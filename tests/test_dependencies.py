"""What a fresh machine installs is what was tested, and nothing of it has a known vulnerability."""

from __future__ import annotations

import json
import re
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

pytest.importorskip("packaging")
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from lynceus.version import DISTRIBUTION

ROOT = Path(__file__).parents[1]
EXTRAS = ("plot", "parquet", "pandas", "postgres", "web", "notify", "dev")
AUDIT = ROOT / ".venv-audit" / "bin" / "pip-audit"


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    stated = [line.split("#")[0].strip() for line in lines]
    assert all(re.fullmatch(r"[\w.\-]+==[\w.\-+!]+", line) for line in stated if line), (
        "constraints.txt pins exact versions"
    )
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in stated if line)}


def installed_closure(root: str, extras: tuple[str, ...]) -> dict[str, str]:
    """Every distribution that an install with these extras brings along, with its version."""
    found: dict[str, str] = {}
    seen: set[tuple[str, tuple[str, ...]]] = set()
    waiting = [(root, extras)]
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # for another platform or Python
        found[canonicalize_name(name)] = package.version
        for text in package.requires or ():
            requirement = Requirement(text)
            applies = [
                requirement.marker is None or requirement.marker.evaluate({"extra": one}) for one in (*wanted, "")
            ]
            if any(applies):
                waiting.append((requirement.name, tuple(sorted(requirement.extras))))
    return found


def test_every_dependency_is_pinned_to_the_version_that_is_tested() -> None:
    pinned = pins()
    installed = {
        name: version for name, version in installed_closure(DISTRIBUTION, EXTRAS).items() if name != DISTRIBUTION
    }
    assert len(installed) > 50
    assert not {name for name in installed if name not in pinned}, "add them to constraints.txt"
    assert {name: pinned[name] for name in installed} == installed


def test_no_pin_is_a_release_candidate() -> None:
    """Parts of OpenTelemetry's stable SDK have only beta versions."""
    candidates = [name for name, version in pins().items() if Version(version).is_prerelease]
    assert not [name for name in candidates if not name.startswith("opentelemetry-")]


@pytest.mark.slow
def test_no_pinned_version_has_a_known_vulnerability() -> None:
    if not AUDIT.exists():
        pytest.skip("pip-audit is not installed; run 'make audit'")
    command = [
        AUDIT,
        "-r",
        "constraints.txt",
        "--no-deps",
        "--disable-pip",
        "--format",
        "json",
        "--progress-spinner",
        "off",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    if not done.stdout.strip():
        pytest.skip(f"the advisories cannot be read here: {done.stderr.strip().splitlines()[-1]}")
    dependencies = json.loads(done.stdout)["dependencies"]
    audited = [one for one in dependencies if "vulns" in one]
    if not audited:
        pytest.skip("the package index here serves no advisories, so nothing was audited")
    assert not {one["name"]: [each["id"] for each in one["vulns"]] for one in audited if one["vulns"]}
    assert not [one["name"] for one in dependencies if "vulns" not in one], "these could not be audited"
