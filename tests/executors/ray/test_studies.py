"""Studies on a real Ray cluster, from a job file: nodes by configuration, parallel runs, secrets."""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from local_runs import contains, eventually, files_below, processes_below
from lynceus.cli.app import main
from lynceus.executors.ray.client import DriverClient
from ray_bench import Bench

JOB = """
name: on-ray
run: |
  echo "$LYNCEUS_TRIAL $n $vm" >> "$FOLDER/log"
  echo "::lynceus {\\"loss\\": $n}"
  sleep 0.2
envs: {FOLDER: HERE}
space: {n: [1, 2], vm: [m.large, m.xlarge]}
price: 36 * n
objective: minimize loss
constraints: ["runtime <= 30s"]
budget: {cost: 100, max_trials: 4}
policy: sweep
trial: {grace: 1s, parallel: 2, timeout: none}
executor: {kind: ray, address: "ADDRESS", num_cpus: "${n}", resources: {"${vm}": "${n}"}, node_folder: HERE/node}
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


def write(folder: Path, cluster: Bench | None, text: str = JOB) -> None:
    address = "auto" if cluster is None else cluster.address
    (folder / "job.yaml").write_text(text.replace("ADDRESS", address).replace("HERE", str(folder)))


def test_a_study_whose_worker_was_killed_resumes_without_leftovers(
    lynceus: Lynceus, tmp_path: Path, cluster: Bench
) -> None:
    write(tmp_path, cluster, JOB.replace("sleep 0.2", "sleep 2"))
    command = [sys.executable, "-m", "lynceus.cli", "run", "job.yaml", "-y"]
    worker = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    eventually((tmp_path / "log").exists)
    worker.kill()
    worker.wait()
    code, out, err = lynceus("resume on-ray")
    assert code == 0, out + err
    began = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert sorted(number for number, *_ in began) == ["0", "1", "2", "3"], "every trial ran once"
    assert {(n, vm) for _, n, vm in began} == {(n, vm) for n in "12" for vm in ("m.large", "m.xlarge")}
    eventually(lambda: processes_below(tmp_path) == set())
    # Ray takes a moment to remove a placement group.
    eventually(lambda: "nothing is left over" in lynceus("gc on-ray")[1])


def crash(folder: Path, trials: int) -> None:
    """Kill a worker while its trials run."""
    command = [sys.executable, "-m", "lynceus.cli", "run", "job.yaml", "-y"]
    worker = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    log = folder / "log"
    eventually(lambda: log.exists() and len(log.read_text().splitlines()) == trials)
    worker.kill()
    worker.wait()
    log.unlink()


def test_gc_cancels_abandoned_trials(lynceus: Lynceus, tmp_path: Path, cluster: Bench) -> None:
    write(tmp_path, cluster, JOB.replace("sleep 0.2", "(setsid sleep 1000 &); sleep 1000"))
    crash(tmp_path, trials=2)
    assert "open trials without a worker: 0, 1" in lynceus("gc on-ray")[1]
    assert processes_below(tmp_path) != set()
    code, out, err = lynceus("gc on-ray --abandoned --yes")
    assert code == 0, out + err
    assert processes_below(tmp_path) == set()
    rows = json.loads(lynceus("trials on-ray -o json")[1])
    assert [(row["state"], row["reason"]) for row in rows] == [("FAIL", "user")] * 2
    assert all(row["charged_usd"] > 0 for row in rows)
    eventually(lambda: "nothing is left over" in lynceus("gc on-ray")[1])


@pytest.mark.slow
def test_gc_removes_runs_of_a_lost_storage(lynceus: Lynceus, tmp_path: Path, cluster: Bench) -> None:
    write(tmp_path, cluster, JOB.replace("sleep 0.2", "sleep 1000"))
    crash(tmp_path, trials=2)
    for path in tmp_path.glob("lynceus.db*"):
        path.unlink()
    small = re.sub(r"num_cpus.*?\}, ", "num_cpus: 1, ", JOB)  # the other runs occupy the rest
    write(tmp_path, cluster, small.replace("on-ray", "other").replace("max_trials: 4", "max_trials: 1"))
    assert lynceus("run job.yaml -y")[0] == 0
    assert "nothing is left over" in lynceus("gc")[1]
    listed = json.loads(lynceus("gc --strangers -o json")[1])["leftovers"]
    assert [(one["study"], one["kind"]) for one in listed].count(("on-ray", "Ray actor")) >= 2
    assert processes_below(tmp_path) != set()
    assert lynceus("gc --strangers --yes")[0] == 0
    eventually(lambda: processes_below(tmp_path) == set())
    eventually(lambda: "nothing is left over" in lynceus("gc --strangers")[1])


def test_parallel_runs_stay_within_the_budget(lynceus: Lynceus, tmp_path: Path, cluster: Bench) -> None:
    """Four at a time; their maximum cost is reserved before they start and never exceeds the budget."""
    meet = 'cd "$FOLDER"; touch "at-$LYNCEUS_TRIAL"; until [ -e at-0 ] && [ -e at-1 ] && [ -e at-2 ] && [ -e at-3 ]; do sleep 0.05; done'
    text = JOB.replace("run: |\n", f"run: |\n  {meet}\n").replace("parallel: 2", "parallel: 4")
    text = re.sub(r"num_cpus.*?\}, ", "num_cpus: 1, ", text.replace("cost: 100", "cost: 6"))
    write(tmp_path, cluster, text)
    code, out, err = lynceus("run job.yaml -y")
    assert code == 0, out + err
    (facts,) = json.loads(lynceus("status -o json")[1])
    assert facts["spent_usd"] <= 6.0
    outcomes = [json.loads(path.read_text()) for path in (tmp_path / ".lynceus").glob("*/*/outcome.json")]
    spans = [(one["began_s"], one["ended_s"]) for one in outcomes]
    assert len(spans) == 4
    assert max(began for began, _ in spans) < min(ended for _, ended in spans), "all four ran at the same time"
    rows = json.loads(lynceus("trials on-ray -o json")[1])
    charged = sum(row["runtime_s"] * 0.01 * row["params"]["n"] for row in rows)
    assert facts["spent_usd"] == pytest.approx(charged, rel=1e-6)
    assert sum(one["seconds"] for one in outcomes) == pytest.approx(sum(row["runtime_s"] for row in rows))


def test_the_cost_of_open_trials_is_reserved(lynceus: Lynceus, tmp_path: Path, cluster: Bench) -> None:
    """Another process sees the reservation: three of four trials can be open at once; the fourth starts when money is released."""
    hold = 'touch "$FOLDER/at-$LYNCEUS_TRIAL"; until [ -e "$FOLDER/go" ]; do sleep 0.05; done'
    text = JOB.replace("run: |\n", f"run: |\n  {hold}\n").replace("parallel: 2", "parallel: 4")
    text = text.replace("cost: 100", "cost: 18").replace("n: [1, 2]", "n: [1]").replace("<= 30s", "<= 10m")
    text = text.replace("vm: [m.large, m.xlarge]", "vm: [a, b, c, d]").replace(", timeout: none", "")
    write(tmp_path, cluster, re.sub(r"num_cpus.*?\}, ", "num_cpus: 1, ", text))
    command = [sys.executable, "-m", "lynceus.cli", "run", "job.yaml", "-y"]
    worker = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    eventually(lambda: len(list(tmp_path.glob("at-*"))) == 3)
    (facts,) = json.loads(lynceus("status -o json")[1])
    rows = json.loads(lynceus("trials on-ray -o json")[1])
    assert [row["state"] for row in rows] == ["RUNNING"] * 3
    assert facts["reserved_usd"] == pytest.approx(3 * OPEN_USD)
    assert facts["spent_usd"] == 0
    assert list(tmp_path.glob("at-3")) == [], "a fourth trial would exceed the budget"
    (tmp_path / "go").touch()
    assert worker.wait() == 0
    (facts,) = json.loads(lynceus("status -o json")[1])
    rows = json.loads(lynceus("trials on-ray -o json")[1])
    assert [row["state"] for row in rows] == ["COMPLETE"] * 4, "money that the first trials did not need was released"
    assert facts["reserved_usd"] == 0
    assert facts["spent_usd"] == pytest.approx(sum(row["charged_usd"] for row in rows))


def test_a_study_whose_cluster_is_unreachable_stops_and_keeps_its_trials(lynceus: Lynceus, tmp_path: Path) -> None:
    write(tmp_path, None, JOB.replace("ADDRESS", "127.0.0.1:9").replace("kind: ray", "kind: ray, patience: 0.5s"))
    code, out, err = lynceus("run job.yaml -y")
    assert code == 4
    assert "the Ray cluster 127.0.0.1:9 cannot be reached: no answer from there" in out + err
    assert "resume the study when the cluster is back" in out + err
    rows = json.loads(lynceus("trials on-ray -o json")[1])
    assert [row["state"] for row in rows] == ["RUNNING", "RUNNING"], "they stay open until the study is resumed"
    code, out, err = lynceus("gc on-ray")
    assert code == 4
    assert "the Ray cluster 127.0.0.1:9 cannot be reached" in out + err


_EVERYTHING = """
import sys, ray
from ray.experimental import internal_kv as kv
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="error")
for namespace in (None, b"lynceus", b"fun", b"session", b"job"):
    for key in kv._internal_kv_list(b"", namespace=namespace):
        sys.stdout.buffer.write(key + (kv._internal_kv_get(key, namespace=namespace) or b""))
