"""Studies on a real Slurm cluster, from a job file: nodes by configuration, parallel runs, secrets."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_runs import contains, eventually, files_below, processes_below
from lynceus.cli.app import main
from slurm_bench import SlurmBench

JOB = """
name: on-slurm
run: |
  echo "$LYNCEUS_TRIAL $SLURM_JOB_NUM_NODES $SLURM_JOB_PARTITION $(hostname) $SLURM_CPUS_PER_TASK $SLURMD_NODENAME" >> nodes.txt
  srun --ntasks="$SLURM_JOB_NUM_NODES" sh -c 'echo "$LYNCEUS_TRIAL $SLURMD_NODENAME $word" >> tasks.txt'
  echo "::lynceus {\\"loss\\": $n}"
  sleep 0.2
space: {n: [1, 2], machine: [cheap, fast], word: ["it's $(odd)"]}
price: 36 * n
objective: minimize loss
constraints: ["runtime <= 30s"]
budget: {cost: 100, max_trials: 4}
policy: sweep
trial: {grace: 1s, parallel: 2}
executor: {type: slurm, nodes: "${n}", constraint: "${machine}", cpus: 2, memory: 200 MB, python: PYTHON, poll: 0.2s}
storage: sqlite:///lynceus.db
"""

OPEN_USD = 6.0
"""Cost of one node for ten minutes."""

Lynceus = Callable[..., tuple[int, str, str]]


@pytest.fixture
def lynceus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lynceus:
    """Runs a command in this process; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["lynceus", *words.split()])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return run


def write(folder: Path, text: str) -> None:
    (folder / "job.yaml").write_text(text.replace("PYTHON", sys.executable))


def test_the_configuration_selects_its_nodes(slurm: SlurmBench, lynceus: Lynceus, tmp_path: Path) -> None:
    write(tmp_path, JOB)
    code, out, err = lynceus("run job.yaml -y")
    assert code == 0, out + err
    assert len(json.loads(lynceus("trials on-slurm -o json")[1])) == 4
    tasks: dict[str, list[str]] = {}
    for line in (tmp_path / "tasks.txt").read_text().splitlines():
        number, node, word = line.split(" ", 2)
        assert word == "it's $(odd)"
        tasks.setdefault(number, []).append(node)
    shapes = sorted((len(nodes), {node[:-1] for node in nodes}.pop()) for nodes in tasks.values())
    assert shapes == [(1, "cheap"), (1, "fast"), (2, "cheap"), (2, "fast")]
    cpus = {line.split()[4] for line in (tmp_path / "nodes.txt").read_text().splitlines()}
    assert cpus == {"2"}
    eventually(lambda: "nothing is left over" in lynceus("gc on-slurm")[1])


def test_parallel_runs_stay_within_the_budget(slurm: SlurmBench, lynceus: Lynceus, tmp_path: Path) -> None:
    """Four at a time; their maximum cost is reserved before they start and never exceeds the budget."""
    meet = (
        'touch "at-$LYNCEUS_TRIAL"; until [ -e at-0 ] && [ -e at-1 ] && [ -e at-2 ] && [ -e at-3 ]; do sleep 0.05; done'
    )
    text = (
        JOB.replace("run: |\n", f"run: |\n  {meet}\n")
        .replace("parallel: 2", "parallel: 4")
        .replace("cost: 100", "cost: 6")
    )
    write(tmp_path, re.sub(r'nodes: "\S+", constraint: "\S+", ', "", re.sub(r"  srun.*\n", "", text)))
    code, out, err = lynceus("run job.yaml -y")
    assert code in (0, 3), out + err
    (facts,) = json.loads(lynceus("status -o json")[1])
    assert facts["spent_usd"] <= 6.0
    outcomes = [json.loads(path.read_text()) for path in (tmp_path / ".lynceus").glob("*/*/outcome.json")]
    assert facts["spent_usd"] == pytest.approx(
        sum(one["seconds"] * 0.01 * row["params"]["n"] for one, row in by_number(outcomes, lynceus)), rel=1e-6
    )
    spans = [(one["began_s"], one["ended_s"]) for one in outcomes]
    assert len(spans) == 4
    assert max(began for began, _ in spans) < min(ended for _, ended in spans), "all four ran at the same time"


