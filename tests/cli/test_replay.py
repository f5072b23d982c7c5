"""`lynceus replay` and `policies`: results, traces, one-line errors and exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from lynceus import replay
from lynceus.policy.policy_file import compose
from lynceus.policy.presets import all_presets, preset

ROWS = "vm,nodes,time_s,usd\n" + "\n".join(
    f"{vm},{nodes},{3600 / (nodes * speed) ** 0.7:.3f},{usd * nodes:.3f}"
    for vm, speed, usd in (("small", 1, 0.1), ("large", 3, 0.32), ("huge", 5, 0.7))
    for nodes in (1, 2, 4, 8)
)
SPEC = "table: toy.csv\nparameters: [vm, nodes]\nprice: usd\ndeadline: {quantile: 0.5}\n"
KEYS = ["job", "policy", "seed", "step", "params", "state", "charged_usd", "spent_usd", "cno", "decision_s"]


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "toy.csv").write_text(ROWS)
    (tmp_path / "toy.yaml").write_text(SPEC)
    return str(tmp_path / "toy.yaml")


def test_a_table_compares_policies(lynceus, spec):
    code, out, _ = lynceus("replay", spec, "-p", "sweep", "-p", "random", "--seeds", "3")
    assert code == 0
    assert "toy: 12 configurations, minimize cost" in out
    assert "sweep" in out
    assert "random" in out
    assert "to CNO ≤ 1.1" in out


def test_json_has_null_for_levels_that_were_not_reached(lynceus, spec):
    options = ["--seeds", "6", "--budget", "0.15", "-o", "json", "--to-end", "--deadline-quantile", "0.2"]
    code, out, _ = lynceus("replay", spec, "-p", "random", *options)
    result = json.loads(out)
    assert code == 0
    assert result["budget_usd"] == 0.15
    (policy,) = result["policies"]
    assert policy["levels"][2]["unreached"] > 0
    assert policy["levels"][2]["usd"]["p90"] is None
    assert policy["spent_usd"]["p90"] <= 0.15


def test_the_trace_has_exactly_its_keys_and_does_not_depend_on_workers(lynceus, spec, tmp_path):
    records = []
    for workers in ("1", "2"):
        path = tmp_path / f"trace{workers}.jsonl"
        code, _, _ = lynceus("replay", spec, "-p", "random", "--seeds", "3", "--workers", workers, "--trace", str(path))
        assert code == 0
        records.append([json.loads(line) for line in path.read_text().splitlines()])
    assert all(list(record) == KEYS for record in records[0])
    assert [{**r, "decision_s": 0} for r in records[0]] == [{**r, "decision_s": 0} for r in records[1]]
    first = records[0][0]
    assert [first[key] for key in ("job", "policy", "seed", "step", "state")] == ["toy", "random", 0, 1, "COMPLETE"]
    assert set(first["params"]) == {"vm", "nodes"}
    assert first["cno"] is None or first["cno"] >= 1
    assert [r["seed"] for r in records[0]] == sorted(r["seed"] for r in records[0])


def test_a_policy_file_is_a_policy(lynceus, spec, tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text("choose: [{kind: quasi-random, count: 2}, by-price]\ntimeout: capped\n")
    code, out, _ = lynceus("replay", spec, "-p", str(mine), "--seeds", "2", "-o", "json")
    assert code == 0
    assert json.loads(out)["policies"][0]["policy"] == "mine"
    code, _, err = lynceus("replay", spec, "-p", str(mine), "--lookahead", "2")
    assert code == 2
    assert "write them into the policy file" in err


@pytest.mark.parametrize("name", all_presets())
def test_printed_parts_of_a_policy_are_a_policy_file(lynceus, name):
    code, out, _ = lynceus("policies", name, "-o", "yaml")
    assert code == 0
    assert compose(yaml.safe_load(out)) == preset(name)


def test_policies_and_jobs_are_listed(lynceus):
    listed = lynceus("policies")[1]
    assert all(name in listed for name in all_presets())
    jobs = json.loads(lynceus("replay", "--list", "-o", "json")[1])
    shipped = Path(replay.__file__).with_name("jobs")
    files = {str(path.relative_to(shipped).with_suffix("")) for path in shipped.rglob("*.yaml")}
    assert {"tensorflow/cnn", "subsampling/rnn"} <= files
    assert {job["job"] for job in jobs} == files


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-p", "lynceu"], "policy: there is no 'lynceu'"),
        (["-p", "sweep", "--timeout", "tgg"], "timeout: there is no 'tgg'"),
        (["-p", "sweep", "--lookahead", "2"], "lookahead: policy 'sweep' has no model to look ahead with"),
        (["-p", "sweep", "-p", "sweep"], "policy: 'sweep' was given twice; name each policy once."),
        (["-p", "none.yaml"], "none.yaml: there is no such file"),
        (["-p", "sweep", "--budget", "$0.0001"], "--budget: $0.0001 is below the cheapest run of the table"),
        (["-p", "sweep", "--budget", "lots"], "--budget is 'lots', but dollars"),
        (["-p", "sweep", "--deadline-quantile", "7"], "--deadline-quantile: got 7; give a number from 0 to 1"),
        (["-p", "sweep", "--seeds", "0"], "seeds: got 0; replay at least 1."),
        (["-p", "sweep", "--workers", "0"], "workers: got 0; give at least 1 process."),
        (["-p", "sweep", "--parallel", "0"], "parallel: got 0"),
    ],
)
def test_mistakes_are_one_line_with_exit_code_2_and_nothing_is_written(lynceus, spec, tmp_path, arguments, message):
    code, out, err = lynceus("replay", spec, *arguments, "--trace", str(tmp_path / "trace.jsonl"))
    assert code == 2
    assert out == ""
    assert message in err
    assert err.startswith("lynceus: ")
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["toy.csv", "toy.yaml"]


def test_a_trace_that_cannot_be_written_is_an_error_before_the_replays(lynceus, spec, tmp_path):
    code, _, err = lynceus("replay", spec, "-p", "sweep", "--trace", str(tmp_path / "no" / "t.jsonl"))
    assert code == 2
    assert "cannot be written: No such file or directory; choose another folder." in err


def test_a_missing_job_is_an_error(lynceus):
    code, _, err = lynceus("replay")
    assert code == 2
    assert "no job was named" in err


def test_version(lynceus):
    code, out, _ = lynceus("--version")
    assert (code, out.split()[0]) == (0, "lynceus")


def test_help_loads_neither_numpy_nor_models():
    """Checked by name, because times vary."""
    script = "import sys; import lynceus.cli; print([m for m in ('numpy', 'scipy', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("everybody", [False, True], ids=["kill -INT", "as a terminal does"])
@pytest.mark.parametrize("later_s", [0.0, 1.0])
def test_ctrl_c_ends_with_130_without_a_traceback_and_leaves_no_worker(spec, tmp_path, everybody, later_s):
    script = "from lynceus.cli import main; main()"
    options = ["--seeds", "100000", "--workers", "2", "--to-end", "--trace", str(tmp_path / "t.jsonl")]
    command = [sys.executable, "-c", script, "replay", spec, "-p", "random", *options]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    began = time.monotonic()
    while not list(tmp_path.glob(".t.jsonl.*")) and time.monotonic() - began < 60:
        time.sleep(0.1)
    time.sleep(later_s)
    (os.killpg if everybody else os.kill)(child.pid, signal.SIGINT)
    _, err = child.communicate(timeout=60)  # returns only when every process that holds the pipes is gone
    assert child.returncode == 130, err
    assert "Traceback" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["toy.csv", "toy.yaml"]
