"""Runs of other jobs beside a replay job."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from lynceus.errors import InputError
from lynceus.policy.presets import preset
from lynceus.replay.job import load_job, table_present
from lynceus.replay.run import replay
from lynceus.replay.shipped import shipped_jobs

JOB = """\
name: toy
table: toy.csv
parameters: {vm: {kind: categorical}, nodes: {log: true}}
price: usd
past:
  table: others.csv.gz
  job: name
  without: ["toy*"]
  keep: ok == 1
  compare: {cores: [cores, cores * nodes]}
  metrics: ["cpu.*"]
"""


@pytest.fixture
def toy(tmp_path):
    lines = ["vm,nodes,cores,usd,time_s"]
    lines += [
        f"{vm},{n},{c},{0.1 * c * n},{900 / (c * n) ** 0.7:.1f}" for vm, c in (("s", 2), ("l", 8)) for n in (1, 2, 4, 8)
    ]
    (tmp_path / "toy.csv").write_text("\n".join(lines) + "\n")
    past = ["name,cores,time_s,ok,cpu.busy"]
    past += [f"{name},{c},{50 / c**0.7},1,90" for name in ("sort", "join", "toy_small") for c in (1, 2, 4)] + [
        "sort,8,1,0,1"
    ]
    with gzip.open(tmp_path / "others.csv.gz", "wt") as file:
        file.write("\n".join(past) + "\n")
    path = tmp_path / "toy.yaml"
    path.write_text(JOB)
    return path


def test_runs_of_the_job_itself_and_excluded_runs_are_left_out(toy):
    past = load_job(toy).past
    assert past is not None
    assert (len(past.job), len(np.unique(past.job)), past.names) == (6, 2, ("cpu.busy",))
    assert np.exp(past.resources[:, 0]) == pytest.approx([1, 2, 4, 1, 2, 4])
    assert np.exp(past.here[:, 0]) == pytest.approx([2, 4, 8, 16, 8, 16, 32, 64])


def test_scout_reaches_the_optimum_in_few_runs(toy):
    job = load_job(toy)
    taken = [len(replay(job, preset("scout"), seed).steps) for seed in range(8)]
    assert max(taken) <= 4
    with pytest.raises(
        InputError, match="'scout' learns from runs of other jobs, and toy has none; name their table under 'past'"
    ):
        replay(replace(job, past=None), preset("scout"), 0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("job: name", "job: nam", r"past\.job: the table others\.csv\.gz has no column 'nam'; did you mean 'name'"),
        ('without: ["toy*"]', 'without: ["*"]', "no run of others.csv.gz is left"),
        ('without: ["toy*"]', 'without: ["toy*", "s*"]', "at least two other jobs"),
        ("cores * nodes]", "cores - 2]", "is not above 0 in every row"),
        ("cores * nodes]", "kores]", "unknown name"),
    ],
)
def test_errors_are_one_sentence(toy, old, new, message):
    toy.write_text(toy.read_text().replace(old, new))
    with pytest.raises(InputError, match=message):
        load_job(toy)


def test_without_their_table_there_are_no_past_runs(toy):
    (toy.parent / "others.csv.gz").unlink()
    assert load_job(toy).past is None


@pytest.mark.skipif(not table_present("scout/lr_huge_spark"), reason="no folder of measured tables: set LYNCEUS_DATA")
def test_no_published_job_learns_from_its_own_algorithm():
    for name in (name for name in shipped_jobs() if name.startswith("scout/")):
        job = load_job(name)
        assert job.past is not None
        assert 60 <= len(np.unique(job.past.job)) <= 86
        assert len(job.past.here) == len(job.problem.space)
