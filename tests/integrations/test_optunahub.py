"""The package for OptunaHub has its layout and loads."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from lynceus.integrations.optuna import LynceusSampler

ROOT = Path(__file__).parents[2]
REGISTRY = ROOT / "deploy" / "optunahub"
PACKAGE = REGISTRY / "package" / "samplers" / "lynceus"


def test_the_package_has_the_files_and_the_front_matter_of_the_registry() -> None:
    names = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert names == {"README.md", "LICENSE", "__init__.py", "example.py", "requirements.txt", "sampler.py"}
    _, front, text = (PACKAGE / "README.md").read_text().split("---\n", 2)
    assert set(yaml.safe_load(front)) == {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert yaml.safe_load(front)["license"] == "Apache-2.0"
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## Abstract", "## APIs", "## Installation", "## Example"]


def test_the_package_loads() -> None:
    spec = importlib.util.spec_from_file_location(
        "hub", PACKAGE / "__init__.py", submodule_search_locations=[str(PACKAGE)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["hub"] = package
    spec.loader.exec_module(package)
    assert package.LynceusSampler is LynceusSampler


@pytest.mark.slow
def test_the_real_optunahub_loads_it_and_its_example_runs() -> None:
    python = ROOT / ".venv-optuna" / "bin" / "python"
    if not python.exists():
        pytest.skip("OptunaHub is not installed; make optuna-tools installs it")
    script = (PACKAGE / "example.py").read_text()
    local = f"load_local_module('samplers/lynceus', registry_root={str(REGISTRY / 'package')!r})"
    assert script.count('load_module("samplers/lynceus")') == 1
    script = script.replace('load_module("samplers/lynceus")', local)
    done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    assert "{'nodes': 3}" in done.stdout