print(ray.util.placement_group_table(), ray.util.list_named_actors(all_namespaces=True), ray._private.state.actors())
"""


def test_secrets_do_not_leak(
    lynceus: Lynceus, tmp_path: Path, cluster: Bench, client: DriverClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not in Ray's files or store, process arguments, run directories, the storage, the output or the report."""
    secret = "tr0ub4dor-and-3-horses"
    monkeypatch.setenv("TOKEN", secret)
    head, tail = JOB.split("run: |")[0], JOB[JOB.index("envs:") :]
    script = 'test -n "$TOKEN" && echo "the token is $TOKEN"; touch "$FOLDER/busy-$LYNCEUS_TRIAL"; '
    script += 'sleep 1; echo "::lynceus {\\"loss\\": $n}"'
    text = f"{head}run: |\n  {script}\nsecrets: [TOKEN]\n{tail}".replace("max_trials: 4", "max_trials: 2")
    write(tmp_path, cluster, text)
    seen: set[str] = set()
    done = threading.Event()
    folders = (cluster.folder, tmp_path)

    def watch() -> None:
        while not done.wait(0.2):
            paths = (*Path("/proc").glob("[0-9]*/cmdline"), *files_below(*folders))
            seen.update(str(path) for path in paths if contains(path, secret))

    watcher = threading.Thread(target=watch)
    watcher.start()
    everything = b""
    try:
        worker = subprocess.Popen(
            [sys.executable, "-m", "lynceus.cli", "run", "job.yaml", "-y"], cwd=tmp_path, stdout=subprocess.PIPE
        )
        eventually(lambda: list(tmp_path.glob("busy-*")))
        command = [sys.executable, "-c", _EVERYTHING, cluster.address]
        everything = subprocess.run(command, capture_output=True, check=True).stdout
        out = worker.communicate()[0]
    finally:
        done.set()
        watcher.join()
    assert worker.returncode == 0, out
    assert b"lynceus:on-ray:" in everything  # the head knows the run
    assert secret.encode() not in everything + out
    assert not seen
    texts = [lynceus(words)[1] for words in ("logs on-ray 0", "report on-ray", "trials on-ray -o json")]
    assert "the token is ***" in texts[0]
    assert not any(secret in text for text in texts)
    left = files_below(*folders)
    assert any(path.name == "lynceus.db" for path in left)
    assert any(path.suffix == ".log" for path in left)
    assert [path for path in left if contains(path, secret)] == []


