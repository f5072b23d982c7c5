"""The wheel and the source distribution of `make wheel`, installed from an index into empty environments, far from the repository."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

from installs import must
from lynceus.version import DISTRIBUTION
from ports import free_ports
from readers import ROOT, user_environment

pytestmark = pytest.mark.slow

DIST, TOOLS = ROOT / "dist", ROOT / ".venv-build" / "bin"
PYTHONS = ("3.11", "3.12", "3.13")
SHELL = ("bash", "cat", "dirname", "env", "ls", "mkdir", "nice", "realpath", "rm", "sh", "sleep", "uname", "which")
"""What a small machine has; above all, no compiler."""
JOB = """\
name: live
run: |
  sleep "0.0${pause}"
space: {pause: [1, 2, 3, 4], level: [1, 2]}
price: 0.05 * pause
constraints: ["runtime <= 30s"]
budget: {cost: 0.05 USD, max_trials: 4}
"""


@dataclass(frozen=True)
class Machine:
    """A folder with an environment and an index, and no compiler."""

    folder: Path
    index: str
    python: Path

    @property
    def environment(self) -> dict[str, str]:
        kept = user_environment(self.folder / "venv" / "bin")
        path = f"{self.folder / 'venv' / 'bin'}{os.pathsep}{self.folder / 'bin'}"
        more = {
            "PATH": path,
            "CC": "/no/compiler",
            "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
            "HOME": str(self.folder),
        }
        return {name: value for name, value in kept.items() if name != "PYTHONPATH"} | more

    def run(self, *command: str | Path, timeout_s: float = 600) -> subprocess.CompletedProcess[str]:
        found = shutil.which(str(command[0]), path=self.environment["PATH"]) or str(command[0])
        return subprocess.run(
            [found, *map(str, command[1:])],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def install(self, *what: str) -> None:
        must(self.run("pip", "install", "--no-compile", "--extra-index-url", self.index, *what))


def packages() -> tuple[Path, Path]:
    """The wheel and the source distribution."""
    wheels, sources = list(DIST.glob("*.whl")), list(DIST.glob("*.tar.gz"))
    if len(wheels) != 1 or len(sources) != 1:
        pytest.skip("there are no packages in dist/: make wheel")
    return wheels[0], sources[0]


def local_index(folder: Path, *files: Path) -> str:
    """A package index as a folder: a page per project with links (PEP 503)."""
    project = folder / "simple" / DISTRIBUTION
    project.mkdir(parents=True)
    for file in files:
        shutil.copy(file, project)
    links = "".join(f'<a href="{html.escape(file.name)}">{html.escape(file.name)}</a>\n' for file in files)
    (project / "index.html").write_text(f"<!DOCTYPE html><html><body>\n{links}</body></html>\n")
    return f"file://{folder / 'simple'}"


def interpreter(version: str) -> Path:
    """A Python of that version, on the PATH or installed by pyenv."""
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return Path(sys.executable)
    managed = sorted(
        Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob(f"versions/{version}.*/bin/python")
    )
    for found in [*filter(None, [shutil.which(f"python{version}")]), *managed]:  # a shim of pyenv may refuse to run
        if subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0:
            return Path(found)
    pytest.skip(f"Python {version} is not installed here")


def machine(folder: Path, version: str, *files: Path) -> Machine:
    made = Machine(folder, local_index(folder, *files), interpreter(version))
    (folder / "bin").mkdir()
    for name in SHELL:
        if (program := shutil.which(name)) is not None:
            (folder / "bin" / name).symlink_to(program)
    subprocess.run([made.python, "-m", "venv", folder / "venv"], check=True)
    assert shutil.which("cc", path=made.environment["PATH"]) is None
    return made


def size_mb(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_symlink()) / 1e6


def check_searches(one: Machine) -> None:
    """The demo and a search with real processes."""
    assert "Recommendation" in must(one.run("lynceus", "demo", "--fast"))
    (one.folder / "job.yaml").write_text(JOB)
    must(one.run("lynceus", "run", "job.yaml", "-y"))
    assert json.loads(must(one.run("lynceus", "best", "live", "-o", "json")))["params"]["pause"] in (1, 2, 3, 4)


def check_dashboard(one: Machine) -> None:
    """The dashboard answers, and shows the study."""
    (port,) = free_ports(1)
    command = [one.folder / "venv" / "bin" / "lynceus", "dashboard", "sqlite:///lynceus.db", "--port", str(port)]
    with subprocess.Popen(command, cwd=one.folder, env=one.environment, stdout=subprocess.DEVNULL) as server:
        try:
            assert b"<html" in answer(server, f"http://127.0.0.1:{port}/")
            (study,) = json.loads(answer(server, f"http://127.0.0.1:{port}/api/v1/studies"))["studies"]
            assert study["name"] == "live"
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(30)


def answer(server: subprocess.Popen[bytes], url: str) -> bytes:
    """What a server answers, however long a busy machine takes to start it."""
    for _ in range(2000):
        try:
            with urllib.request.urlopen(url, timeout=60) as page:
                found: bytes = page.read()
                return found
        except OSError:
            assert server.poll() is None
            time.sleep(0.1)
    pytest.fail(f"{url} did not answer")


def kernels(one: Machine) -> str:
    found = json.loads(must(one.run("lynceus", "doctor", "-o", "json")))
    return next(row["state"] for row in found if row["subject"] == "compiled kernels")


@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_works_without_a_compiler(version: str, tmp_path: Path) -> None:
    wheel, _ = packages()
    assert re.search(r"-cp311-abi3-manylinux_\d+_\d+_\w+\.whl$", wheel.name)
    one = machine(tmp_path, version, wheel)
    empty_mb, start = size_mb(tmp_path / "venv"), time.monotonic()
    one.install(DISTRIBUTION)
    installed_mb, installed_s = size_mb(tmp_path / "venv") - empty_mb, time.monotonic() - start
    check_searches(one)
    one.install(f"{DISTRIBUTION}[web]")
    check_dashboard(one)
    spent_s = time.monotonic() - start
    assert kernels(one) == "ok"
    assert "No broken requirements found" in must(one.run("pip", "check"))
    print(
        f"\nPython {version}: wheel {wheel.stat().st_size / 1e6:.1f} MB, installed {installed_mb:.0f} MB in {installed_s:.0f} s; "
        f"with demo, live study and dashboard {spent_s:.0f} s"
    )


def test_the_source_distribution_needs_no_compiler_either(tmp_path: Path) -> None:
    _, source = packages()
    one = machine(tmp_path, PYTHONS[0], source)
    one.install(DISTRIBUTION)
    assert kernels(one) == "absent"
    check_searches(one)


def test_pipx_and_uvx_install_it_in_one_line(tmp_path: Path) -> None:
    wheel, _ = packages()
    one = machine(tmp_path, PYTHONS[0], wheel)
    must(
        one.run(
            TOOLS / "pipx", "install", "--python", one.python, f"--pip-args=--extra-index-url {one.index}", DISTRIBUTION
        )
    )
    assert "lynceus" in must(one.run(tmp_path / ".local" / "bin" / "lynceus", "--version"))
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    indexes = [
        "--extra-index-url",
        one.index,
        *(["--index-url", configured.stdout.strip()] if configured.stdout else []),
    ]
    shown = one.run(
        TOOLS / "uvx", "--python", one.python, *indexes, "--from", DISTRIBUTION, "lynceus", "demo", "--fast"
    )
    assert "Recommendation" in must(shown)


def test_what_an_installation_consists_of_is_listed(tmp_path: Path) -> None:
    """A software bill of materials (CycloneDX) of the wheel and everything that it needs, beside the packages."""
    wheel, _ = packages()
    one = machine(tmp_path, PYTHONS[0], wheel)
    one.install(DISTRIBUTION)
    listed = DIST / f"{wheel.name.split('-')[0]}.cdx.json"
    must(one.run(TOOLS / "cyclonedx-py", "environment", tmp_path / "venv" / "bin" / "python", "--output-file", listed))
    names = {part["name"]: part for part in json.loads(listed.read_text())["components"]}
    assert {DISTRIBUTION, "numpy", "scipy", "sqlalchemy"} <= {name.lower() for name in names}
    assert all(part["version"] for part in names.values())
