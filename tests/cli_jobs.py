"""Jobs for tests of the command line, and searches in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

JOB = """\
name: toy
run: |
  sleep "$(awk "BEGIN {print 0.2 / ${threads} + 0.01 * ${level}}")"
  echo "quality: $((10 - level))"
space: {threads: [1, 2, 4], level: [1, 2]}
price: 36.0 * threads
metrics: {quality: 'quality: (\\d+)'}
constraints: ["runtime <= 1m", "quality >= 9"]
budget: {cost: 100 USD, max_trials: 6}
policy: sweep
trial: {timeout: none, grace: 100ms}
baseline: {threads: 4, level: 1}
"""


SLOW = (
    JOB.split("run:")[0]
    + "run: [sleep, '300']\n"
    + JOB[JOB.index("space:") :].replace("metrics: {quality: 'quality: (\\d+)'}\n", "")
)


def started(here: Path, *arguments: str, job: str = SLOW) -> subprocess.Popen[str]:
    (here / "job.yaml").write_text(job)
    process = subprocess.Popen(
        [sys.executable, "-m", "lynceus.cli", *arguments],
        cwd=here,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if " starts: " in line:
            return process
    raise AssertionError("it never started a trial")
