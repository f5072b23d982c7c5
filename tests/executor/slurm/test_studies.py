"""Whole studies on the cluster, from a job file: the configuration chooses nodes, runs go side by side, secrets stay secret."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_runs import eventually, files_below, holds, processes_below
from lynceus.cli import main
from slurm_bench import SlurmBench

JOB = """
name: on-slurm
run: |
  echo "$LYNCEUS_TRIAL $SLURM_JOB_NUM_NODES $SLURM_JOB_PARTITION $(hostname) $SLURM_CPUS_PER_TASK $SLURMD_NODENAME" >> nodes.txt
  srun --ntasks="$SLURM_JOB_NUM_NODES" sh -c 'echo "$LYNCEUS_TRIAL $SLURMD_NODENAME $word" >> tasks.txt'
  echo "::lynceus {\\"loss\\": $n}"
  sleep 0.2
space: {n: [1, 2], machine: [cheap, dear], word: ["it's $(odd)"]}
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
"""What a run of one node may cost within ten minutes."""

Lynceus = Callable[..., tuple[int, str, str]]


@pytest.fixture
def lynceus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Lynceus:
    """Run a command in this process: (exit code, stdout, stderr)."""
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


def test_the_configuration_chooses_its_nodes(slurm: SlurmBench, lynceus: Lynceus, tmp_path: Path) -> None:
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
    assert shapes == [(1, "cheap"), (1, "dear"), (2, "cheap"), (2, "dear")]
    cpus = {line.split()[4] for line in (tmp_path / "nodes.txt").read_text().splitlines()}
    assert cpus == {"2"}
    eventually(lambda: "nothing is left over" in lynceus("gc on-slurm")[1])


def test_runs_go_side_by_side_within_the_budget(slurm: SlurmBench, lynceus: Lynceus, tmp_path: Path) -> None:
    """Four at a time; what they may cost together is set aside before they start, and never more than there is."""
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
    assert max(began for began, _ in spans) < min(ended for _, ended in spans), (
        "all four were under way at the same time"
    )


def test_what_open_trials_may_cost_is_set_aside(slurm: SlurmBench, lynceus: Lynceus, tmp_path: Path) -> None:
    """Seen in the ledger by another process: three of four may be open at once; money that they do not need lets the fourth begin."""
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
    assert list(tmp_path.glob("at-3")) == [], "a fourth one would be more than there is"
    (tmp_path / "go").touch()
    assert worker.wait() == 0
    (facts,) = json.loads(lynceus("status -o json")[1])
    rows = json.loads(lynceus("trials on-slurm -o json")[1])
    assert [row["state"] for row in rows] == ["COMPLETE"] * 4, "what the first ones did not need was given back"
    assert facts["reserved_usd"] == 0
    assert facts["spent_usd"] == pytest.approx(sum(row["charged_usd"] for row in rows))


def by_number(outcomes: list[dict[str, Any]], lynceus: Lynceus) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """What supervisors wrote down, beside what the storage says of the same trials (matched by their seconds)."""
    rows = {round(row["runtime_s"], 6): row for row in json.loads(lynceus("trials on-slurm -o json")[1])}
    return [(one, rows[round(one["seconds"], 6)]) for one in outcomes]


def test_secrets_are_found_nowhere(
    slurm: SlurmBench, lynceus: Lynceus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the controller's memory, not in spool or logs, not in process arguments, run directories, storage, output or report."""
    secret = "tr0ub4dor-and-3-horses"
    monkeypatch.setenv("TOKEN", secret)
    script = 'test -n "$TOKEN" && echo "the token is $TOKEN"; touch "busy-$LYNCEUS_TRIAL"; sleep 1; echo "::lynceus {\\"loss\\": $n}"'
    head, tail = JOB.split("run: |")[0], JOB[JOB.index("space:") :]
    write(tmp_path, f"{head}run: |\n  {script}\nsecrets: [TOKEN]\n{tail}")
    seen: set[bytes] = set()
    over = threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            places = (*Path("/proc").glob("[0-9]*/cmdline"), *files_below(slurm.folder))
            seen.update(bytes(path) for path in places if holds(path, secret))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        code, out, err = lynceus("run job.yaml -y")
    finally:
        over.set()
        watcher.join()
    assert code == 0, out + err
    assert list(tmp_path.glob("busy-*"))
    assert not seen
    texts = [lynceus(words)[1] for words in ("logs on-slurm 0", "report on-slurm", "trials on-slurm -o json")]
    assert "the token is ***" in texts[0]
    for text in [out, err, *texts]:
        assert secret not in text
    looked = files_below(tmp_path, slurm.folder)
    assert any(path.name == "lynceus.db" for path in looked)
    assert [path for path in looked if holds(path, secret)] == []


def test_a_killed_worker_is_resumed_without_a_second_start(slurm: SlurmBench, lynceus: Lynceus, tmp_path: Path) -> None:
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
    ("executor", "words"),
    [
        ("{kind: slurm, nodes: '${m}'}", "executor: nodes: ${m} names no column of the space."),
        ("{kind: slurm, partitoin: a}", "executor.partitoin: there is no field 'partitoin'; did you mean 'partition'?"),
        ("{kind: slurm, poll: soon}", "executor.poll: "),
        ("{kind: slurm, type: slurm}", "executor: it has both kind and type: keep kind."),
        ("sluurm", "executor.kind: There is no executor 'sluurm'. Did you mean 'slurm'?"),
    ],
)
def test_mistakes_of_the_job_file_have_a_place(lynceus: Lynceus, tmp_path: Path, executor: str, words: str) -> None:
    write(tmp_path, re.sub(r"executor: .*", f"executor: {executor}", JOB))
    code, _, err = lynceus("check job.yaml")
    assert code == 2
    assert words in err
