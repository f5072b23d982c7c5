"""`lynceus init`: a new job file."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("here")


def test_init_writes_a_valid_job_file(lynceus, here: Path) -> None:
    code, _, _ = lynceus(
        "init",
        "new.yaml",
        "-y",
        "--name",
        "mine",
        "-p",
        "threads=1, 2",
        "-p",
        "mode=fast, slow",
        "--command",
        "run ${threads} ${mode}",
    )
    assert code == 0
    assert lynceus("check", "new.yaml")[0] == 0
    code, _, err = lynceus("init", "new.yaml", "-y")
    assert (code, "--force" in err) == (2, True)
