"""Trials at the same time do not disturb each other; what is left of them is cleaned up; the command that `best` prints can be pasted."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from local_runs import eventually

Lynceus = Callable[..., tuple[int, str, str]]
SHARING = """\
name: sharing
run: |
  cp base.txt mine.txt
  cat mine.txt > /dev/null
  echo "$level" > out.txt
  sleep 0.3
  echo "bytes=$(cat out.txt)"
space: {level: [1, 2, 3, 4]}
price: 36
metrics: {bytes: 'bytes=([\\d.]+)'}
budget: {cost: 100, max_trials: 4}
policy: sweep
trial: {parallel: 2, timeout: none, scratch: cwd, copy: ['*.txt']}
"""


def test_parallel_trials_in_one_folder_keep_their_own_files(lynceus: Lynceus, here: Path) -> None:
    (here / "job.yaml").write_text(SHARING)
    (here / "base.txt").write_text("base")
    code, out, _ = lynceus("check", "job.yaml")
    assert (code, "note" in out) == (0, False)
    code, out, _ = lynceus("run", "job.yaml", "-y")
    assert code == 0
    for said in (out, lynceus("best", "sharing")[1]):
        assert "every trial was started in a new directory of its own, scratch: cwd" in said
    code, out, _ = lynceus("trials", "sharing", "-o", "json")
    rows = json.loads(out)
    assert sorted((row["params"]["level"], row["metrics"]["bytes"]) for row in rows) == [(n, n) for n in (1, 2, 3, 4)]
    assert not (here / "out.txt").exists()
    folders = list((here / ".lynceus").glob("sharing-*/*"))
    assert len(folders) >= 4
    eventually(lambda: not any((folder / "scratch").exists() for folder in folders))
    left = next(folder for folder in folders if folder.name == "0") / "scratch"
    (left / "deep").mkdir(parents=True)  # as after a power failure
    code, out, _ = lynceus("gc", "sharing")
    assert f"scratch directory {left} (of trial 0, which has settled)" in out
    assert lynceus("gc", "sharing", "--yes")[0] == 0
    assert not left.exists()
    assert (left.parent / "outcome.json").exists(), "more than the scratch directory was removed"


HOSTILE = """\
name: pasted
run: [python3, job.py]
envs: {EXTRA: 'for ${text}'}
space:
  text: [TEXT]
  codec: {choice: [zstd], when: "text == 'never'"}
price: 36
budget: {cost: 100, max_trials: 1}
policy: sweep
trial: {timeout: none}
"""
PROGRAM = "import json, os\nnames = ('LYNCEUS_PARAM_TEXT', 'EXTRA', 'LYNCEUS_PARAM_CODEC')\n"
PROGRAM += (
    "with open('seen', 'a') as file:\n    print(json.dumps([os.environ.get(name) for name in names]), file=file)\n"
)


def test_the_command_that_best_prints_can_be_pasted(
    lynceus: Lynceus, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = "it's " + "long and  spaced " * 12 + "\n  second line \t [bold]x[/] \x1b[1m $HOME !!"
    (here / "job.yaml").write_text(HOSTILE.replace("TEXT", json.dumps(value)))
    (here / "job.py").write_text(PROGRAM)
    monkeypatch.setenv("COLUMNS", "40")
    assert lynceus("run", "job.yaml", "-y")[0] == 0
    _, printed, _ = lynceus("best", "pasted")
    line = printed.partition("working directory:\n")[2]
    _, document, _ = lynceus("best", "pasted", "-o", "json")
    _, exported, _ = lynceus("export", "pasted", "--to", "shell")
    stale = {**os.environ, "LYNCEUS_PARAM_TEXT": "stale", "EXTRA": "stale", "LYNCEUS_PARAM_CODEC": "stale"}
    for pasted in (line, json.loads(document)["command"], exported):
        for shell in ("sh", "bash"):
            subprocess.run([shell], input=pasted.encode(), env=stale, cwd=here, check=True)
    seen = [json.loads(one) for one in (here / "seen").read_text().splitlines()]
    assert seen == [[value, f"for {value}", None]] * 7