def test_the_cost_of_open_trials_is_reserved(slurm: SlurmBench, lynceus: Lynceus, tmp_path: Path) -> None:
    """Another process sees the reservation: three of four trials can be open at once; the fourth starts when money is released."""
    hold = 'touch "at-$LYNCEUS_TRIAL"; until [ -e "go" ]; do sleep 0.05; done'
    text = JOB.replace("run: |\n", f"run: |\n  {hold}\n").replace("parallel: 2", "parallel: 4")
    text = text.replace("cost: 100", "cost: 18").replace("n: [1, 2]", "n: [1]").replace("<= 30s", "<= 10m")
    text = text.replace('word: ["it\'s $(odd)"]', "word: [a, b]")
    write(tmp_path, re.sub(r'nodes: "\S+", constraint: "\S+", ', "", re.sub(r"  srun.*\n", "", text)))
    command = [sys.executable, "-m", "lynceus.cli", "run", "job.yaml", "-y"]
    worker = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    eventually(lambda: len(list(tmp_path.glob("at-*"))) == 3)
    (facts,) = json.loads(lynceus("status -o json")[1])
    rows = json.loads(lynceus("trials on-slurm -o json")[1])
    assert [row["state"] for row in rows] == ["RUNNING"] * 3
    assert facts["reserved_usd"] == pytest.approx(3 * OPEN_USD)
    assert facts["spent_usd"] == 0
    assert list(tmp_path.glob("at-3")) == [], "a fourth trial would exceed the budget"
    (tmp_path / "go").touch()
    assert worker.wait() == 0
    (facts,) = json.loads(lynceus("status -o json")[1])
    rows = json.loads(lynceus("trials on-slurm -o json")[1])
    assert [row["state"] for row in rows] == ["COMPLETE"] * 4, "money that the first trials did not need was released"
    assert facts["reserved_usd"] == 0
    assert facts["spent_usd"] == pytest.approx(sum(row["charged_usd"] for row in rows))


def by_number(outcomes: list[dict[str, Any]], lynceus: Lynceus) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The records of supervisors with the stored trials, matched by their seconds."""
    rows = {round(row["runtime_s"], 6): row for row in json.loads(lynceus("trials on-slurm -o json")[1])}
    return [(one, rows[round(one["seconds"], 6)]) for one in outcomes]


def test_secrets_do_not_leak(
    slurm: SlurmBench, lynceus: Lynceus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not in Slurm's files, process arguments, run directories, the storage, the output or the report."""
    secret = "tr0ub4dor-and-3-horses"
    monkeypatch.setenv("TOKEN", secret)
    script = 'test -n "$TOKEN" && echo "the token is $TOKEN"; touch "busy-$LYNCEUS_TRIAL"; sleep 1; echo "::lynceus {\\"loss\\": $n}"'
    head, tail = JOB.split("run: |")[0], JOB[JOB.index("space:") :]
    write(tmp_path, f"{head}run: |\n  {script}\nsecrets: [TOKEN]\n{tail}")
    seen: set[bytes] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            paths = (*Path("/proc").glob("[0-9]*/cmdline"), *files_below(slurm.folder))
            seen.update(bytes(path) for path in paths if contains(path, secret))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        code, out, err = lynceus("run job.yaml -y")
    finally:
        done.set()
        watcher.join()
    assert code == 0, out + err
    assert list(tmp_path.glob("busy-*"))
    assert not seen
    texts = [lynceus(words)[1] for words in ("logs on-slurm 0", "report on-slurm", "trials on-slurm -o json")]
    assert "the token is ***" in texts[0]
    for text in [out, err, *texts]:
        assert secret not in text
    left = files_below(tmp_path, slurm.folder)
    assert any(path.name == "lynceus.db" for path in left)
    assert [path for path in left if contains(path, secret)] == []


def test_a_study_whose_worker_was_killed_resumes_without_starting_a_run_twice(
    slurm: SlurmBench, lynceus: Lynceus, tmp_path: Path
) -> None:
    write(tmp_path, re.sub(r"  srun.*\n", "", JOB).replace("sleep 0.2", "sleep 2"))
    command = [sys.executable, "-m", "lynceus.cli", "run", "job.yaml", "-y"]
    worker = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    eventually((tmp_path / "nodes.txt").exists)
    worker.kill()
    worker.wait()
    code, out, err = lynceus("resume on-slurm")
    assert code == 0, out + err
    began = [line.split()[0] for line in (tmp_path / "nodes.txt").read_text().splitlines()]
    assert sorted(began) == ["0", "1", "2", "3"], "every trial ran once"
    eventually(lambda: processes_below(tmp_path) == set())


@pytest.mark.parametrize(
    ("executor", "message"),
    [
        ("{kind: slurm, nodes: '${m}'}", "executor: nodes: ${m} is not a column of the space."),
        ("{kind: slurm, partitoin: a}", "executor.partitoin: there is no field 'partitoin'; did you mean 'partition'?"),
        ("{kind: slurm, poll: soon}", "executor.poll: "),
        ("{kind: slurm, type: slurm}", "executor: it has both kind and type; keep kind."),
        ("sluurm", "executor.kind: There is no executor 'sluurm'. Did you mean 'slurm'?"),
    ],
)
def test_errors_in_the_job_file_name_the_field(lynceus: Lynceus, tmp_path: Path, executor: str, message: str) -> None:
    write(tmp_path, re.sub(r"executor: .*", f"executor: {executor}", JOB))
    code, _, err = lynceus("check job.yaml")
    assert code == 2
    assert message in err
