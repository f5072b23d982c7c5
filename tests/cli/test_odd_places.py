"""Commands in odd places: closed streams, deleted folders, other encodings, files that are none. One sentence, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli_jobs import JOB

pytestmark = pytest.mark.usefixtures("here")


def run(command: str, **variables: str) -> tuple[int, str]:
    """A shell command with `$LYNCEUS` in it: its exit code, and what it printed on standard error."""
    known = os.environ | {"LYNCEUS": f"{sys.executable} -m lynceus.cli"} | variables
    ended = subprocess.run(["bash", "-c", command], env=known, capture_output=True, timeout=120, check=False)
    error = ended.stderr.decode("utf-8", "replace")
    assert "Traceback" not in error, error
    return ended.returncode, error


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["check", "\udcff.yaml"], "is not UTF-8 text"),
        (["trials", "toy", "--where", "\udcff"], "is not UTF-8 text"),
        (["check", "/dev/zero"], "a pipe, a device"),
        (["check", "/"], "this is a folder"),
        (["import", "job.yaml", "/dev/zero"], "a pipe, a device"),
        (["import", "job.yaml", "pipe"], "a pipe, a device"),
        (["import", "job.yaml", "huge.csv"], "more than"),
        (["prices", "import", "/dev/zero", "--cloud", "aws"], "a pipe, a device"),
        (["run", "job.yaml", "-y", "--seed", "9223372036854775808"], "--seed"),
        (["run", "job.yaml", "-y", "--seed=-1"], "--seed"),
        (["status", "--storage", "postgresql://u:hush-hush@h:99999/d"], "port"),
        (["status", "n" * 5000], "there is no such file"),
    ],
)
def test_one_sentence(lynceus, here: Path, command: list[str], said: str) -> None:
    os.mkfifo(here / "pipe")
    with (here / "huge.csv").open("wb") as file:
        file.truncate(10 << 30)  # sparse: it takes no room
    code, _, err = lynceus(*command)
    assert (code, said in err) == (2, True), err
    assert "hush-hush" not in err


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("$LYNCEUS check job.yaml > /dev/full", 4, "No space left on device"),
        ("$LYNCEUS run job.yaml <&-", 2, "add -y to go ahead"),
        ("mkdir gone; cd gone; rmdir ../gone; $LYNCEUS init ../x.yaml -y", 4, "the current folder no longer exists"),
        ("LYNCEUS_STORAGE=$'sqlite:///\\xff' $LYNCEUS check job.yaml >&-", 2, "LYNCEUS_STORAGE"),
        ("env -u HOME PYTHONIOENCODING=ascii LC_ALL=C $LYNCEUS plan job.yaml", 0, ""),
    ],
)
def test_odd_streams_and_folders(command: str, code: int, said: str) -> None:
    ended, error = run(command)
    assert (ended, said in error) == (code, True), error


def test_a_reader_that_leaves_is_no_error() -> None:
    code, error = run("$LYNCEUS check --schema | head -c1 > /dev/null; exit 0")
    assert (code, error) == (0, "")


@pytest.mark.parametrize("seed", ["9223372036854775808", "-1"])
def test_a_seed_that_no_storage_can_hold_is_refused(lynceus, here: Path, seed: str) -> None:
    (here / "job.yaml").write_text(JOB + f"seed: {seed}\n")
    code, _, err = lynceus("check", "job.yaml")
    assert (code, err.count("\n"), "seed: got" in err) == (2, 1, True), err


def test_the_password_of_a_storage_is_not_stored_with_its_study(lynceus, here: Path) -> None:
    (here / "job.yaml").write_text(JOB + "storage: postgresql://me:hush-hush@nowhere.invalid/d?sslpassword=hush-hush\n")
    printed = "".join(map(str, lynceus("run", "job.yaml", "-y", "--storage", "sqlite:///s.db")))
    printed += "".join(map(str, lynceus("check", "job.yaml"))) + "".join(map(str, lynceus("plan", "job.yaml")))
    assert "hush-hush" not in printed
    kept = b"".join(path.read_bytes() for path in here.glob("s.db*"))
    assert b"nowhere.invalid" in kept
    assert b"hush-hush" not in kept


def test_short_secrets_are_refused(lynceus, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "job.yaml").write_text(JOB + "secrets: {TOKEN: env:MY_TOKEN}\n")
    monkeypatch.setenv("MY_TOKEN", "p4ss!")
    code, out, err = lynceus("run", "job.yaml", "-y")
    assert (code, err.count("\n"), "secrets.TOKEN: its value has fewer than 6 characters" in err) == (2, 1, True)
    assert "p4ss!" not in out + err
    assert not (here / "lynceus.db").exists()
