"""Scratch directories: what comes in stays inside the working directory, and removing one touches nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lynceus.executors.supervisor import scratch
from lynceus.executors.supervisor.scratch import NoMatchError, ScratchError, bring_in, matches, remove_tree


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory with files, hidden ones, a run directory, and links inside and out of it."""
    work = tmp_path / "work"
    for name in (
        "src/deep/c.py",
        "src/a.py",
        "data/big.csv",
        ".hidden/x",
        "runs/study/0/request.json",
        "lynceus-run-1/x",
    ):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(name)
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("key")
    (work / "tool").write_text("#!/bin/sh\n")
    (work / "tool").chmod(0o555)
    (work / "alias").symlink_to("src")
    return work


def brought(folder: Path, copy: list[str], link: list[str] | None = None, without: tuple[str, ...] = ("runs",)) -> Path:
    target = folder.parent / "target"
    target.mkdir()
    bring_in(str(folder), str(target), copy, link or [], without)
    return target


def names(target: Path) -> set[str]:
    return {str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir() or path.is_symlink()}


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("src", ["src"]),
        ("./src/", ["src"]),
        ("src/*.py", ["src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/deep/c.py"]),
        ("**", ["alias", "data", "src", "tool", "data/big.csv", "src/a.py", "src/deep", "src/deep/c.py"]),
        ("*", ["alias", "data", "src", "tool"]),
        (".", [".hidden", "alias", "data", "src", "tool"]),
        ("[dt]*", ["data", "tool"]),
        (".h*/x", [".hidden/x"]),
        ("alias/a.py", ["alias/a.py"]),
    ],
)
def test_patterns_name_paths_as_in_a_shell(folder: Path, pattern: str, found: list[str]) -> None:
    assert matches(str(folder), pattern, ("runs",)) == found


@pytest.mark.parametrize("pattern", ["nope", "src/*.txt", "tool/x", "runs", "runs/study", "lynceus-run-*"])
def test_a_pattern_that_names_nothing_is_an_error(folder: Path, pattern: str) -> None:
    with pytest.raises(NoMatchError, match=r"nothing in .*/work matches"):
        matches(str(folder), pattern, ("runs",))


@pytest.mark.parametrize(
    ("link", "pattern"),
    [
        ("out", "out"),
        ("out", "out/key"),
        ("out", "*"),
        ("src/out", "src"),
        ("src/out", "src/out/key"),
        ("src/deep/up", "src/**/key"),
    ],
)
@pytest.mark.parametrize("how", ["copy", "link"])
def test_symbolic_links_do_not_lead_out_of_the_working_directory(
    folder: Path, link: str, pattern: str, how: str
) -> None:
    (folder / link).symlink_to(folder.parent / "private")
    patterns: dict[str, list[str]] = {"copy": [], "link": [], how: [pattern]}
    if how == "link" and pattern == "src":
        return  # the folder itself is inside; what the job finds in it is what it finds in its working directory
    with pytest.raises(ScratchError, match=r"leads out of|matches"):
        brought(folder, patterns["copy"], patterns["link"])
    assert not any(path.name == "key" for path in (folder.parent / "target").rglob("*"))


def test_copies_belong_to_the_run_and_links_lead_to_the_original(folder: Path) -> None:
    os.utime(folder / "tool", (1, 1))
    target = brought(folder, ["*", ".hidden"], ["data"])
    assert names(target) == {"alias/a.py", "alias/deep/c.py", "src/a.py", "src/deep/c.py", "tool", ".hidden/x", "data"}
    assert os.readlink(target / "data") == str(folder / "data")
    assert (target / "tool").stat().st_mode & 0o777 == 0o755
    assert (target / "tool").stat().st_mtime == 1
    (target / "src" / "a.py").write_text("changed")
    assert (folder / "src" / "a.py").read_text() == "src/a.py"


def test_what_is_linked_is_not_copied(folder: Path) -> None:
    target = brought(folder, ["src", "data/big.csv"], ["src/deep", "data", "data/*"])
    assert {one for one in names(target) if (target / one).is_symlink()} == {"src/deep", "data"}
    assert (target / "src" / "a.py").is_file()


def test_what_is_neither_file_nor_folder_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "src" / "pipe")
    with pytest.raises(ScratchError, match="'src/pipe' is neither a file nor a folder"):
        brought(folder, ["src"])


def test_a_loop_of_links_is_refused(folder: Path) -> None:
    (folder / "src" / "loop").symlink_to("..")
    with pytest.raises(ScratchError, match=r"'src/loop.*contains it"):
        brought(folder, ["src"])


def test_removing_follows_no_links_and_removes_what_is_read_only(folder: Path) -> None:
    (folder / "src" / "out").symlink_to(folder.parent / "private")
    for path in (folder / "src" / "deep", folder / "src"):
        path.chmod(0o500)
    remove_tree(str(folder))
    assert not folder.exists()
    (folder.parent / "swapped").symlink_to(folder.parent / "private")
    remove_tree(str(folder.parent / "swapped"))
    assert (folder.parent / "private" / "key").read_text() == "key"


def test_a_kept_directory_says_whether_its_run_finished(tmp_path: Path) -> None:
    request = {"cwd": str(tmp_path), "scratch": {"where": "env", "keep": True}}
    for finished, name in ((True, scratch.NAME), (False, scratch.UNFINISHED)):
        made = scratch.make(str(tmp_path), request, lambda: False)
        assert made is not None
        scratch.adopt(str(tmp_path), made)
        scratch.leave(str(tmp_path), request, finished=finished)
        assert (tmp_path / name).is_dir()
