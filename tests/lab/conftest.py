"""A small job and an experiment on it, written to files."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

JOB = """\
name: toy
table: toy.csv
parameters: {vm: {kind: categorical}, nodes: {log: true}, rate: {log: true}}
price: usd
progress: {column: curve, every: 30s, target: 0.9}
deadline: {quantile: 0.5}
"""
EXPERIMENT = """\
title: A toy
source: nobody, Fig. 1
jobs: [{job}]
policies:
  capped: random+timeouts
  LA=0: {{preset: lynceus-2020, lookahead: 0}}
  plain: random
baseline: plain
seeds: 4
figures:
  - {{kind: cdf, title: "Money", level: 1.1}}
  - {{kind: cno-by-money, title: "Course"}}
  - {{kind: table-cno, title: "Table"}}
  - {{kind: bars, title: "Thought", quantity: decision, statistic: mean}}
claims:
  - id: capped-saves
    says: Caps save money
    published: 1.2×
    measure: {{kind: ratio, of: plain, to: capped, level: 1, statistic: p50}}
    holds: "> 0.1"
"""


def rows() -> list[str]:
    """24 configurations: large machines are faster and dearer, and a small rate is slow."""
    lines = []
    for (vm, power), nodes, rate in itertools.product((("small", 1), ("large", 3)), (1, 2, 4, 8), (0.001, 0.01, 0.1)):
        seconds = 3600 / (power * nodes**0.8) * (1 if rate == 0.01 else 1.7) + 40 * nodes
        lines.append(f"{vm},{nodes},{rate},{seconds:.1f},{0.1 * power**0.9 * nodes:.4f},0.1 0.2 0.4")
    return lines


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "toy.csv").write_text("\n".join(["vm,nodes,rate,time_s,usd,curve", *rows()]) + "\n")
    path = tmp_path / "toy.yaml"
    path.write_text(JOB)
    return path


@pytest.fixture
def experiment_file(tmp_path: Path, job: Path) -> Path:
    path = tmp_path / "experiment.yaml"
    path.write_text(EXPERIMENT.format(job=job))
    return path
