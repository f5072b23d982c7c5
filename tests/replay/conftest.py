"""A small table whose every number can be checked by hand."""

from __future__ import annotations

import pytest

from lynceus.replay.job import load_job

HEADER = "vm,nodes,ram,time_s,usd,acc,curve"
ROWS = (
    # cost of a run = time · usd / 3600: 0.05, 0.04, 0.06, 0.05, 0.12, 0.08 dollars
    "small,1,2,1800,0.1,0.90,0.1 0.5 0.9",
    "small,2,2,720,0.2,0.80,0.2 0.8",
    "small,4,2,540,0.4,0.90,0.3 0.9",
    "large,1,8,600,0.3,0.95,0.4 0.9",
    "large,2,8,720,0.6,0.70,0.1 0.2",
    "large,4,8,240,1.2,0.99,0.9",
)
SPEC = """\
name: toy
table: toy.csv
parameters: [vm, nodes]
features: [ram]
price: usd
metrics: {accuracy: acc}
progress: {column: curve, every: 60s, target: 0.9}
deadline: 15m
"""


@pytest.fixture
def write_job(tmp_path):
    """A function that writes a YAML file with its table beside it and returns its path."""

    def write(spec=SPEC, rows=ROWS, header=HEADER):
        (tmp_path / "toy.csv").write_text("\n".join([header, *rows]) + "\n")
        path = tmp_path / "toy.yaml"
        path.write_text(spec)
        return path

    return write


@pytest.fixture
def toy(write_job):
    return load_job(write_job())