@pytest.mark.parametrize(
    ("executor", "message"),
    [
        ("{kind: ray, num_cpus: '${m}'}", "num_cpus: ${m} is not a column of the space"),
        ("{kind: ray, num_cpus: '${vm}'}", "num_cpus: got 'm.large'; expected a number."),
        ("{kind: ray, num_nodes: 0.5}", "executor.num_nodes"),
        ("{kind: ray, num_nodes: 0}", "num_nodes: got 0 for n=1, vm=m.large; expected a whole number of at least 1."),
        ("{kind: ray, num_cpu: 1}", "executor.num_cpu: there is no field 'num_cpu'; did you mean 'num_cpus'?"),
        ("{kind: ray, address: 'here'}", "got 'here'; expected auto, HOST:PORT or ray://HOST:PORT."),
        ("{kind: ray, num_cpus: 0}", "a trial requests no resources for n=1, vm=m.large"),
        ("rai", "There is no executor 'rai'. Did you mean 'ray'?"),
    ],
)
def test_errors_in_the_job_file_name_the_field(lynceus: Lynceus, tmp_path: Path, executor: str, message: str) -> None:
    write(tmp_path, None, re.sub(r"executor: .*", f"executor: {executor}", JOB))
    code, _, err = lynceus("check job.yaml")
    assert code == 2, err
    assert message in err


def test_without_ray_the_message_says_what_to_install(
    lynceus: Lynceus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, None)
    monkeypatch.setattr("lynceus.executors.ray.executor.find_spec", lambda name: None)
    code, _, err = lynceus("run job.yaml -y")
    assert code == 2
    assert "Trials on Ray need an optional package: pip install 'lynceus-opt[ray]'" in err
