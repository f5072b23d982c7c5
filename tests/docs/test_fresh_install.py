"""What a user gets who installs Lynceus alone: everything but the extras works, and a missing extra is one sentence."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from doc_blocks import steps
from installs import Installed, must, source_tree
from readers import GUIDE, README, ROOT, check_answer, check_guide, follow, user_environment

MOST_MB = 350
JOB = "name: one\nrun: 'true'\nspace: {x: [1, 2]}\nprice: 1\nbudget: {max_trials: 1}\n"
RAY_JOB = JOB.replace("name: one", "name: on-ray") + "executor: {kind: ray}\n"
APPRISE = """
from lynceus.notify.receivers import Apprise
Apprise("chat", "json://127.0.0.1").send(None)
"""
FRAME = """
import lynceus
space = lynceus.Space.build([lynceus.Categorical("x", [1, 2])], price="1")
lynceus.create_study(space=space, budget="$1").trials_dataframe()
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Lynceus from its wheel, without extras, in an environment of its own."""
    folder = tmp_path_factory.mktemp("install")
    source = source_tree(folder / "source")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    fresh = Installed(folder / "venv" / "bin")
    must(fresh.run("pip", "wheel", "--no-deps", "--wheel-dir", str(folder), ".", folder=source))
    (wheel,) = folder.glob("lynceus_opt-*.whl")
    must(fresh.run("pip", "install", "--no-compile", str(wheel), folder=folder, timeout_s=600))
    shutil.rmtree(source)
    return fresh


@pytest.mark.slow
def test_the_wheel_alone_serves_the_whole_guide_the_demo_and_the_replay(installed: Installed, tmp_path: Path) -> None:
    listed = must(installed.run("pip", "list", "--format", "freeze", folder=tmp_path)).lower()
    assert not re.search(r"^(fastapi|matplotlib|pyarrow|ray|psycopg|apprise|pandas|pytest)==", listed, re.MULTILINE)
    assert follow(steps(GUIDE), tmp_path, installed.environment) == 1
    check_guide(tmp_path, installed.environment)
    assert "Recommendation" in must(installed.run("lynceus", "demo", "--fast", folder=tmp_path))
    assert '"example/nightly-etl"' in must(installed.run("lynceus", "replay", "--list", "-o", "json", folder=tmp_path))
    must(
        installed.run(
            "python", "-c", "import lynceus; [getattr(lynceus, name) for name in lynceus.__all__]", folder=tmp_path
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "feature", "extra"),
    [
        (["lynceus", "dashboard", "sqlite:///lynceus.db"], "The dashboard and its API", "web"),
        (["lynceus", "status", "--storage", "postgresql://me@127.0.0.1/studies"], "PostgreSQL storages", "postgres"),
        (["lynceus", "export", "one", "--to", "parquet", "--file", "t.parquet"], "Parquet files", "parquet"),
        (["lynceus", "replay", "table.yaml"], "Parquet tables", "parquet"),
        (["lynceus", "run", "ray.yaml", "-y"], "Trials on Ray", "ray"),
        (["lynceus", "lab", "run", "--quick"], "Traces of the lab", "lab"),
        (["python", "-c", FRAME], "Data frames", "pandas"),
        (["python", "-c", APPRISE], "Messages through apprise", "notify"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_missing_extra_is_one_sentence(
    installed: Installed, tmp_path: Path, command: list[str], feature: str, extra: str
) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "ray.yaml").write_text(RAY_JOB)
    (tmp_path / "table.yaml").write_text("table: t.parquet\nparameters: [x]\n")
    (tmp_path / "t.parquet").touch()
    must(installed.run("lynceus", "run", "job.yaml", "-y", folder=tmp_path))
    done = installed.run(*command, folder=tmp_path)
    sentence = f"{feature} need an optional package: pip install 'lynceus-opt[{extra}]'"
    if command[0] == "lynceus":
        assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"lynceus: {sentence}")
        assert "Traceback" not in done.stderr
    else:
        assert done.stderr.splitlines()[-1] == f"lynceus.errors.MissingExtraError: {sentence}"


@pytest.mark.slow
def test_the_demo_and_the_list_of_executors_name_what_is_missing(installed: Installed, tmp_path: Path) -> None:
    shown = must(installed.run("lynceus", "demo", "--policy", "random+timeouts", "--budget", "$2", folder=tmp_path))
    assert "Plots need an optional package: pip install 'lynceus-opt[plot]'" in shown
    listed = " ".join(must(installed.run("lynceus", "plugins", "-o", "json", folder=tmp_path)).split())
    assert "Trials on Ray need an optional package: pip install 'lynceus-opt[ray]'" in listed


@pytest.mark.slow
def test_what_the_sentence_says_installs_the_extra(installed: Installed, tmp_path: Path) -> None:
    without = installed.run("python", "-c", "import lynceus.server.app", folder=tmp_path)
    (line,) = re.findall(r"pip install '(lynceus-opt\[web\])'", without.stderr)
    must(installed.run("pip", "install", line, folder=tmp_path, timeout_s=600))
    must(installed.run("python", "-c", "import lynceus.server.app", folder=tmp_path))
    must(installed.run("pip", "uninstall", "--yes", "fastapi", "uvicorn", folder=tmp_path))


@pytest.mark.slow
def test_make_demo_in_a_fresh_clone_is_light_and_the_readme_follows(tmp_path: Path) -> None:
    """All blocks of README with the real `make demo`; only `make test` is left out, which would run this test."""
    clone = source_tree(tmp_path / "lynceus")
    environment = user_environment(Path("/usr/bin")) | {"PYTHON": sys.executable}
    first = subprocess.run(
        ["make", "demo"], cwd=clone, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    shown = must(first)
    assert (
        shown.index("Creating the environment")
        < shown.index("Installing Lynceus")
        < shown.index("Installing collected")
    )
    assert "Recommendation" in shown
    size_mb = sum(path.lstat().st_size for path in (clone / ".venv").rglob("*") if not path.is_symlink()) / 1e6
    assert size_mb < MOST_MB
    again = must(
        subprocess.run(["make", "-n", "demo"], cwd=clone, env=environment, capture_output=True, text=True, check=False)
    )
    assert "pip" not in again
    dry_test = 'make() { case "$1" in test) command make --dry-run test;; *) command make "$@";; esac; }'
    assert follow(steps(README), clone, environment, before=dry_test) == 1
    check_answer(clone, user_environment(clone / ".venv" / "bin"))


@pytest.mark.parametrize(
    ("stamps", "stale", "demo", "test"),
    [
        ([], False, "-e .", "-e '.[dev]'"),
        ([".demo-installed"], False, None, "-e '.[dev]'"),
        ([".demo-installed", ".installed"], False, None, None),
        ([".demo-installed", ".installed"], True, "-e .", "-e '.[dev]'"),
    ],
    ids=["nothing", "demo", "both", "changed since"],
)
def test_the_demo_installs_little_and_the_tests_add_to_it(
    tmp_path: Path, stamps: list[str], stale: bool, demo: str | None, test: str | None
) -> None:
    for place, name in enumerate(("Makefile", "setup.py", "constraints.txt", "pyproject.toml")):
        shutil.copy(ROOT / name, tmp_path)
        os.utime(tmp_path / name, (1000 + place, 1000 + place))
    (tmp_path / ".venv").mkdir()
    for stamp in stamps:
        (tmp_path / ".venv" / stamp).touch()
        os.utime(tmp_path / ".venv" / stamp, (2000, 2000))
    if stale:
        os.utime(tmp_path / "pyproject.toml", (3000, 3000))

    def installs(target: str) -> list[str]:
        command = ["make", "--dry-run", target]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return re.findall(r"^\.venv/bin/pip install .* (-e .*)$", done.stdout, re.MULTILINE)

    assert installs("demo") == ([demo] if demo else [])
    assert installs("lint") == ([test] if test else [])
