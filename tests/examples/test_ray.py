"""The example on Ray, on the cluster that it brings along."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "ray"
PRIMES = 33_860
"""Below 400,000."""


@pytest.fixture
def environment() -> Iterator[dict[str, str]]:
    """In which `address: auto` means the example's own cluster."""
    inherited = {key: value for key, value in os.environ.items() if key != "LYNCEUS_STORAGE"}
    inherited["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{inherited['PATH']}"
    inherited["RAY_ENABLE_UV_RUN_RUNTIME_ENV"] = "0"
    command = [sys.executable, str(EXAMPLE / "cluster.py")]
    cluster = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=inherited, start_new_session=True)
    assert cluster.stdout is not None
    try:
        said = next(line for line in cluster.stdout if line.startswith("export RAY_ADDRESS="))
        yield {**inherited, "RAY_ADDRESS": said.strip().partition("=")[2]}
    finally:
        cluster.send_signal(signal.SIGTERM)
        cluster.wait()
        cluster.stdout.close()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="pip install 'lynceus-opt[ray]'")
def test_primes_on_ray(tmp_path: Path, environment: dict[str, str]) -> None:
    work = tmp_path / "ray"
    shutil.copytree(EXAMPLE, work, ignore=shutil.ignore_patterns(".lynceus", "*.db*", "__pycache__"))

    def lynceus(*arguments: str) -> Any:
        command = [sys.executable, "-m", "lynceus.cli", *arguments, "-o", "json"]
        ended = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode in (0, 3), ended.stderr
        return json.loads(ended.stdout)

    found, rows = lynceus("run", "job.yaml", "-y"), lynceus("trials", "primes-on-ray")
    assert all(row["state"] != "FAIL" for row in rows), [row["detail"] for row in rows]
    costs = [row["cost_usd"] for row in rows if row["keeps_constraints"]]
    assert (found["best"] is None) == (not costs)
    if costs:
        assert 0.9 * min(costs) < found["best"]["cost_usd"] < 3 * min(costs)
    finished = [row for row in rows if row["state"] == "COMPLETE"]
    assert finished
    for row in finished:  # a single node counts all primes; of two nodes, the reporting one counts its share
        share = row["metrics"]["primes"] / PRIMES
        assert share == 1.0 if row["params"]["nodes"] == 1 else 0.3 < share < 0.7
    assert lynceus("gc", "primes-on-ray")["leftovers"] == []
